# SPDX-License-Identifier: Apache-2.0
"""Who has the name of a plan, for as long as there is the plan.

That is a record of the name in a registry. What the plan is, is not told
there; its container alone tells.
"""

from collections import abc
import dataclasses
import datetime
import time
from typing import Final
import uuid

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.plans import plan_locks
from heat_plugins.plans import plan_protocols
from heat_plugins.plans.content import plans

# That of a record that is invalid; no caller has it.
_NO_TOKEN = ''

# What says that a record is one of ours: environments serve others, too.
_CLAIM: Final = 'heat_plugins_plan'

#: Of the format of records.
_VERSION: Final = 1


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

    Who replaces or releases a claim holds the plan's lock.

    :param clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        registry: plan_protocols.Registry,
        *,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._clock = clock

    def summaries(self) -> list[plans.Summary]:
        """Return the plans that have names, by name."""
        found = [
            _summary(record)
            for record in self._registry.find()
            if isinstance(record.values.get(_CLAIM), dict)
        ]
        return sorted(found, key=lambda one: one.name)

    def take(self, name: str, description: str) -> Claim | None:
        """Take a name; None where it is taken.

        :raises errors.Exists: what has it is not a plan.
        """
        token, since = str(uuid.uuid4()), self._now()
        record = plan_protocols.Record(
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
        if plan_locks.created(self._registry, record):
            return Claim(name=name, token=token, since=since)
        self.find(name)
        return None

    def find(self, name: str) -> Claim | None:
        """Return who has a name.

        :raises errors.Exists: what has it is not a plan.
        """
        record = self._registry.get(name)
        if record is None:
            return None
        if not isinstance(record.values.get(_CLAIM), dict):
            raise errors.Exists(
                f'Mistral has an environment {name} that is not a plan; '
                'choose another name'
            )
        return _claim(record)

    def has(self, claim: Claim) -> bool:
        """Say whether a name is still held by the same taking."""
        try:
            return self.find(claim.name) == claim
        except errors.Exists:
            return False

    def release(self, claim: Claim) -> None:
        """Release a name, unless it now belongs to another caller."""
        if self.has(claim):
            self._registry.delete(claim.name)

    def _now(self) -> str:
        now = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        return now.isoformat(timespec='seconds')


def _summary(record: plan_protocols.Record) -> plans.Summary:
    try:
        since, description = _claim(record).since, record.description
    except errors.LaterRelease as exc:
        since, description = '', f'unreadable: {exc}'
    return plans.Summary(
        name=record.name, description=description, created_at=since
    )


def _claim(record: plan_protocols.Record) -> Claim:
    """Read a claim. An invalid one has no token."""
    values = record.values[_CLAIM]
    try:
        return stored.read(Claim, {**values, 'name': record.name})
    except stored.LaterRelease as exc:
        raise errors.LaterRelease(f'Plan {record.name}: {exc}') from exc
    except ValueError:
        return Claim(name=record.name, token=_NO_TOKEN, since='')
