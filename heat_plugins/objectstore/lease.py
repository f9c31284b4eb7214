# SPDX-License-Identifier: Apache-2.0
"""A lease: one process at a time holds it, until it releases it or dies.

Its holder creates an object with the number of its epoch, and renews it by
rewriting it. The object's age, by the store's clock, tells whether the holder
lives: once it `has_expired`, another process may hold the next epoch. The
holder itself stops when its last renewal is older than its safe time.

- The leader of an operation writes its records below its epoch, so no process
  reads what a former leader still writes. Its epochs stay.
- A process that changes a plan drops the lease at the end: nothing of it is
  left. The former epochs go first. So a process that follows one of those, and
  finds it gone or replaced, holds nothing.
- A run of validations is a record that is the lease. Once it has expired, the
  run may be repeated, by another holder.

`exclusive` says which windows remain.
"""

from collections import abc
import dataclasses
import itertools
import re
import threading
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.objectstore import clocks
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores

#: Seconds after which a lease that is not renewed has expired.
EXPIRY = 45.0

#: Seconds after a renewal in which its leader relies on it.
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


class Lost(Exception):
    """Another process leads, or may do so."""


def has_expired(age: float, expiry: float = EXPIRY) -> bool:
    """Say whether the holder of an object of that age counts as dead."""
    return age > expiry


def name(folder: str, epoch: int) -> str:
    """Return the name of an epoch's object.

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
        return store.has_object(container, name(folder, epoch))

    number, there = 0, _listed(store, container, folder)
    hidden = _HIDDEN if certain else 0
    while number + 1 in there or (hidden and has(number + 1)):
        number += 1
        hidden -= number not in there
    if number >= _EPOCHS:
        raise errors.Unreadable(f'more than {_EPOCHS} processes led it')
    return number


def _listed(
    store: stores.ObjectStore, container: str, folder: str
) -> set[int]:
    try:
        entries = itertools.islice(store.iterate(container, folder), _LISTED)
        numbers = [entry.name.removeprefix(folder) for entry in entries]
    except errors.NoObject:
        return set()
    return {int(number) for number in numbers if _EPOCH.fullmatch(number)}


class Lease:
    """The lease of one record or task.

    :param folder: the prefix of the names of its epochs' objects.
    :param who: the name of this process, for people.
    :param expiry: seconds after which it has expired if it is not renewed.
    :param safe: seconds after a renewal in which we rely on it.
    :ivar epoch: the epoch that we hold; None if we hold none.
    :ivar other: the process that kept us from it, if that is known.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        container: str,
        folder: str,
        *,
        who: str,
        expiry: float = EXPIRY,
        safe: float = SAFE,
        clock: abc.Callable[[], float] = time.time,
        monotonic: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._container = container
        self._records = json_records.Records(store, container, limit=_LIMIT)
        self._folder = folder
        self._who = who
        self._expiry = expiry
        self._safe = safe
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._renewed = 0.0
        self.epoch: int | None = None
        self.other: Renewal | None = None

    def begin(self) -> None:
        """Lead the first epoch of a new lease, unknown to other processes."""
        self._renewed = self._monotonic()
        self._put(1)
        self.epoch = 1

    def take(self) -> bool:
        """Hold it, unless another process does."""
        return self.acquire(last(self._store, self._container, self._folder))

    def acquire(self, epoch: int) -> bool:
        """Hold the next epoch, unless another process holds the last.

        :param epoch: the last one.
        """
        former = self._fetch(epoch) if epoch else None
        if former is not None and self._is_held(former):
            return False
        begun = self._monotonic()
        created = self._records.create(
            name(self._folder, epoch + 1),
            self._values(),
            now=self._clock,
            clock=self._monotonic,
            sleep=self._sleep,
        )
        if created and former is not None:
            now = self._fetch(epoch)
            if now is None or now.value != former.value:
                # It was dropped meanwhile, or its holder lives after all.
                self._records.delete(name(self._folder, epoch + 1))
                return False
        if created:
            self._renewed = begun
            self.epoch = epoch + 1
        return created

    def check(self) -> None:
        """Renew the lease when it is due.

        :raises Lost: another process may lead.
        """
        with self._lock:
            while True:
                if self.epoch is None:
                    raise Lost
                now = self._monotonic()
                if now - self._renewed < _RENEWAL:
                    return
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
        self._put(epoch)
        if late:
            # Another process may have taken over between the two requests.
            self._check_following(epoch)
        self._renewed = now

    def _check_following(self, epoch: int) -> None:
        if self._records.has(name(self._folder, epoch + 1)):
            self.epoch = None
            raise Lost

    def release(self) -> None:
        """Let another process lead at once."""
        with self._lock:
            epoch, self.epoch = self.epoch, None
            if epoch is not None:
                self._put(epoch, released=True)

    def drop(self) -> None:
        """Release the lease, and leave nothing of it.

        Who comes too late leaves it all to its next holder.
        """
        with self._lock:
            if self._monotonic() - self._renewed <= self._safe:
                for epoch in range(self.epoch or 0):
                    self._records.delete(name(self._folder, epoch + 1))
            self.epoch = None

    def is_held(self, epoch: int) -> bool:
        """Say whether a process holds an epoch."""
        record = self._fetch(epoch)
        return record is not None and self._is_held(record)

    def _fetch(self, epoch: int) -> json_records.FetchedRecord | None:
        """Return what is stored of an epoch; no value if it is unreadable."""
        try:
            return self._records.fetch(name(self._folder, epoch))
        except errors.NoObject:
            return None
        except ValueError:
            return json_records.FetchedRecord(value=None, age=0.0)

    def _is_held(self, record: json_records.FetchedRecord) -> bool:
        self.other = None
        try:
            other = stored.read(Renewal, record.value)
        except stored.LaterRelease:
            return not has_expired(record.age, self._expiry)
        except ValueError:
            return False
        if not has_expired(record.age, self._expiry):
            clocks.warn_if_ahead(other.at, self._clock(), other.who)
        # A store may tell no ages. Then two clocks are compared.
        age = record.age or self._clock() - other.at - _SKEW
        self.other = other
        return not (other.released or has_expired(age, self._expiry))

    def _put(self, epoch: int, *, released: bool = False) -> None:
        self._records.write(
            name(self._folder, epoch), self._values(released=released)
        )

    def _values(self, *, released: bool = False) -> dict[str, Any]:
        ours = Renewal(who=self._who, at=self._clock(), released=released)
        return stored.versioned(Renewal, stored.dump(ours))
