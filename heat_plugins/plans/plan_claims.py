# SPDX-License-Identifier: Apache-2.0
"""Claims on the names of plans, and the locks for changing plans.

A claim is a record of the name in a registry, for as long as the plan exists;
the content of the plan lies in its container. Of two callers at once, a
registry lets only one create the record of a name. A caller changes a plan
under a lease, see `objectstore.lease`, with its epochs in the same registry.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
import functools
import time
from typing import Any, Final, Protocol
import uuid

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins import stored
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import lease
from heat_plugins.objectstore import stores
from heat_plugins.plans.content import plans

#: Prefix of the name of the container with an object for each name.
CONTAINER: Final = 'heat-plugins-plan-names'

_LIMIT = 64 * 1024

# The most names of a project, each of which takes a request.
_NAMES = 2000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """The record of a name in a registry.

    :ivar values: of JSON; the reader judges them.
    """

    name: str
    description: str
    values: abc.Mapping[str, Any]


class Registry(Protocol):
    """Names, each of which at most one caller can take.

    They are Mistral's environments (`heat_plugins.clients`), or objects where
    there is no Mistral (`Names`).
    """

    def create(self, record: Record) -> bool:
        """Take a name; False where it is taken."""

    def get(self, name: str) -> Record | None:
        """Return the record of a name in this project, if there is one."""

    def find(self) -> list[Record]:
        """Return all records of this project, by name."""

    def delete(self, name: str) -> bool:
        """Release a name; False where it was not taken."""


class Names:
    """A registry in the object store, where there is no Mistral.

    It is a best effort: where listings lag behind, two callers at once may
    both get a name; see `objectstore.exclusive`.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        pool: pools.Pool | None = None,
    ) -> None:
        self._records = json_records.Records(
            store, stores.OwnContainer(store, CONTAINER), limit=_LIMIT
        )
        self._pool = pool or pools.Pool()

    def create(self, record: Record) -> bool:
        """See `Registry.create`."""
        value = {
            'description': record.description,
            'values': dict(record.values),
        }
        return self._records.create(record.name, value)

    def get(self, name: str) -> Record | None:
        """See `Registry.get`."""
        try:
            value = self._records.fetch(name).value
            return Record(
                name=name,
                description=str(value['description']),
                values=dict(value['values']),
            )
        except errors.NoObject:
            return None
        except (ValueError, KeyError, TypeError) as exc:
            raise errors.ServiceError(
                f'Object {name} of container {self._records.container} is '
                'not a record of a plan; delete it'
            ) from exc

    def find(self) -> list[Record]:
        """See `Registry.find`."""
        names = self._records.names(most=_NAMES)
        records = self._pool.each(self.get, names)
        return [record for record in records if record is not None]

    def delete(self, name: str) -> bool:
        """See `Registry.delete`."""
        if self.get(name) is None:
            return False
        self._records.delete(name)
        return True


# The token of an invalid record; no caller has it.
_NO_TOKEN = ''

LOG = foreign.logger(__name__)

# Keys of our records: Mistral's environments serve other users, too.
_LOCK: Final = 'heat_plugins_plan_lock'
_CLAIM: Final = 'heat_plugins_plan'

#: Of the format of records.
_VERSION: Final = 1

# No name of a plan has a colon.
_PREFIX: Final = 'plan-lock:'

# Characters of a token in the name of the next epoch.
_TOKEN: Final = 8

# Seconds until a lock expires, and until its holder no longer releases it: a
# request may take long to arrive.
_EXPIRY: Final = 900.0
_SAFE: Final = _EXPIRY - 120.0

# Seconds to wait for another caller's change, and between two attempts.
_PATIENCE: Final = 30.0
_INTERVAL: Final = 0.5

# Attempts to release a lock.
_ATTEMPTS: Final = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Holder:
    """The holder of an epoch of a plan's lock."""

    who: str = _NO_TOKEN
    at: float = 0.0


class _Epochs:
    """The epochs of a plan's lock, as records; see `lease.Epochs`.

    The name of each but the first contains the holder of the one before. An
    instance serves one attempt to acquire the lock.

    :ivar since: the start of the last epoch that was fetched, for messages.
    """

    def __init__(
        self,
        registry: Registry,
        plan: str,
        clock: abc.Callable[[], float],
        insist: abc.Callable[..., Any],
    ) -> None:
        self._registry = registry
        self._plan = plan
        self._clock = clock
        self._insist = insist
        self._names = {lease.name(1): f'{_PREFIX}{plan}'}
        self.since = 'just now'

    def fetch(self, name: str) -> json_records.FetchedRecord:
        """Read the environment in Mistral that locks a plan."""
        record = self._insist(self._registry.get, self._names[name])
        if record is None:
            raise errors.NoObject(name)
        held, now = _Holder(), self._clock()
        with contextlib.suppress(ValueError):
            held = stored.read(_Holder, record.values.get(_LOCK))
        # The name stays that of the next epoch if the record is replaced.
        self._names.setdefault(
            lease.name(int(name) + 1),
            f'{_PREFIX}{self._plan}~{held.who[:_TOKEN]}',
        )
        at = max(0.0, min(held.at, now))
        self.since = _time(at)
        value = {'who': held.who, 'at': at}
        return json_records.FetchedRecord(value=value, age=now - at)

    def create(self, name: str, value: abc.Mapping[str, Any]) -> bool:
        """Lock a plan by an environment in Mistral, unless one does."""
        record = Record(
            name=self._names[name],
            description=f'Plan {self._plan} is locked for a change',
            values={_LOCK: {'version': _VERSION, **value}},
        )
        return _created(self._registry, record)

    def delete(self, name: str) -> None:
        self._insist(self._registry.delete, self._names[name])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Claim:
    """A name that was taken.

    :ivar token: unique for each taking.
    """

    name: str
    token: str
    since: str


class Claims:
    """The names and the locks of a project's plans.

    A caller that replaces or releases a claim holds the plan's lock.

    :param clock: the time, in seconds since 1970.
    """

    def __init__(
        self,
        registry: Registry,
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
        """Keep other callers from changing a plan.

        The change stays if the lock cannot be released; the lock then expires.

        :raises errors.PlanBusy: another caller changes it, for too long.
        """
        deadline = self._clock() + _PATIENCE
        while True:
            epochs = _Epochs(self._registry, name, self._clock, self._insist)
            lock = lease.Lease(
                epochs,
                who=str(uuid.uuid4()),
                expiry=_EXPIRY,
                safe=_SAFE,
                clock=self._clock,
            )
            if lock.acquire():
                break
            if self._clock() >= deadline:
                raise errors.PlanBusy(
                    f'Plan {name} has been locked for a change since '
                    f'{epochs.since}; wait for it, or, if it was interrupted, '
                    f'delete the Mistral environment {_PREFIX}{name}'
                )
            self._sleep(_INTERVAL)
        until = _time(self._clock() + _EXPIRY)
        try:
            yield
        finally:
            try:
                lock.drop()
            except errors.Error as exc:
                LOG.warning(
                    'Cannot release the lock of plan %s: %s. It blocks other '
                    'changes until %s, unless you delete the Mistral '
                    'environment %s%s.',
                    name,
                    exc,
                    until,
                    _PREFIX,
                    name,
                )

    def summaries(self) -> list[plans.Summary]:
        """Return a summary of each claimed plan name, sorted by name."""
        summaries = [
            plans.Summary(
                name=record.name,
                description=record.description,
                created_at=_claim(record).since,
            )
            for record in self._registry.find()
            if isinstance(record.values.get(_CLAIM), dict)
        ]
        return sorted(summaries, key=lambda summary: summary.name)

    def take(self, name: str, description: str) -> Claim | None:
        """Take a name; None where it is taken.

        :raises errors.Exists: the name has a record that is not a plan's.
        """
        values = {'since': _time(self._clock()), 'token': str(uuid.uuid4())}
        record = Record(
            name=name,
            description=description,
            values={_CLAIM: {'version': _VERSION, **values}},
        )
        if _created(self._registry, record):
            return Claim(name=name, **values)
        self.find(name)
        return None

    def find(self, name: str) -> Claim | None:
        """Return the claim on a name; None if the name is free.

        :raises errors.Exists: the name has a record that is not a plan's.
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
        """Return whether the claim on a name is still the same."""
        try:
            return self.find(claim.name) == claim
        except errors.Exists:
            return False

    def release(self, claim: Claim) -> None:
        """Release a name, unless it now belongs to another caller."""
        if self.has(claim):
            self._registry.delete(claim.name)


def _created(registry: Registry, record: Record) -> bool:
    """Create a record; False where its name is taken."""
    try:
        return registry.create(record)
    except errors.Unavailable:
        # The request may have succeeded, and its answer got lost.
        if registry.get(record.name) == record:
            return True
        raise


def _claim(record: Record) -> Claim:
    """Read a claim. An invalid one has no token."""
    try:
        return stored.read(
            Claim, {**record.values[_CLAIM], 'name': record.name}
        )
    except ValueError:
        return Claim(name=record.name, token=_NO_TOKEN, since='')


def _time(seconds: float) -> str:
    """Return a time in UTC for people."""
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.isoformat(timespec='seconds')
