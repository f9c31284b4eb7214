# SPDX-License-Identifier: Apache-2.0
"""Operations that an engine leaves alone for a while, since they failed.

Their records are unreadable, cost too much, or cannot be reached. Each gets
one warning, which names the remedy, and after each failure a longer rest.
"""

from collections import abc
import dataclasses
import threading
import time

from heat_plugins import errors
from heat_plugins import foreign

LOG = foreign.logger(__name__)

# Seconds of the first rest, and of the longest: after what may pass by
# itself, and after anything else.
_FIRST, _PASSING, _LONGEST = 30.0, 300.0, 3600.0

_SHOW = '"openstack software deployment operation show" in that project'
_REMEDIES: abc.Mapping[type[errors.Error], str] = {
    # Its message names the remedy.
    errors.Unreadable: '',
    errors.OverBudget: 'If it stays so, delete the operation with "openstack '
    'software deployment operation delete --force" in that project',
    errors.Unavailable: 'Check the object store, Heat and Keystone',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Rest:
    until: float = 0.0
    failures: int = 0
    is_warned: bool = False


class Aside:
    """What rests; safe for threads.

    It remembers what `keep` was told of last, and nothing else.
    """

    def __init__(
        self, clock: abc.Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rests: dict[str, _Rest] = {}

    def rests(self, key: str) -> bool:
        """Say whether an operation is left alone now."""
        with self._lock:
            rest = self._rests.get(key)
            return rest is not None and self._clock() < rest.until

    def put(
        self, key: str, operation_id: str, project_id: str, exc: Exception
    ) -> None:
        """Leave an operation alone; warn the first time."""
        passing = isinstance(exc, errors.Error) and exc.may_pass
        seconds, is_first = self._add(
            key, _PASSING if passing else _LONGEST, is_warned=True
        )
        if is_first:
            LOG.warning(
                'Cannot advance operation %(id)s of project %(project)s; '
                'retrying after %(seconds).0f s, then less often, and '
                'others first: %(error)s. %(remedy)s',
                {
                    'id': operation_id,
                    'project': project_id,
                    'seconds': seconds,
                    'error': _shown(exc),
                    'remedy': _remedy(exc),
                },
            )

    def rest(self, key: str) -> None:
        """Leave what is no operation alone, without a warning."""
        self._add(key, _LONGEST, is_warned=False)

    def _add(
        self, key: str, longest: float, *, is_warned: bool
    ) -> tuple[float, bool]:
        """Return for how long it rests, and whether nothing warned of it."""
        with self._lock:
            before = self._rests.get(key) or _Rest()
            seconds = min(_FIRST * 2.0 ** min(before.failures, 10), longest)
            self._rests[key] = _Rest(
                until=self._clock() + seconds,
                failures=before.failures + 1,
                is_warned=is_warned or before.is_warned,
            )
        return seconds, not before.is_warned

    def forget(self, key: str) -> None:
        """Let an operation that is advanced again fail with a new warning."""
        with self._lock:
            self._rests.pop(key, None)

    def keep(self, keys: abc.Set[str]) -> None:
        """Forget all operations but some."""
        with self._lock:
            self._rests = {
                key: rest for key, rest in self._rests.items() if key in keys
            }


def _shown(exc: Exception) -> str:
    if isinstance(exc, errors.Error):
        return str(exc)
    return f'{type(exc).__name__}: {exc}'


def _remedy(exc: Exception) -> str:
    return next(
        (text for kind, text in _REMEDIES.items() if isinstance(exc, kind)),
        f'See {_SHOW}',
    )
