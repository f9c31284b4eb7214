# SPDX-License-Identifier: Apache-2.0
"""A lease: one process at a time holds it, until it drops it or dies.

Its holder creates a record with the number of its epoch, once. The record's
age tells whether the holder lives: once it has expired, another process may
hold the next epoch.

- The caller who changes a plan drops the lease at the end, without a trace.
  Its epochs are records in the registry of names, see `plans.plan_claims`, and
  the first one goes first. So a process that follows a later one, and finds
  the first gone or replaced, holds nothing.
- A run of validations is a record that is the lease. Once it has expired, the
  run is lost.

`exclusive` says which windows remain.
"""

from collections import abc
import contextlib
import time
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins.objectstore import json_records

# The most epochs that are asked for by name.
_ASKED = 100


class Epochs(Protocol):
    """Where the epochs of a lease are recorded by name, each created once.

    The value of an epoch is a map: ``who`` holds it, and since when, ``at``.
    """

    def fetch(self, name: str) -> json_records.FetchedRecord:
        """Return an epoch; see `json_records.Records.fetch`."""

    def create(self, name: str, value: abc.Mapping[str, Any]) -> bool:
        """Record an epoch; False if another process has done so."""

    def delete(self, name: str) -> None:
        """Delete an epoch, if it is there."""


def name(epoch: int) -> str:
    """Return the name of an epoch."""
    return f'{epoch:06d}'


class Lease:
    """The lease of one task.

    :param who: the unique name of this process.
    :param expiry: seconds after which it has expired.
    :param safe: seconds in which its holder relies on it.
    """

    def __init__(
        self,
        epochs: Epochs,
        *,
        who: str,
        expiry: float,
        safe: float,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._epochs = epochs
        self._who = who
        self._expiry = expiry
        self._safe = safe
        self._clock = clock
        self._begun = 0.0
        # Who had the first epoch when we acquired ours.
        self._first: str | None = None
        self._epoch = 0

    def acquire(self) -> bool:
        """Hold the next epoch, unless another process holds the last."""
        # Before all that is judged: if it is still there at the end, no
        # process has dropped the lease meanwhile.
        first = self._holder(1)
        epoch = 0
        if first is not None:
            # The last one after the first, as far as many are read.
            free = (n for n in range(1, _ASKED) if self._holder(n + 1) is None)
            epoch = next(free, _ASKED)
            # It may be dropped meanwhile, and then is free.
            with contextlib.suppress(errors.NoObject):
                if self._epochs.fetch(name(epoch)).age <= self._expiry:
                    return False
        self._first = first if epoch else self._who
        begun = self._clock()
        value = {'who': self._who, 'at': begun}
        if not self._epochs.create(name(epoch + 1), value):
            return False
        if epoch and self._holder(1) != self._first:
            # It was dropped meanwhile.
            self._epochs.delete(name(epoch + 1))
            return False
        self._begun, self._epoch = begun, epoch + 1
        return True

    def drop(self) -> None:
        """Release it, and delete its epochs.

        A holder that is late leaves them to the next one: another process may
        have taken over, or is about to.
        """
        epoch, self._epoch = self._epoch, 0
        late = self._clock() - self._begun > self._safe
        if not late and self._holder(1) == self._first:
            for each in range(1, epoch + 1):
                self._epochs.delete(name(each))

    def _holder(self, epoch: int) -> str | None:
        """Return the holder of an epoch; None if it is not there."""
        try:
            return str(self._epochs.fetch(name(epoch)).value['who'])
        except errors.NoObject:
            return None
