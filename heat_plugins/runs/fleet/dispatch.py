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
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.fleet import member_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import journals
from heat_plugins.runs.fleet.records import layout
from heat_plugins.signals import body
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

# Members that one step starts, or settles: of a command, and of an engine,
# which delivers to them with one transaction.
_CHUNK, _TOGETHER = 64, 250

# Seconds between two checks whether the stacks and deployments exist, and for
# how many deployments each asks Heat's API.
_DEEP, _ASKED = 15.0, 10

# Seconds for which Heat may be out of order for a run that starts, and until
# the next attempt to give it to its server.
_BUDGET, _AGAIN = 300.0, 5.0

# Seconds between two checks whether another run has ended.
_WAIT = 10

_Changes = dict[str, Any]
_Operation = operations.Operation
_State = operations.State
_run_of = overview.run_of


def unanswered(operation: _Operation) -> dict[int, str]:
    """Return the objects that results may still be which no longer count."""
    return {
        n: layout.result(operation.id, n, attempt.number)
        for n, attempt in enumerate(operation.attempts)
        if attempt.is_unanswered
    }


class _Turns:
    """Gives each of many members its turn, some at a time.

    Those that fail again and again keep no other from a turn.
    """

    def __init__(self) -> None:
        self._last = ('', -1)

    def take(
        self, operation: _Operation, members: abc.Iterable[int], size: int
    ) -> list[int]:
        """Return those whose turn it is, those of one server together."""

        def place(n: int) -> tuple[str, int]:
            return operation.order.members[n].server_id, n

        taken = sorted(
            members, key=lambda n: (place(n) <= self._last, place(n))
        )[:size]
        if taken:
            self._last = place(taken[-1])
        return taken


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
        self._attempts = members.attempts
        self._journal = journal
        self._exclusion = exclusion
        self._next_deep = 0.0
        # Of members whose deployments are checked, whose results have come,
        # in time or late, and that `_resolve` looks up.
        self._checks, self._results = _Turns(), _Turns()
        self._late, self._lookups = _Turns(), _Turns()
        # Members that are recorded as starting: those that were given
        # nothing, and those to be looked up first, with the time for that.
        self._queue: list[int] = []
        self._doubtful: dict[int, float] = {}
        # Those that did not start at once; their time runs.
        self._tried: set[int] = set()
        #: Whether more results have come than the last step has read.
        self.is_behind = False

    @property
    def is_busy(self) -> bool:
        """Whether members wait for their run."""
        return bool(self._queue)

    @property
    def _size(self) -> int:
        """How many members one step starts, or settles."""
        return _CHUNK if self._tools.batches is None else _TOGETHER

    def take_over(self, operation: _Operation) -> None:
        """Begin with what another process, or a failed step, has recorded."""
        now = self._tools.monotonic()
        self._queue, self._tried = [], set()
        self._doubtful = {
            n: now
            for n in operation.live
            if operation.attempts[n].state is _State.STARTING
        }

    def settle(
        self, operation: _Operation, arrived: abc.Container[str]
    ) -> _Operation:
        """Settle the members of which there is news.

        :param arrived: the names of the objects that servers have sent.
        """
        operation = self._read(operation, arrived)
        operation = self._take_out_gone(operation)
        return self._hold(self._resolve(operation))

    def _read(
        self, operation: _Operation, arrived: abc.Container[str]
    ) -> _Operation:
        """Settle the members whose results have come."""
        changes: dict[int, _Changes] = {}
        results = []
        for n in operation.live:
            attempt = operation.attempts[n]
            name = layout.result(operation.id, n, attempt.number)
            if name in arrived:
                results.append(n)
            elif (
                attempt.reported_at is None
                and body.report_name(name) in arrived
            ):
                changes[n] = runs.begun(attempt, self._tools.clock())
        operation = self._read_late(operation.attempted(changes), arrived)
        # A server is told once of what is taken from it at the same time.
        some = self._results.take(operation, results, self._size)
        settled = self._settled(operation, some)
        # In an outage the next step is not worth its requests.
        self.is_behind = len(results) > self._size and settled != operation
        return settled

    def _read_late(
        self, operation: _Operation, arrived: abc.Container[str]
    ) -> _Operation:
        """Note the results of runs that have ended without them."""
        names = unanswered(operation)
        late = [n for n, name in names.items() if name in arrived]
        late = self._late.take(operation, late, _CHUNK)
        noted = self._each(
            lambda n: self._attempts.answered_late(_run_of(operation, n)), late
        )
        self._journal.use(
            *(names[n] for n in noted),
            *(live.control_name(names[n]) for n in noted),
        )
        return operation.attempted(
            {
                n: {'reason': run.reason, 'late': run.late}
                for n, run in noted.items()
            }
        )

    def _settled(
        self, operation: _Operation, members: abc.Sequence[int]
    ) -> _Operation:
        """Settle members by their results, as far as there are any."""
        changes = self._taken(
            self._each(
                lambda n: self._attempts.answered(_run_of(operation, n)),
                members,
            )
        )
        for n in changes:
            name = layout.result(operation.id, n, operation.attempts[n].number)
            self._journal.use(name, body.report_name(name))
        return self._changed(operation, changes)

    def _take_out_gone(self, operation: _Operation) -> _Operation:
        """Take out those whose stack or deployment is gone."""
        now = self._tools.monotonic()
        members = [*operation.live, *operation.pending]
        if now < self._next_deep or not members:
            return operation
        self._next_deep = now + _DEEP
        its = {n: _run_of(operation, n) for n in members}
        gone = self._each(
            lambda each: self._attempts.is_stack_gone(each) or None,
            sorted({run.stack_id for run in its.values()}),
        )
        reasons = self._reasons(
            its, [n for n in members if its[n].stack_id in gone], operation
        )
        # A result that has come counts.
        live = [n for n in operation.live if n in reasons]
        operation = self._persist(self._settled(operation, live), live)
        ends = self._each(
            lambda n: self._without(operation, n, reasons[n]),
            [
                n
                for n in reasons
                if n not in live or operation.attempts[n].is_live
            ],
        )
        operation = self._ended(operation, ends)
        return operation.attempted(
            {
                n: {'gone': True}
                for n in ends
                if operation.attempts[n].state is _State.CANCELLED
                # Heat may only have withdrawn the deployment of one that runs.
                and (n not in live or its[n].stack_id in gone)
            }
        )

    def _reasons(
        self,
        its: abc.Mapping[int, runs.Run],
        doomed: abc.Sequence[int],
        operation: _Operation,
    ) -> dict[int, str]:
        """Return why runs end, or never start.

        Heat's API is asked for some of them in turn.

        :param doomed: those whose stacks are gone.
        """
        batches = self._tools.batches
        if batches is None:
            existing = None
            some = self._checks.take(operation, its, _ASKED)
        else:
            ids = {(run.deployment_id, run.row_id) for run in its.values()}
            existing = batches.existing(
                {each for pair in ids for each in pair if each}
            )
            some = list(its)
        return self._each(
            lambda n: self._attempts.gone(its[n], existing),
            sorted({*some, *doomed}),
        )

    def _without(
        self, operation: _Operation, member: int, gone: str
    ) -> runs.Run:
        """Return a run as it ends whose stack or deployment is gone."""
        run = _run_of(operation, member)
        if operation.attempts[member].is_live:
            # The process that has taken it from its server for another
            # reason may have died before it recorded that.
            run = self._members.over(operation, member)
        return run if run.ended else self._attempts.cancelled(run, gone)

    def _resolve(self, operation: _Operation) -> _Operation:
        """Look up the runs that another process may have given."""
        now = self._tools.monotonic()
        due = [n for n, at in self._doubtful.items() if at <= now]
        due = self._lookups.take(operation, due, _CHUNK)
        operation = self._settled(operation, due)
        due = [n for n in due if operation.attempts[n].is_live]

        changes = self._each(
            lambda n: self._members.adopt(operation, n, resumes=True) or {},
            due,
        )
        operation = operation.attempted(changes)
        undelivered = [n for n, change in changes.items() if not change]
        self._clear(operation, undelivered)
        for n in changes:
            self._doubtful.pop(n, None)
        self._queue += undelivered
        return operation

    def _clear(
        self, operation: _Operation, members: abc.Iterable[int]
    ) -> None:
        """Delete what dead processes left of members without a deployment."""
        left = sorted(self._doubtful.keys() & {*members})
        try:
            self._members.delete_undelivered(operation, left)
        except errors.Unavailable as exc:
            # The configs do no harm; an operation that stands still does.
            LOG.info('Cannot delete what was not delivered: %s', exc)

    def _hold(self, operation: _Operation) -> _Operation:
        """Take members from the queue if nothing else starts."""
        control = operation.control
        if not (control.stopped or control.paused_by):
            # Their time has not begun.
            now = int(self._tools.clock())
            return operation.attempted(
                {
                    n: {'started_at': now}
                    for n in self._queue
                    if n not in self._tried
                }
            )
        queue, self._queue = self._queue, []
        self._each(lambda n: self._members.give_up(operation, n), queue)
        self._tried.difference_update(queue)
        return operation.attempted(
            {
                n: {'state': None, 'number': operation.attempts[n].number - 1}
                for n in queue
            }
        )

    def end(self, step: deciding.Step) -> _Operation:
        """End runs whose time is over or that were cancelled.

        A result that has come counts.
        """
        members = [*step.expire, *step.withdraw]
        operation = self._settled(step.operation, members)
        members = [n for n in members if operation.attempts[n].is_live]
        operation = self._persist(operation, members)
        over = self._each(lambda n: self._members.over(operation, n), members)
        operation = operation.attempted(
            {
                n: runs.begun(run, run.reported_at)
                for n, run in over.items()
                if not run.ended and run.reported_at is not None
            }
        )
        return self._ended(
            operation, {n: run for n, run in over.items() if run.ended}
        )

    def _ended(
        self, operation: _Operation, ends: abc.Mapping[int, runs.Run]
    ) -> _Operation:
        """Take runs that end without a result from their servers."""
        delivered = [
            n
            for n in ends
            if operation.attempts[n].state in (_State.WAITING, _State.RUNNING)
        ]
        # All of them before the first is withdrawn, which takes longer.
        stopped = self._each(lambda n: self._attempts.stop(ends[n]), delivered)
        failed = set(delivered) - stopped.keys()
        ready = {n: run for n, run in ends.items() if n not in failed}
        return self._changed(operation, self._taken(ready))

    def _taken(
        self, ends: abc.Mapping[int, runs.Run]
    ) -> abc.Mapping[int, _Changes]:
        """Take runs that have ended from their servers, together if possible.

        :returns: what changes of each that has no run then.
        """
        batches = self._tools.batches
        if batches is None:
            return self._each(lambda n: self._members.end(ends[n]), [*ends])
        known = [n for n, run in ends.items() if run.row_id and run.config_id]
        rest = sorted(ends.keys() - {*known})
        changes = self._each(lambda n: self._members.end(ends[n]), rest)
        for first in range(0, len(known), _TOGETHER):
            some = {n: ends[n] for n in known[first : first + _TOGETHER]}
            try:
                changes |= self._members.end_together(some, batches)
            except errors.Unavailable as exc:
                LOG.info('Cannot reach a service; retrying: %s', exc)
        return changes

    def start(
        self, operation: _Operation, members: abc.Iterable[int]
    ) -> _Operation:
        """Give some members their run, those who wait first."""
        self._queue += members
        if operation.control.stopped:
            # The next step gives them back.
            return operation
        batches, size = self._tools.batches, self._size
        if batches is not None:
            # A server is told once of the runs of all its stacks.
            self._queue.sort(
                key=lambda n: operation.order.members[n].server_id
            )
        chunk = self._queue[:size]
        if not chunk:
            return operation
        refused: abc.Mapping[int, str] = {}
        if batches is not None:
            refused = batches.refusals(operation.order, chunk)
        others = self._exclusion.others(operation.order, chunk)
        self._queue = self._queue[size:]
        outcomes = self._start_together(
            operation, [n for n in chunk if n not in {**refused, **others}]
        )

        def start(n: int) -> _Changes | None:
            try:
                if n in refused:
                    raise errors.Refused(refused[n])
                if n in others:
                    return self._excluded(operation, n, others[n])
                outcome = outcomes.get(n)
                if isinstance(outcome, errors.Error):
                    raise outcome
                return outcome or self._members.start(operation, n)
            except errors.Unavailable as exc:
                # Heat may have taken it all the same.
                begun = operation.attempts[n].started_at or 0
                if self._tools.clock() - begun <= _BUDGET:
                    return None
                return self._refused(operation, n, exc)
            except errors.Error as exc:
                return self._refused(operation, n, exc)

        changes = self._each(start, chunk)
        again = self._tools.monotonic() + _AGAIN
        self._doubtful |= {n: again for n in chunk if n not in changes}
        self._tried = (self._tried | {*chunk}) - changes.keys()
        return operation.attempted(changes)

    def _start_together(
        self, operation: _Operation, members: abc.Sequence[int]
    ) -> abc.Mapping[int, _Changes | errors.Error]:
        """Give members their run by one delivery, where that is possible."""
        batches = self._tools.batches
        if batches is None or not members:
            return {}
        try:
            return self._members.start_together(operation, members, batches)
        except errors.Unavailable as exc:
            return dict.fromkeys(members, exc)
        except errors.Error:
            # A limit of the project may leave room for some.
            return {}

    def _excluded(
        self, operation: _Operation, member: int, other: exclusions.Other
    ) -> _Changes | None:
        """Leave a member to another run; None if that may give way."""
        if not other.is_decided:
            return None
        self._members.give_up(operation, member)
        reason = f'{operation.order.action} already runs: {other.run_id}'
        now = int(self._tools.clock())
        if operation.order.limits.if_running == operations.SKIP:
            return {
                'state': _State.SKIPPED,
                'reason': reason,
                'started_at': None,
                'ended_at': now,
            }
        return {
            'state': None,
            'number': operation.attempts[member].number - 1,
            'reason': reason,
            'started_at': None,
            'wait_until': now + _WAIT,
        }

    def _refused(
        self, operation: _Operation, member: int, exc: Exception
    ) -> _Changes:
        """End a run that Heat did not take."""
        run = _run_of(operation, member)
        if isinstance(exc, errors.NotFound) and not isinstance(
            exc, errors.NoObject
        ):
            run = self._attempts.cancelled(run, attempts.deployment_gone(run))
            return {**self._members.end(run), 'gone': True}
        run = self._attempts.cancelled(run, str(exc))
        return {**self._members.end(run), 'state': _State.FAILED}

    def _each(
        self,
        do: abc.Callable[[Any], Any],
        keys: abc.Sequence[Any],
    ) -> dict[Any, Any]:
        """Return the results; no object, or an outage, leaves one out."""

        def attempt(key: Any) -> Any:
            try:
                return do(key)
            except errors.NoObject:
                return None
            except errors.Unavailable as exc:
                LOG.info('Cannot reach a service; retrying: %s', exc)
                return None

        results = self._tools.records.pool.each(attempt, keys)
        return {
            key: result
            for key, result in zip(keys, results, strict=True)
            if result is not None
        }

    def _changed(
        self, operation: _Operation, changes: abc.Mapping[int, _Changes]
    ) -> _Operation:
        """Return an operation with members that have ended."""
        undelivered = [
            n
            for n, change in changes.items()
            if operation.attempts[n].state is _State.STARTING
            # A server has answered what it was given.
            and change['state'] not in runs.REPORTED
        ]
        self._clear(operation, undelivered)
        for n in changes:
            self._doubtful.pop(n, None)
        self._tried.difference_update(changes)
        self._queue = [n for n in self._queue if n not in changes]
        return operation.attempted(changes)

    def _persist(
        self, operation: _Operation, members: abc.Sequence[int]
    ) -> _Operation:
        """Record that servers had runs, before these are withdrawn."""
        unknown = [
            n
            for n in members
            if operation.attempts[n].state is _State.STARTING
        ]
        operation = operation.attempted(
            self._each(lambda n: self._members.adopt(operation, n), unknown)
        )
        self._journal.given(operation, members)
        return operation
