# SPDX-License-Identifier: Apache-2.0
"""Advance an operation until it has ended or another process leads it.

The process that does so may die anywhere. It records what it starts first, as
starting, and the next leader finds out what of that was delivered.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import itertools
import time

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import giving
from heat_plugins.runs.fleet import handling
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet.records import book as books
from heat_plugins.runs.fleet.records import journal
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import lease as leases
from heat_plugins.runs.start import targets
from heat_plugins.signals import live

#: Seconds between two listings.
POLL = 1.0

_Operation = operations.Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tools:
    """What it takes to advance operations.

    :ivar sign: returns what signs the URLs of a container, and makes it if
        need be.
    :ivar who: the name of who advances, for people.
    """

    heat: orchestration.Deploying
    book: books.Book
    sign: abc.Callable[[str], keys.Signer]
    who: str
    clock: abc.Callable[[], float] = time.time
    monotonic: abc.Callable[[], float] = time.monotonic
    sleep: abc.Callable[[float], None] = time.sleep


class Advancer:
    """Advances one operation, if no other process does.

    :param found: targets that were chosen a moment ago.
    """

    def __init__(
        self,
        tools: Tools,
        order: operations.Order,
        *,
        found: abc.Iterable[targets.Target] = (),
    ) -> None:
        self._tools = tools
        self._book = tools.book
        self._order = order
        self._sign = functools.cache(tools.sign)
        self._lease = leases.Lease(
            tools.book,
            order.id,
            who=tools.who,
            clock=tools.clock,
            monotonic=tools.monotonic,
            sleep=tools.sleep,
        )
        self._op = _Operation.new(order)
        self._journal = journal.Journal(
            tools.book, order, self._lease, tools.monotonic
        )
        self._giver = giving.Giver(
            tools.heat,
            handling.Handler(
                tools.heat,
                tools.book.store,
                tools.book.container,
                sign=self._sign,
                check=self._lease.check,
                clock=tools.clock,
                found=found,
            ),
            self._journal,
            tools.book.pool,
            clock=tools.clock,
            monotonic=tools.monotonic,
        )
        self._next_listing = 0.0
        # Whether a step was not finished.
        self._is_stale = False

    @property
    def operation(self) -> _Operation:
        """The operation as it was seen last."""
        return self._op

    @property
    def is_leading(self) -> bool:
        return self._lease.epoch is not None

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do at once."""
        return self._giver.is_busy

    def begin(self, registered: str | None = None) -> None:
        """Record a new operation, and lead it."""
        # The container, too.
        self._sign(self._book.container)
        self._lease.begin()
        self._op = self._op.changed(registered=registered)
        self._journal.begin(self._op)

    def step(self) -> _Operation:
        """Advance the operation, or see how it stands if another one does.

        :raises errors.Error: the object store does not answer.
        :raises errors.Error: Heat does not, or the operation was deleted.
        """
        try:
            if self.is_leading and self._is_stale:
                self._reload()
            if self.is_leading or self._lead():
                self._advance()
        except leases.Lost:
            self._lease.epoch = None
        except BaseException:
            # Half of a step may have been done.
            self._is_stale = True
            raise
        return self._op

    def release(self) -> None:
        """Let another process advance it at once."""
        if not self.is_leading:
            return
        # Else the lease expires.
        with contextlib.suppress(errors.Error, leases.Lost):
            self._lease.check()
            if not self._is_stale:
                self._journal.write(self._op)
            self._lease.release()

    # Leading

    def _reload(self) -> None:
        """Go on from what is recorded."""
        self._op = self._journal.load()
        self._giver.take_over(self._op)
        self._is_stale = False

    def _lead(self) -> bool:
        """Take over an operation that no process advances."""
        epoch = self._book.epoch(self._order.id)
        self._op, _ = self._book.operation(self._order, epoch)
        if self._op.ended and not self._listed(
            layout.requests(self._order.id)
        ):
            return False
        if not self._lease.acquire(epoch):
            return False
        # The former leader may have written until it lost the lease.
        self._reload()
        return True

    # A step

    def _advance(self) -> None:
        self._lease.check()
        arrived: set[str] = set()
        now = self._tools.monotonic()
        # Steps that start runs follow each other without a pause.
        if not self.is_busy or now >= self._next_listing:
            arrived = self._listed(layout.arrivals(self._order.id))
            self._next_listing = now + POLL
        found = self._follow(self._op, arrived)
        if not found.ended:
            found = self._giver.settle(found, arrived)
        step = deciding.advance(found, self._tools.clock())
        while step.expire or step.withdraw:
            before = step.operation
            found = self._giver.end(step)
            if found == before:
                # Heat or the store is out of order: later.
                break
            step = deciding.advance(found, self._tools.clock())
        self._journal.record(step.operation)
        self._op = step.operation
        self._op = self._giver.start(self._op, step.start)
        if self._op.ended:
            self._finish()

    def _listed(self, prefix: str) -> set[str]:
        entries = self._book.store.iterate(self._book.container, prefix)
        most = 4 * len(self._order.members) + 1000
        return {one.name for one in itertools.islice(entries, most)}

    def _follow(self, found: _Operation, arrived: set[str]) -> _Operation:
        """Do what a user has asked for."""
        prefix = layout.requests(found.id)
        names = sorted(one for one in arrived if one.startswith(prefix))
        for name in names:
            if name not in found.control.handled:
                wanted = self._book.read_request(name)
                if wanted is not None:
                    found = fleet_requests.follow(
                        found, wanted, self._tools.clock()
                    )
                handled = (*found.control.handled, name)[
                    -fleet_requests.KEPT :
                ]
                found = found.changed(handled=handled)
            self._journal.use(name)
        if self._op.ended and not found.ended:
            found = found.changed(
                registered=fleet_requests.register(
                    self._tools.heat, found.order
                )
            )
        return found

    def _finish(self) -> None:
        """Leave an operation that has ended."""
        registered = self._op.control.registered
        if registered is not None:
            self._tools.heat.delete_config(registered)
            self._op = self._op.changed(registered=None)
        asked = layout.requests(self._order.id)
        self._book.discard(
            [
                one
                for one in self._listed(layout.arrivals(self._order.id))
                # Servers may still read that they must stop.
                if not one.startswith(asked) and live.signal_name(one) == one
            ]
        )
        self.release()
