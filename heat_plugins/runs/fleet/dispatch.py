# SPDX-License-Identifier: Apache-2.0
"""Deliver runs to many members of an operation, and withdraw them.

A process that has died may have delivered what is recorded as starting. So
this looks for the mark of such a member's run before it delivers one. Before
it withdraws a run without a result, the record says that the server had it:
what is recorded as starting, and has neither a result nor a mark, was never
delivered.
"""

from collections import abc
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs import services
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.fleet import member_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import journals
from heat_plugins.runs.fleet.records import layout
from heat_plugins.signals import beginning

LOG = foreign.logger(__name__)

# Members that one step starts, or settles.
_CHUNK = 64

# Seconds between two checks whether the stacks exist.
_DEEP = 15.0

# Seconds for which Heat may be out of order for a run that starts, and until
# the next attempt to give it to its server.
_BUDGET, _AGAIN = 300.0, 5.0

# Seconds between two checks whether another run has ended.
_WAIT = 10

_Changes = dict[str, Any]
_Operation = operations.Operation
_State = operations.State


def unanswered(found: _Operation) -> dict[int, str]:
    """Return the objects that results may still be which no longer count."""
    return {
        n: layout.result(found.id, n, one.number)
        for n, one in enumerate(found.attempts)
        if one.is_unanswered
    }


class Dispatcher:
    """Gives members of one operation their runs, and settles those."""

    def __init__(
        self,
        tools: services.Services,
        members: member_runs.MemberRuns,
        journal: journals.Journal,
        exclusion: exclusions.Exclusion,
    ) -> None:
        self._tools = tools
        self._members = members
        self._journal = journal
        self._exclusion = exclusion
        self._next_deep = 0.0
        # Members that are recorded as starting: those that were given
        # nothing, and those to be looked up first, with the time for that.
        self._queue: list[int] = []
        self._doubtful: dict[int, float] = {}
        # Those that did not start at once; their time runs.
        self._tried: set[int] = set()

    @property
    def is_busy(self) -> bool:
        """Whether members wait for their run."""
        return bool(self._queue)

    def take_over(self, found: _Operation) -> None:
        """Begin with what another process, or a failed step, has recorded."""
        now = self._tools.monotonic()
        self._queue, self._tried = [], set()
        self._doubtful = {
            n: now
            for n in found.live
            if found.attempts[n].state is _State.STARTING
        }

    def settle(
        self, found: _Operation, arrived: abc.Container[str]
    ) -> _Operation:
        """Settle the members of which there is news.

        :param arrived: the names of the objects that servers have sent.
        """
        found = self._read(found, arrived)
        found = self._take_out_gone(found)
        return self._hold(self._resolve(found))

    def _read(
        self, found: _Operation, arrived: abc.Container[str]
    ) -> _Operation:
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
        found = self._read_late(found.attempted(changes), arrived)
        return self._settled(found, results[:_CHUNK])

    def _read_late(
        self, found: _Operation, arrived: abc.Container[str]
    ) -> _Operation:
        """Note the results of runs that have ended without them."""
        names = unanswered(found)
        late = [n for n, name in names.items() if name in arrived][:_CHUNK]
        changes = self._each(
            lambda n: self._members.settle_late(found, n), late
        )
        self._journal.use(*(names[n] for n in changes))
        return found.attempted(changes)

    def _settled(
        self, found: _Operation, members: abc.Sequence[int]
    ) -> _Operation:
        """Settle members by their results, as far as there are any."""
        changes = self._each(lambda n: self._members.settle(found, n), members)
        for n in changes:
            name = layout.result(found.id, n, found.attempts[n].number)
            self._journal.use(name, beginning.object_name(name))
        return self._changed(found, changes)

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

        def leave_out(n: int) -> _Changes:
            name = found.order.members[n].stack_name
            return self._left_out(found, n, f'Stack {name} was deleted')

        return self._changed(found, self._each(leave_out, taken))

    def _left_out(
        self, found: _Operation, member: int, reason: str
    ) -> _Changes:
        changes = self._members.end(found, member, _State.CANCELLED, reason)
        return {**changes, 'gone': True}

    def _resolve(self, found: _Operation) -> _Operation:
        """Look up the runs that another process may have given."""
        now = self._tools.monotonic()
        due = [n for n, at in self._doubtful.items() if at <= now][:_CHUNK]
        found = self._settled(found, due)
        due = [n for n in due if found.attempts[n].is_live]

        changes = self._each(
            lambda n: self._members.adopt(found, n) or {}, due
        )
        for n, change in changes.items():
            self._doubtful.pop(n)
            if not change:
                self._queue.append(n)
        return found.attempted(changes)

    def _hold(self, found: _Operation) -> _Operation:
        """Take members from the queue if nothing else starts."""
        control = found.control
        if not (control.stopped or control.paused_by):
            # Their time has not begun.
            now = int(self._tools.clock())
            return found.attempted(
                {
                    n: {'started_at': now}
                    for n in self._queue
                    if n not in self._tried
                }
            )
        queue, self._queue = self._queue, []
        self._tried.difference_update(queue)
        return found.attempted(
            {
                n: {'state': None, 'number': found.attempts[n].number - 1}
                for n in queue
            }
        )

    def end(self, step: deciding.Step) -> _Operation:
        """End runs whose time is over or that were cancelled.

        A result that has come counts.
        """
        found = step.operation
        members = [*step.expire, *step.withdraw]
        found = self._settled(found, members)
        members = [n for n in members if found.attempts[n].is_live]
        found = self._persist(found, members)
        # All of them before the first is withdrawn, which takes longer.
        told = self._each(lambda n: self._members.stop(found, n), members)
        control = found.control

        def end(n: int) -> _Changes:
            if n in step.expire:
                known = self._members.explained(found, n)
                reason = f'{step.expire[n]}. {known}'
                return self._members.end(found, n, _State.TIMED_OUT, reason)
            who = found.attempts[n].cancelled_by or control.stopped_by
            reason = (
                f'Cancelled by {who}'
                if who
                else 'The deadline of the operation has passed'
            )
            return self._members.end(found, n, _State.CANCELLED, reason)

        return self._changed(found, self._each(end, list(told)))

    def start(
        self, found: _Operation, members: abc.Iterable[int]
    ) -> _Operation:
        """Give some members their run, those who wait first."""
        self._queue += members
        chunk = self._queue[:_CHUNK]
        if not chunk:
            return found
        refused = self._tools.refusals(found.order, chunk)
        others = self._exclusion.others(found.order, chunk)
        self._queue = self._queue[_CHUNK:]

        def start(n: int) -> _Changes | None:
            try:
                if n in refused:
                    raise errors.Refused(refused[n])
                if n in others:
                    return self._excluded(found, n, others[n])
                return self._members.start(found, n)
            except errors.Unavailable as exc:
                # Heat may have taken it all the same.
                begun = found.attempts[n].started_at or 0
                if self._tools.clock() - begun <= _BUDGET:
                    return None
                return self._refused(found, n, exc)
            except errors.Error as exc:
                return self._refused(found, n, exc)

        changes = self._each(start, chunk)
        again = self._tools.monotonic() + _AGAIN
        self._doubtful |= {n: again for n in chunk if n not in changes}
        self._tried = (self._tried | {*chunk}) - changes.keys()
        return found.attempted(changes)

    def _excluded(
        self, found: _Operation, member: int, other: exclusions.Other
    ) -> _Changes | None:
        """Leave a member to another run; None if that may give way."""
        if not other.is_decided:
            return None
        told = f'{found.order.action} already runs: {other.run_id}'
        now = int(self._tools.clock())
        if found.order.limits.if_running == operations.SKIP:
            return {
                'state': _State.SKIPPED,
                'reason': told,
                'started_at': None,
                'ended_at': now,
            }
        return {
            'state': None,
            'number': found.attempts[member].number - 1,
            'reason': told,
            'started_at': None,
            'wait_until': now + _WAIT,
        }

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
        return self._members.end(found, member, _State.FAILED, str(exc))

    def _each(
        self,
        do: abc.Callable[[Any], Any],
        things: abc.Sequence[Any],
    ) -> dict[Any, Any]:
        """Return the results; a temporary failure leaves one out."""

        def attempt(thing: Any) -> Any:
            try:
                return do(thing)
            except errors.Unavailable as exc:
                LOG.info('Cannot reach a service; retrying: %s', exc)
                return None

        results = self._tools.records.pool.each(attempt, things)
        return {
            thing: result
            for thing, result in zip(things, results, strict=True)
            if result is not None
        }

    def _changed(
        self, found: _Operation, changes: abc.Mapping[int, _Changes]
    ) -> _Operation:
        """Return an operation with members that have ended."""
        for n in changes:
            self._doubtful.pop(n, None)
        self._tried.difference_update(changes)
        self._queue = [n for n in self._queue if n not in changes]
        return found.attempted(changes)

    def _persist(
        self, found: _Operation, members: abc.Sequence[int]
    ) -> _Operation:
        """Record that servers had runs, before these are withdrawn."""
        unknown = [
            n for n in members if found.attempts[n].state is _State.STARTING
        ]
        found = found.attempted(
            self._each(lambda n: self._members.adopt(found, n), unknown)
        )
        self._journal.given(found, members)
        return found
