# SPDX-License-Identifier: Apache-2.0
"""Who has the name of a plan, and who may change the plan just now.

Both are records in a registry: one of the plan's name, for as long as there
is the plan, and one beside it while somebody changes it. What a plan is, is
not told here; its container alone tells.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
import time
from typing import Final
import uuid

from heat_plugins.plans import errors
from heat_plugins.plans import plan as plans
from heat_plugins.plans import protocols

# What says that a record is one of ours: environments serve others, too.
_CLAIM: Final = 'heat_plugins_plan'
_LOCK: Final = 'heat_plugins_plan_lock'

#: Of the format of records.
_VERSION: Final = 1

# No plan can have such a name.
_PREFIX: Final = 'plan-lock:'

# After that long, whoever has locked a plan is taken for dead.
_LEASE = 900.0

# For so long another one's change is waited for.
_PATIENCE = 30.0
_INTERVAL = 0.5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A name that was taken.

    :ivar token: tells this taking from any other.
    """

    name: str
    token: str
    since: str


class Claims:
    """The names of a project's plans.

    :param clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        registry: protocols.Registry,
        *,
        clock: abc.Callable[[], float] = time.time,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._sleep = sleep

    def summaries(self) -> list[plans.Summary]:
        """Return the plans that have names, by name."""
        found = [
            plans.Summary(
                name=record.name,
                description=record.description,
                created_at=str(record.values[_CLAIM].get('since', '')),
            )
            for record in self._registry.find()
            if isinstance(record.values.get(_CLAIM), dict)
        ]
        return sorted(found, key=lambda one: one.name)

    def take(self, name: str, description: str) -> Claim | None:
        """Take a name; None where it is taken.

        :raises errors.Exists: what has it is no plan.
        """
        token, since = str(uuid.uuid4()), self._now()
        record = protocols.Record(
            name=name,
            description=description,
            values={
                _CLAIM: {
                    'version': _VERSION,
                    'container': name,
                    'since': since,
                    'token': token,
                }
            },
        )
        if self._created(record):
            return Claim(name=name, token=token, since=since)
        self.find(name)
        return None

    def find(self, name: str) -> Claim | None:
        """Return who has a name.

        :raises errors.Exists: what has it is no plan.
        """
        record = self._registry.get(name)
        if record is None:
            return None
        values = record.values.get(_CLAIM)
        if not isinstance(values, dict):
            raise errors.Exists(
                f'There is a Mistral environment {name} that is no plan; '
                'take another name'
            )
        return Claim(
            name=name,
            token=str(values.get('token')),
            since=str(values.get('since')),
        )

    def has(self, claim: Claim) -> bool:
        """Say whether a name is still held by the same taking."""
        return self.find(claim.name) == claim

    def release(self, name: str) -> None:
        """Give a name back, if it is a plan's."""
        with contextlib.suppress(errors.Exists):
            if self.find(name):
                self._registry.delete(name)

    @contextlib.contextmanager
    def lock(self, name: str) -> abc.Iterator[None]:
        """Keep others from changing a plan.

        :raises errors.Busy: somebody else does so, for too long.
        """
        record = self._locked(name)
        try:
            yield
        finally:
            if self._is_ours(record):
                self._registry.delete(record.name)

    def _locked(self, name: str) -> protocols.Record:
        deadline = self._clock() + _PATIENCE
        while True:
            now = self._clock()
            record = protocols.Record(
                name=f'{_PREFIX}{name}',
                description=f'Plan {name} is being changed',
                values={
                    _LOCK: {
                        'version': _VERSION,
                        'token': str(uuid.uuid4()),
                        'since': self._now(),
                        'until': now + _LEASE,
                    }
                },
            )
            if self._created(record):
                return record
            other = self._registry.get(record.name)
            if other is None:
                continue
            values = other.values.get(_LOCK) or {}
            if float(values.get('until') or 0) < now:
                # Of two who do this, one makes the next record.
                self._registry.delete(record.name)
            elif now >= deadline:
                raise errors.Busy(
                    f'Plan {name} has been being changed since '
                    f'{values.get("since")}; wait for that, or delete the '
                    f'Mistral environment {record.name} if it has broken off'
                )
            else:
                self._sleep(_INTERVAL)

    def _is_ours(self, record: protocols.Record) -> bool:
        """Say whether nobody has taken us for dead."""
        until = record.values[_LOCK]['until']
        return (
            self._clock() < until or self._registry.get(record.name) == record
        )

    def _created(self, record: protocols.Record) -> bool:
        try:
            return self._registry.create(record)
        except errors.Unavailable:
            # It may have come through all the same.
            if self._registry.get(record.name) == record:
                return True
            raise

    def _now(self) -> str:
        now = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        return now.isoformat(timespec='seconds')
