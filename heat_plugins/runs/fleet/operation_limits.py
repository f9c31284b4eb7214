# SPDX-License-Identifier: Apache-2.0
"""What an operation may do at a time, and when it stops."""

from collections import abc
import dataclasses
import re
from typing import Any

#: What an operation does with a target on which the action runs already: it
#: leaves the target out, or waits for the end of that run.
SKIP, WAIT = 'skip', 'wait'

_SHARE = re.compile(r'([0-9]{1,6})(%?)')


@dataclasses.dataclass(frozen=True)
class Share:
    """A number of targets, or a percentage of all."""

    number: int
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> 'Share':
        """Read ``10`` or ``10%``.

        :raises ValueError: it is neither.
        """
        match = _SHARE.fullmatch(text.strip())
        if match is None or (match[2] and int(match[1]) > 100):
            raise ValueError(
                f'{text!r} must be a number, such as 10, or a percentage '
                'from 0% to 100%'
            )
        return cls(int(match[1]), bool(match[2]))

    def of(self, total: int) -> int:
        """Return how many targets it is; a part of one does not count."""
        return self.number * total // 100 if self.is_percent else self.number

    def __str__(self) -> str:
        return f'{self.number}%' if self.is_percent else str(self.number)


#: The default number of concurrent runs.
CONCURRENT = Share(50)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of an operation; times are in seconds.

    :ivar max_concurrent: the most runs at a time; at least one.
    :ivar max_errors: the most failures; one more, and nothing else starts.
    :ivar canary: how many targets come first; all of them must succeed.
    :ivar approve_after_canary: whether a user must resume it after those.
    :ivar pause: between two batches. Without one there are no batches: a
        run starts as soon as another one has ended.
    :ivar timeout: for each run; None: as long as its deployment says.
    :ivar delivery_timeout: until a server must have reported, if it does.
    :ivar deadline: for the whole; None: no limit.
    :ivar if_running: `SKIP` or `WAIT`.
    """

    max_concurrent: Share = CONCURRENT
    max_errors: Share = Share(0)
    canary: int = 0
    approve_after_canary: bool = False
    pause: int = 0
    timeout: int | None = None
    delivery_timeout: int | None = None
    deadline: int | None = None
    if_running: str = SKIP

    def concurrent(self, total: int) -> int:
        """Return the most runs at a time."""
        return max(1, self.max_concurrent.of(total))

    def errors(self, total: int) -> int:
        """Return the most failures."""
        return self.max_errors.of(total)

    def shown(self) -> dict[str, Any]:
        """Return them in JSON's types."""
        return {
            **dataclasses.asdict(self),
            'max_concurrent': str(self.max_concurrent),
            'max_errors': str(self.max_errors),
        }

    @classmethod
    def read(cls, values: abc.Mapping[str, Any]) -> 'Limits':
        """Read what `shown` returns; numbers may be texts.

        :raises ValueError: a value is no limit.
        """
        found: dict[str, Any] = {k: v for k, v in values.items() if k in NAMES}
        for name in ('max_concurrent', 'max_errors'):
            if name in found:
                found[name] = Share.parse(str(found[name]))
        for name in _COUNTS:
            value = found.get(name)
            if isinstance(value, str) and value.isdecimal():
                # YAQL and templates make texts of numbers.
                found[name] = int(value)
        for name in ('canary', 'pause'):
            if not _is_count(found.get(name, 0)):
                raise ValueError(f'{name} must be a number, at least 0')
        for name in ('timeout', 'delivery_timeout', 'deadline'):
            value = found.get(name)
            if value is not None and not (_is_count(value) and value):
                raise ValueError(f'{name} must be a number, at least 1')
        if not isinstance(found.get('approve_after_canary', False), bool):
            raise ValueError('approve_after_canary must be true or false')
        if found.get('if_running', SKIP) not in (SKIP, WAIT):
            raise ValueError(f'if_running must be {SKIP} or {WAIT}')
        return cls(**found)


#: What limits there are.
NAMES = tuple(field.name for field in dataclasses.fields(Limits))

_COUNTS = ('canary', 'pause', 'timeout', 'delivery_timeout', 'deadline')


def _is_count(value: object) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and 0 <= value < 2**31
    )
