# SPDX-License-Identifier: Apache-2.0
"""Who has the name of a plan, and who may change the plan just now.

A claim is a record of the name in a registry, for as long as there is the
plan; what the plan is, its container alone tells. A lock is one, too. Of two
callers at once a registry lets only one create a record of a name. A
deletion, however, removes the name's record of the moment, which may be
another's. So no caller takes over a lock by deleting it: a caller that takes
the holder of a lock for dead creates a record whose name is made of that
lock's token, which only one can. The locks of a plan are such a chain, and the
last one holds the plan. A release deletes the chain, its first record first: a
chain without its first record holds nothing.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
import functools
import time
from typing import Final
import uuid

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins import stored
from heat_plugins.plans import plan_names
from heat_plugins.plans.content import plans

# That of a record that is invalid; no caller has it.
_NO_TOKEN = ''

LOG = foreign.logger(__name__)

# What says that a record is one of ours: environments serve others, too.
_LOCK: Final = 'heat_plugins_plan_lock'
_CLAIM: Final = 'heat_plugins_plan'

#: Of the format of records.
_VERSION: Final = 1

# No plan can have such a name.
_PREFIX: Final = 'plan-lock:'

# So much of a token stands in the name of the next lock of a chain.
_TOKEN: Final = 8

# Seconds after which the holder of a lock is taken for dead.
_LEASE: Final = 900.0

# Who gives a lock back does so by then: a request may be long on its way.
_RETURN: Final = _LEASE - 120.0

# For so long another one's change is waited for.
_PATIENCE: Final = 30.0
_INTERVAL: Final = 0.5

# So often it is tried to give a lock back.
_ATTEMPTS: Final = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Lock:
    """What a record says of a lock.

    :ivar until: after this time it holds nothing.
    """

    token: str
    since: str
    until: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Chain:
    """The locks of a plan, the last one ours."""

    records: tuple[plan_names.Record, ...]
    since: float


class Locks:
    """The locks of a project's plans.

    :param clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        registry: plan_names.Registry,
        *,
        clock: abc.Callable[[], float] = time.time,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._sleep = sleep
        self._insist = functools.partial(
            retrying.insist, attempts=_ATTEMPTS, wait=1, sleep=sleep
        )

    @contextlib.contextmanager
    def lock(self, name: str) -> abc.Iterator[None]:
        """Keep others from changing a plan.

        What has been done stays done if the lock cannot be released; then
        it expires.

        :raises errors.PlanBusy: another caller changes it, for too long.
        """
        chain = self._wait(name)
        try:
            yield
        finally:
            try:
                self._give_back(chain)
            except errors.Error as exc:
                LOG.warning(
                    'Cannot release the lock of plan %s: %s. It blocks other '
                    'changes until %s, unless you delete the Mistral '
                    'environment %s.',
                    name,
                    exc,
                    _time(chain.since + _LEASE),
                    chain.records[0].name,
                )

    def _wait(self, name: str) -> _Chain:
        deadline = self._clock() + _PATIENCE
        while True:
            holder = self._try(name)
            if isinstance(holder, _Chain):
                return holder
            if self._clock() >= deadline:
                since = _lock(holder).since if holder else 'just now'
                raise errors.PlanBusy(
                    f'Plan {name} has been locked for a change since '
                    f'{since}; wait for it, or, if it was interrupted, '
                    f'delete the Mistral environment {_PREFIX}{name}'
                )
            self._sleep(_INTERVAL)

    def _try(self, name: str) -> _Chain | plan_names.Record | None:
        """Take the lock; or return that of another, or None to retry."""
        now = self._clock()
        chain: tuple[plan_names.Record, ...] = ()
        while True:
            ours = self._record(name, chain, now)
            if created(self._registry, ours):
                break
            other = self._registry.get(ours.name)
            if other is None or _lock(other).until >= now:
                return other
            chain += (other,)
        if chain and self._registry.get(chain[0].name) != chain[0]:
            # Another caller has released all of it since.
            self._registry.delete(ours.name)
            return None
        return _Chain(records=(*chain, ours), since=now)

    def _record(
        self, name: str, chain: tuple[plan_names.Record, ...], now: float
    ) -> plan_names.Record:
        follows = ''
        if chain:
            follows = f'~{_lock(chain[-1]).token[:_TOKEN]}'
        return plan_names.Record(
            name=f'{_PREFIX}{name}{follows}',
            description=f'Plan {name} is locked for a change',
            values={
                _LOCK: {
                    'version': _VERSION,
                    'token': str(uuid.uuid4()),
                    'since': _time(now),
                    'until': now + _LEASE,
                }
            },
        )

    def _give_back(self, chain: _Chain) -> None:
        if self._clock() >= chain.since + _RETURN:
            # Another may have taken this caller for dead; the next one
            # does.
            return
        first, *more = chain.records
        if self._insist(self._registry.get, first.name) == first:
            self._insist(self._registry.delete, first.name)
        for record in more:
            self._insist(self._registry.delete, record.name)


def created(registry: plan_names.Registry, record: plan_names.Record) -> bool:
    """Create a record; False where its name is taken."""
    try:
        return registry.create(record)
    except errors.Unavailable:
        # It may have come through all the same.
        if registry.get(record.name) == record:
            return True
        raise


def _lock(record: plan_names.Record) -> _Lock:
    """Read a lock. An invalid one holds nothing."""
    try:
        return stored.read(_Lock, record.values.get(_LOCK))
    except stored.LaterRelease:
        since = 'an unknown time by a later release'
        return _Lock(token=_NO_TOKEN, since=since, until=float('inf'))
    except ValueError:
        return _Lock(token=_NO_TOKEN, since='an unknown time', until=0)


def _time(seconds: float) -> str:
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.isoformat(timespec='seconds')


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
        registry: plan_names.Registry,
        *,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._clock = clock

    def summaries(self) -> list[plans.Summary]:
        """Return the plans that have names, by name."""
        summaries = [
            _summary(record)
            for record in self._registry.find()
            if isinstance(record.values.get(_CLAIM), dict)
        ]
        return sorted(summaries, key=lambda summary: summary.name)

    def take(self, name: str, description: str) -> Claim | None:
        """Take a name; None where it is taken.

        :raises errors.Exists: what has it is not a plan.
        """
        token, since = str(uuid.uuid4()), self._now()
        record = plan_names.Record(
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
        if created(self._registry, record):
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


def _summary(record: plan_names.Record) -> plans.Summary:
    try:
        since, description = _claim(record).since, record.description
    except errors.LaterRelease as exc:
        since, description = '', f'unreadable: {exc}'
    return plans.Summary(
        name=record.name, description=description, created_at=since
    )


def _claim(record: plan_names.Record) -> Claim:
    """Read a claim. An invalid one has no token."""
    values = record.values[_CLAIM]
    try:
        return stored.read(Claim, {**values, 'name': record.name})
    except stored.LaterRelease as exc:
        raise errors.LaterRelease(f'Plan {record.name}: {exc}') from exc
    except ValueError:
        return Claim(name=record.name, token=_NO_TOKEN, since='')
