# SPDX-License-Identifier: Apache-2.0
"""Who advances an operation: one process at a time.

A leader has an object with the number of its epoch, and rewrites it from
time to time. Its age, by the object store's own clock, says whether the
leader lives: after `EXPIRY` seconds another process may lead the next epoch.
The leader itself does nothing once its last renewal is older than `SAFE`.

A window remains: a process that stands still for more than the difference of
these between its last check and the request that it sends then.
"""

from collections import abc
import json
import threading
import time

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.objectstore import claims
from heat_plugins.runs.fleet.records import book as books
from heat_plugins.runs.fleet.records import layout

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


class Lost(Exception):
    """Another process leads the operation, or may do so."""


class Lease:
    """The leadership of one operation.

    :param who: the name of who leads, for people.
    :ivar epoch: the epoch that we lead; None if we do not.
    """

    def __init__(
        self,
        book: books.Book,
        operation_id: str,
        *,
        who: str,
        clock: abc.Callable[[], float] = time.time,
        monotonic: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._book = book
        self._id = operation_id
        self._who = who
        self._clock = clock
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._renewed = 0.0
        self.epoch: int | None = None

    def begin(self) -> None:
        """Lead a new operation, which no other process knows."""
        self._renewed = self._monotonic()
        self._put(1)
        self.epoch = 1

    def acquire(self, epoch: int) -> bool:
        """Lead the epoch after another one, unless a process leads that.

        :param epoch: the last one.
        """
        if epoch and self._is_held(epoch):
            return False
        begun = self._monotonic()
        created = claims.create(
            self._book.store,
            self._book.container,
            layout.lead(self._id, epoch + 1),
            self._body(),
            now=self._clock,
            clock=self._monotonic,
            sleep=self._sleep,
        )
        if created:
            self._renewed = begun
            self.epoch = epoch + 1
        return created

    def check(self) -> None:
        """Renew the lease if it is time to.

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
                    if self._monotonic() - self._renewed > SAFE:
                        raise
                    return

    def _renew(self, epoch: int, now: float) -> None:
        late = now - self._renewed > SAFE
        following = layout.lead(self._id, epoch + 1)
        if late and self._book.store.has_object(
            self._book.container, following
        ):
            self.epoch = None
            raise Lost
        self._put(epoch)
        if late and self._book.store.has_object(
            self._book.container, following
        ):
            # Another process took over between the two requests.
            self.epoch = None
            raise Lost
        self._renewed = now

    def release(self) -> None:
        """Let another process lead at once."""
        with self._lock:
            epoch, self.epoch = self.epoch, None
            if epoch is not None:
                self._put(epoch, released=True)

    def _is_held(self, epoch: int) -> bool:
        try:
            found = self._book.store.fetch(
                self._book.container, layout.lead(self._id, epoch), _LIMIT
            )
            values = bounds.read_json(found.content)
            if values.get('released'):
                return False
            # A store may tell no ages. Then two clocks are compared.
            age = found.age or self._clock() - float(values['at']) - _SKEW
        except (
            errors.NoObject,
            errors.BadSignal,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ):
            return False
        return age <= EXPIRY

    def _put(self, epoch: int, *, released: bool = False) -> None:
        self._book.store.put_object(
            self._book.container,
            layout.lead(self._id, epoch),
            self._body(released=released),
        )

    def _body(self, *, released: bool = False) -> bytes:
        values = {
            'who': self._who,
            'at': self._clock(),
            'released': released,
        }
        return json.dumps(values).encode()
