# SPDX-License-Identifier: Apache-2.0
"""A lease: one process at a time holds it, until it releases it or dies.

Its holder creates a record with the number of its epoch, once, and renews it
by rewriting it. The record's age tells whether the holder lives: once it
`has_expired`, another process may hold the next epoch. The holder itself stops
when its last renewal is older than its safe time.

- The caller who changes a plan drops the lease at the end, without a trace.
  Its epochs are records in the registry of names, see `plans.plan_claims`, and
  the first one goes first. So a process that follows a later one, and finds
  the first gone or replaced, holds nothing.
- A run of validations is a record that is the lease. Once it has expired, the
  run is lost.

`exclusive` says which windows remain.
"""

from collections import abc
import dataclasses
import re
import threading
import time
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire

#: Seconds after which a lease that is not renewed has expired.
EXPIRY = 45.0

#: Seconds after a renewal in which its holder relies on it.
SAFE = 25.0

# Seconds between two renewals.
_RENEWAL = 10.0

# Seconds by which two clocks may differ.
_SKEW = 600.0

# The most bytes of a lease.
_LIMIT = 64 * 1024

# The most epochs, the most objects that are listed for them, and how many a
# listing may not show yet.
_EPOCHS, _LISTED, _HIDDEN = 20_000, 25_000, 20

# The most epochs that are asked for by name, where none is listed.
_ASKED = 100

_EPOCH = re.compile('[0-9]{6}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Renewal:
    """The content of a lease.

    :ivar who: the name of the holder, for people.
    :ivar at: when it was renewed, by the holder's clock.
    """

    who: str
    at: float
    released: bool = False


class Epochs(Protocol):
    """Where the epochs of a lease are recorded by name, each created once.

    They are objects, see `json_records.Records`, or for plans names in a
    registry.
    """

    def fetch(self, name: str) -> json_records.FetchedRecord:
        """Return an epoch; see `json_records.Records.fetch`."""

    def create(
        self,
        name: str,
        value: Any,
        *,
        now: abc.Callable[[], float],
        clock: abc.Callable[[], float],
        sleep: abc.Callable[[float], None],
    ) -> bool:
        """Record an epoch; False if another process has done so."""

    def write(self, name: str, value: Any) -> None:
        """Record an epoch that we hold once more."""

    def delete(self, name: str) -> None:
        """Delete an epoch, if it is there."""


class Lost(Exception):
    """Another process leads, or may do so."""


def has_expired(age: float, expiry: float = EXPIRY) -> bool:
    """Say whether the holder of what has that age counts as dead."""
    return age > expiry


def name(epoch: int, folder: str = '') -> str:
    """Return the name of an epoch.

    :param folder: the prefix of the names of all epochs.
    """
    return f'{folder}{epoch:06d}'


def last(
    store: stores.ObjectStore,
    container: str,
    folder: str,
    *,
    certain: bool = True,
) -> int:
    """Return the last epoch; 0 if there is none.

    Epochs are consecutive, so those after a gap do not count. As a listing may
    lag behind, a missing epoch is requested by name, a few times.

    :param certain: whether to request missing epochs.
    :raises errors.Unreadable: there are too many.
    """

    def has(epoch: int) -> bool:
        return store.has_object(container, name(epoch, folder))

    names = store.first_names(container, folder, _LISTED)
    numbers = [each.removeprefix(folder) for each in names]
    there = {int(each) for each in numbers if _EPOCH.fullmatch(each)}
    number, hidden = 0, _HIDDEN if certain else 0
    while number + 1 in there or (hidden and has(number + 1)):
        number += 1
        hidden -= number not in there
    if number >= _EPOCHS:
        raise errors.Unreadable(f'more than {_EPOCHS} processes led it')
    return number


def objects(
    store: stores.ObjectStore, container: str, folder: str
) -> json_records.Records:
    """Return what keeps the epochs of a lease as objects."""
    return json_records.Records(store, container, prefix=folder, limit=_LIMIT)


class Lease:
    """The lease of one record or task.

    :param who: the name of this process, for people; unique if the lease is
        dropped.
    :param expiry: seconds after which it has expired if it is not renewed.
    :param safe: seconds after a renewal in which we rely on it.
    :ivar epoch: the epoch that we hold; None if we hold none.
    """

    def __init__(
        self,
        epochs: Epochs,
        *,
        who: str,
        expiry: float = EXPIRY,
        safe: float = SAFE,
        clock: abc.Callable[[], float] = time.time,
        monotonic: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._epochs = epochs
        self._who = who
        self._expiry = expiry
        self._safe = safe
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._renewed = 0.0
        # Who had the first epoch when we acquired ours.
        self._first: str | None = None
        self.epoch: int | None = None

    def begin(self) -> None:
        """Hold the first epoch of a new lease, unknown to other processes."""
        self._renewed = self._monotonic()
        self._epochs.write(name(1), self._values())
        self.epoch = 1

    def acquire(self, epoch: int | None = None) -> bool:
        """Hold the next epoch, unless another process holds the last.

        :param epoch: the last one; None: it is asked for by name.
        """
        # Before all that is judged: if it is still there at the end, no
        # process has dropped the lease meanwhile.
        first = None if epoch == 0 else self.holder(1)
        if epoch is None:
            epoch = 0 if first is None else self._last()
        if epoch and (first is None or self.is_held(epoch)):
            return False
        self._first = first if epoch else self._who
        begun = self._monotonic()
        if not self._epochs.create(
            name(epoch + 1),
            self._values(),
            now=self._clock,
            clock=self._monotonic,
            sleep=self._sleep,
        ):
            return False
        if epoch and self.holder(1) != self._first:
            # It was dropped meanwhile.
            self._epochs.delete(name(epoch + 1))
            return False
        self._renewed, self.epoch = begun, epoch + 1
        return True

    def _last(self) -> int:
        """Return the last epoch after the first, as far as many are read."""
        numbers = range(1, _ASKED)
        return next((n for n in numbers if self.holder(n + 1) is None), _ASKED)

    def check(self) -> None:
        """Renew the lease when it is due.

        :raises Lost: another process may lead.
        """
        with self._lock:
            if self.epoch is None:
                raise Lost
            while (now := self._monotonic()) - self._renewed >= _RENEWAL:
                try:
                    self._renew(self.epoch, now)
                except errors.Unavailable:
                    # The lease holds for a while without it.
                    if self._monotonic() - self._renewed > self._safe:
                        raise
                    return

    def _renew(self, epoch: int, now: float) -> None:
        late = now - self._renewed > self._safe
        if late:
            self._check_following(epoch)
        self._epochs.write(name(epoch), self._values())
        if late:
            # Another process may have taken over between the two requests.
            self._check_following(epoch)
        self._renewed = now

    def _check_following(self, epoch: int) -> None:
        if self.holder(epoch + 1) is not None:
            self.epoch = None
            raise Lost

    def release(self) -> None:
        """Let another process hold it at once."""
        with self._lock:
            epoch, self.epoch = self.epoch, None
            if epoch is not None:
                self._epochs.write(name(epoch), self._values(released=True))

    def drop(self) -> None:
        """Release it, and leave nothing of it.

        Who comes too late leaves that to the next holder: another process may
        have taken over, or is about to.
        """
        with self._lock:
            epoch, self.epoch = self.epoch or 0, None
            late = self._monotonic() - self._renewed > self._safe
            if not late and self.holder(1) == self._first:
                for each in range(1, epoch + 1):
                    self._epochs.delete(name(each))

    def holder(self, epoch: int) -> str | None:
        """Return who has recorded an epoch; None if it is not there."""
        try:
            value = self._epochs.fetch(name(epoch)).value
            return stored.read(Renewal, value).who
        except errors.NoObject:
            return None
        except ValueError:
            return ''

    def is_held(self, epoch: int) -> bool:
        """Say whether a process holds an epoch."""
        try:
            record = self._epochs.fetch(name(epoch))
        except (errors.NoObject, ValueError):
            return False
        try:
            other = stored.read(Renewal, record.value)
        except stored.LaterVersion:
            return not has_expired(record.age, self._expiry)
        except ValueError:
            return False
        if not has_expired(record.age, self._expiry):
            wire.warn_if_ahead(other.at, self._clock(), other.who)
        # A store may tell no ages. Then two clocks are compared.
        age = record.age or self._clock() - other.at - _SKEW
        return not (other.released or has_expired(age, self._expiry))

    def _values(self, *, released: bool = False) -> dict[str, Any]:
        ours = Renewal(who=self._who, at=self._clock(), released=released)
        return stored.versioned(Renewal, stored.dump(ours))
