# SPDX-License-Identifier: Apache-2.0
"""Advancing an operation, until it has ended or somebody else leads it.

It may die anywhere. What it starts is recorded first, as starting; who comes
after it looks for what those members were given by the mark of their run.
Before a run is taken from its server without a result, the record says that
it was given; so what is recorded as starting, and has neither a result nor a
mark, was never given.
"""

from collections import abc
import contextlib
import dataclasses
import itertools
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import keys
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import book as books
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import handling
from heat_plugins.runs.fleet import journal
from heat_plugins.runs.fleet import layout
from heat_plugins.runs.fleet import lease as leases
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.start import targets
from heat_plugins.signals import beginning
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

#: Seconds between two listings.
POLL = 1.0

# Members that one step starts, or settles, before it listens again.
_CHUNK = 64

# Seconds between two looks whether stacks are there.
_DEEP = 15.0

# Seconds for which Heat may be out of order for a run that starts, and until
# the next attempt to give it to its server.
_BUDGET, _AGAIN = 300.0, 5.0

_Changes = dict[str, Any]
_Operation = operations.Operation
_State = operations.State


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
    """Advances one operation, if nobody else does.

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
        self._lease = leases.Lease(
            tools.book,
            order.id,
            who=tools.who,
            clock=tools.clock,
            monotonic=tools.monotonic,
            sleep=tools.sleep,
        )
        self._handler = handling.Handler(
            tools.heat,
            tools.book.store,
            tools.book.container,
            check=self._lease.check,
            clock=tools.clock,
            found=found,
        )
        self._signer: keys.Signer | None = None
        self._op = _Operation.new(order)
        self._journal = journal.Journal(
            tools.book, order, self._lease, tools.monotonic
        )
        self._next_deep = 0.0
        # Members that are recorded as starting: to be given their run, and
        # those of which it must be found out first, with the time for that.
        self._queue: list[int] = []
        self._doubtful: dict[int, float] = {}
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
        return bool(self._queue)

    def begin(self, registered: str | None = None) -> None:
        """Record a new operation, and lead it."""
        self._sign()
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
        self._queue = []
        now = self._tools.monotonic()
        self._doubtful = {
            n: now
            for n in self._op.live
            if self._op.attempts[n].state is _State.STARTING
        }
        self._is_stale = False

    def _lead(self) -> bool:
        """Take over an operation that nobody advances."""
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
        arrived = self._listed(layout.arrivals(self._order.id))
        found = self._follow(self._op, arrived)
        if not found.ended:
            found = self._read(found, arrived)
            found = self._take_out_gone(found)
            found = self._resolve(found)
        step = deciding.advance(self._held(found), self._tools.clock())
        while step.expire or step.withdraw:
            before = step.operation
            found = self._end(step)
            if found == before:
                # Heat or the store is out of order: later.
                break
            step = deciding.advance(found, self._tools.clock())
        self._journal.record(step.operation)
        self._op = step.operation
        self._queue += step.start
        self._start()
        if self._op.ended:
            self._finish()

    def _listed(self, prefix: str) -> set[str]:
        entries = self._book.store.iterate(self._book.container, prefix)
        most = 4 * len(self._order.members) + 1000
        return {one.name for one in itertools.islice(entries, most)}

    def _follow(self, found: _Operation, arrived: set[str]) -> _Operation:
        """Do what somebody has asked for."""
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

    def _read(self, found: _Operation, arrived: set[str]) -> _Operation:
        """Settle the members whose results have come."""
        changes: dict[int, _Changes] = {}
        results = []
        for n in found.live:
            one = found.attempts[n]
            name = layout.result(found.id, n, one.number)
            if name in arrived:
                results.append(n)
            elif (
                one.reported_at is None
                and beginning.object_name(name) in arrived
            ):
                changes[n] = {
                    'state': _State.RUNNING,
                    'reported_at': int(self._tools.clock()),
                }
        found = found.attempted(changes)
        return self._settled(found, results[:_CHUNK])

    def _settled(
        self, found: _Operation, members: abc.Sequence[int]
    ) -> _Operation:
        """Settle members by their results, as far as there are any."""
        changes = self._each(lambda n: self._handler.settle(found, n), members)
        for n in changes:
            name = layout.result(found.id, n, found.attempts[n].number)
            self._journal.use(name, beginning.object_name(name))
            self._drop(n)
        return found.attempted(changes)

    def _take_out_gone(self, found: _Operation) -> _Operation:
        """Take those out of an operation whose stack is gone."""
        now = self._tools.monotonic()
        members = [*found.live, *found.pending]
        if now < self._next_deep or not members:
            return found
        self._next_deep = now + _DEEP
        stacks = {found.order.members[n].stack_id for n in members}

        def is_gone(stack_id: str) -> bool | None:
            try:
                return self._tools.heat.stack(stack_id).gone or None
            except errors.NotFound:
                return True

        gone = self._each(is_gone, sorted(stacks))
        if not gone:
            return found
        taken = [n for n in members if found.order.members[n].stack_id in gone]
        found = self._persist(found, taken)
        return found.attempted(
            self._each(lambda n: self._gone(found, n), taken)
        )

    def _gone(self, found: _Operation, member: int) -> _Changes:
        name = found.order.members[member].stack_name
        reason = f'Stack {name} was deleted'
        self._drop(member)
        return self._left_out(found, member, reason)

    def _left_out(
        self, found: _Operation, member: int, reason: str
    ) -> _Changes:
        changes = self._handler.end(found, member, _State.CANCELLED, reason)
        return {**changes, 'gone': True}

    def _resolve(self, found: _Operation) -> _Operation:
        """Find out what became of runs that may have been started."""
        now = self._tools.monotonic()
        due = [n for n, at in self._doubtful.items() if at <= now][:_CHUNK]
        found = self._settled(found, due)
        due = [n for n in due if found.attempts[n].is_live]

        changes = self._each(
            lambda n: self._handler.adopt(found, n) or {}, due
        )
        for n, change in changes.items():
            self._doubtful.pop(n)
            if not change:
                self._queue.append(n)
        return found.attempted(changes)

    def _held(self, found: _Operation) -> _Operation:
        """Take back what was to start, if nothing is to start any more."""
        control = found.control
        if not (control.stopped or control.paused_by):
            # Their time has not begun.
            now = int(self._tools.clock())
            return found.attempted(
                {n: {'started_at': now} for n in self._queue}
            )
        queue, self._queue = self._queue, []
        return found.attempted(
            {
                n: {'state': None, 'number': found.attempts[n].number - 1}
                for n in queue
            }
        )

    def _end(self, step: deciding.Step) -> _Operation:
        """End runs without a result, after a last look for one."""
        found = step.operation
        members = [*step.expire, *step.withdraw]
        found = self._settled(found, members)
        members = [n for n in members if found.attempts[n].is_live]
        found = self._persist(found, members)
        control = found.control

        def end(n: int) -> _Changes:
            self._handler.stop(found, n)
            if n in step.expire:
                told = self._handler.explained(found, n)
                reason = f'{step.expire[n]}. {told}'
                return self._handler.end(found, n, _State.TIMED_OUT, reason)
            who = control.stopped_by
            reason = (
                f'Cancelled by {who}'
                if who
                else 'The deadline of the operation has passed'
            )
            return self._handler.end(found, n, _State.CANCELLED, reason)

        changes = self._each(end, members)
        for n in changes:
            self._drop(n)
        return found.attempted(changes)

    def _start(self) -> None:
        """Give some members their run."""
        chunk, self._queue = self._queue[:_CHUNK], self._queue[_CHUNK:]
        if not chunk:
            return
        found, signer = self._op, self._sign()
        doubtful = []

        def start(n: int) -> _Changes | None:
            try:
                return self._handler.start(found, n, signer)
            except errors.Unavailable as exc:
                # Heat may have taken it all the same.
                begun = found.attempts[n].started_at or 0
                if self._tools.clock() - begun <= _BUDGET:
                    doubtful.append(n)
                    return None
                return self._refused(found, n, exc)
            except errors.Error as exc:
                return self._refused(found, n, exc)

        changes = self._each(start, chunk)
        again = self._tools.monotonic() + _AGAIN
        self._doubtful |= {
            n: again for n in chunk if n in doubtful or n not in changes
        }
        self._op = found.attempted(changes)

    def _refused(
        self, found: _Operation, member: int, exc: Exception
    ) -> _Changes:
        """End a run that Heat did not take."""
        one = found.order.members[member]
        if isinstance(exc, errors.NotFound) and not isinstance(
            exc, errors.NoObject
        ):
            reason = f'{one.resource} is no longer in stack {one.stack_name}'
            return self._left_out(found, member, reason)
        return self._handler.end(found, member, _State.FAILED, str(exc))

    def _each(
        self,
        do: abc.Callable[[Any], Any],
        things: abc.Sequence[Any],
    ) -> dict[Any, Any]:
        """Return what comes of each; what may pass is left for later."""

        def attempt(thing: Any) -> Any:
            try:
                return do(thing)
            except errors.Unavailable as exc:
                LOG.info(
                    'Operation %(id)s: retrying soon: %(error)s',
                    {'id': self._order.id, 'error': exc},
                )
                return None

        results = self._book.pool.each(attempt, things)
        return {
            thing: result
            for thing, result in zip(things, results, strict=True)
            if result is not None
        }

    def _drop(self, member: int) -> None:
        self._doubtful.pop(member, None)
        if member in self._queue:
            self._queue.remove(member)

    def _persist(
        self, found: _Operation, members: abc.Sequence[int]
    ) -> _Operation:
        """Let the record say that runs were given which are taken back."""
        unknown = [
            n for n in members if found.attempts[n].state is _State.STARTING
        ]
        found = found.attempted(
            self._each(lambda n: self._handler.adopt(found, n), unknown)
        )
        self._journal.given(found, members)
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

    def _sign(self) -> keys.Signer:
        if self._signer is None:
            self._signer = self._tools.sign(self._book.container)
        return self._signer
