# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run, and waiting for it.

Each process that reads a run settles it: a command, a workflow, an engine. To
settle it twice, or in two processes at a time, has the same outcome. Neither
does the time matter: a result counts as of the time at which it came to the
object store. First the record says how the run ended; then its deployment and
config in Heat are deleted. Its mark under ``runs/open/`` goes last: as long as
that is there, something is left to do.

Who waits for runs looks for all of a stack at a time.
"""

from collections import abc
import contextlib
import dataclasses
import time

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins import retrying
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.signals import paces

LOG = foreign.logger(__name__)

# The most seconds between the announcement of a run and its hand-over.
_START_LIMIT = 180

#: Called with a run when something about it has changed.
Watch = abc.Callable[[runs.Run], None]

# How the time between two looks grows.
_GROWTH = 1.5

# Seconds between two looks whether Heat still has the runs, and how many of
# them one such look asks for.
_DEEP, _DEEP_BATCH = 15.0, 10

# Records that one look reads of runs that others have started.
_ADOPTED = 200


class Settler:
    """Settles the runs of one root stack."""

    def __init__(
        self, tools: services.Services, store: records.Records
    ) -> None:
        self._tools = tools
        self._records = store
        self._attempts = attempts.Attempts(tools)

    def settle(
        self,
        run: runs.Run,
        arrivals: abc.Collection[str],
        *,
        deep: bool = True,
        resumes: bool = True,
    ) -> runs.Run:
        """Return a run as it stands now.

        :param arrivals: what `records.Records.arrivals` has listed.
        :param deep: whether to ask Heat, too, if the run is still there.
        :param resumes: whether to tell its server again, if its starter died.
        """
        if run.state is runs.State.STARTING:
            # The process that starts it may have delivered it since it was
            # read; what that has written must not be lost.
            run = self._records.read(run.key) or run
        if run.signal in arrivals:
            return self._take_late(run) if run.ended else self._take(run)
        if run.ended:
            return run
        if run.state is runs.State.STARTING:
            if self._tools.clock() - run.started_at <= _START_LIMIT:
                return run
            left = self._left(run, resumes)
            if left.ended:
                return self._end(left)
            run = self._note(left)
        run = self._report(run, arrivals)
        expired = self._attempts.expired(run)
        if expired.ended:
            return self._take(run, expired)
        run = self._note_start(run, expired)
        return self._attempts.hinted(self._check_heat(run) if deep else run)

    def _left(self, run: runs.Run, resumes: bool) -> runs.Run:
        """Return a run as its starter has left it, which has died."""
        # Release 0.1 recorded the config of what it could not undo.
        if run.config_id is not None or not self._records.is_open(run.key):
            return self._attempts.cancelled(run, 'It did not start')
        resumes = resumes and self._tools.clock() < run.deadline
        adopted = self._attempts.adopt(run, resumes=resumes)
        if adopted is not None:
            return adopted
        reason = 'The process that started this run died before delivering it'
        ended = self._attempts.cancelled(run, reason)
        return dataclasses.replace(ended, state=runs.State.FAILED)

    def settled(
        self,
        run: runs.Run,
        arrivals: abc.Collection[str],
        opened: abc.Container[str],
    ) -> runs.Run:
        """Return a run as it stands now, and clean up after it.

        :param opened: the IDs of the runs that are announced.
        """
        was_ended = run.ended
        run = self.settle(run, arrivals)
        if was_ended and run.id in opened:
            # Who ended it did not come to the end of that.
            self.clean_up(run)
        return run

    def cancel(self, run: runs.Run, arrivals: abc.Collection[str]) -> runs.Run:
        """Take a run back from its server.

        :raises errors.AlreadyEnded: it has ended.
        """
        run = self.settle(run, arrivals, deep=False, resumes=False)
        if run.ended:
            raise errors.AlreadyEnded(
                f'Run {run.id} has ended: {run.state.value}'
            )
        who = self._tools.who
        ended = self._attempts.cancelled(run, runs.cancelled(run, who))
        return self._end(dataclasses.replace(ended, cancelled_by=who))

    def lost(self, run: runs.Run) -> runs.Run:
        """Return a run whose records are gone, container and all."""
        self._attempts.withdraw(run)
        reason = self._attempts.gone(dataclasses.replace(run, row_id=None))
        return self._attempts.cancelled(
            run, reason or 'A user has deleted its records'
        )

    def given_up(self, run: runs.Run) -> runs.Run:
        """Return a run whose record was read, and is now unreadable.

        It is left alone: a later release may know more of it than we do.
        """
        return dataclasses.replace(
            run,
            state=runs.State.FAILED,
            reason='Its record has become unreadable',
            ended_at=int(self._tools.clock()),
        )

    def clean_up(self, run: runs.Run, *, is_last: bool = False) -> None:
        """Remove what a run that has ended needs no more.

        The process that starts it may live, and deletes what it has made once
        it sees that the announcement was revoked. It may also die before
        that: so the announcement stays, and this is called again later.

        :param is_last: whether there is no later.
        """
        age = self._tools.clock() - run.started_at
        is_starting = (
            run.config_id is None
            and run.state is not runs.State.FAILED
            and age <= _START_LIMIT
            and not is_last
        )
        if is_starting:
            if not self._records.is_open(run.key):
                return
            self._records.revoke(run.key)
        if run.is_unanswered:
            self._attempts.stop(run)
        self._attempts.withdraw(run)
        self._records.discard(run.progress_signal)
        if is_starting:
            return
        if run.config_id is None:
            # The process that started it may have died before it recorded
            # that.
            attempts.delete_undelivered(self._tools.heat, [run])
        self._records.close(run.key)

    def _report(
        self, run: runs.Run, arrivals: abc.Collection[str]
    ) -> runs.Run:
        """Take notice of what the server says of its progress."""
        if run.progress_signal not in arrivals:
            return run
        with contextlib.suppress(errors.NoObject):
            return self._note_start(run, self._attempts.reported(run))
        return run

    def _note_start(self, before: runs.Run, run: runs.Run) -> runs.Run:
        """Record that the server of a run has started it."""
        is_new = before.reported_at is None and run.reported_at is not None
        return self._note(run) if is_new else run

    def _note(self, run: runs.Run) -> runs.Run:
        """Record a run that continues, unless another process has ended it."""
        fresh = self._records.read(run.key)
        if fresh is not None and not fresh.ended:
            self._records.write(run)
        return run

    def _take(
        self, run: runs.Run, otherwise: runs.Run | None = None
    ) -> runs.Run:
        """End a run by its result.

        :param otherwise: how it ends if there is none; None if it does not.
        """
        try:
            return self._end(self._attempts.answered(run))
        except errors.NoObject:
            # The process that read it has written what it was.
            fresh = self._records.read(run.key)
        if fresh is None or fresh.ended or otherwise is None:
            return self.lost(run) if fresh is None else fresh
        return self._end(otherwise)

    def _end(self, ended: runs.Run) -> runs.Run:
        fresh = self._records.read(ended.key)
        if fresh is not None and fresh.ended:
            ended = fresh
        else:
            self._records.write(ended)
            metrics.count(metrics.RUNS, ended.state.value)
        self.clean_up(ended)
        if not ended.is_unanswered:
            # Else a result that came with it is noted as a late one.
            self._records.discard(ended.signal)
        return ended

    def _take_late(self, run: runs.Run) -> runs.Run:
        """Note the result of a run that had ended without it."""
        if run.state in runs.REPORTED or run.late is not None:
            # It was taken, and could not be deleted at the time; or the
            # server has sent it twice.
            self._records.discard(run.signal)
            return run
        try:
            run = self._attempts.answered_late(run)
        except errors.NoObject:
            return self._records.read(run.key) or run
        self._records.write(run)
        objects = self._records.objects(run.key)
        objects.discard(objects.control, objects.result)
        return run

    def _check_heat(self, run: runs.Run) -> runs.Run:
        """End a run whose stack or deployment is gone from Heat."""
        gone = self._attempts.gone(run)
        if gone is None:
            return run
        return self._take(run, self._attempts.cancelled(run, gone))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pace:
    """How often to look, in seconds.

    :ivar fast: while a result is likely; see `paces.PollPace`. A look is two
        listings.
    :ivar first: between the first two looks otherwise, and after each news.
    :ivar most: to which that grows.
    :ivar nap: how long a step sleeps at most.
    """

    fast: float = 2 * paces.LEAST
    first: float = 1.0
    most: float = 5.0
    nap: float = 1.0


class Waiter:
    """Waits for runs of one root stack.

    However many there are: one look is one listing of what has arrived and
    one of what has not ended.

    :param tick: called in each step, to show that time goes by.
    :param note: called when Heat or the object store is unavailable.
    :param everything: whether to wait for all the runs that there are, also
        for those that begin meanwhile.
    """

    def __init__(
        self,
        settler: Settler,
        store: records.Records,
        *,
        watch: Watch,
        tick: abc.Callable[[], None] = lambda: None,
        note: abc.Callable[[str], None] = lambda line: None,
        pace: Pace | None = None,
        everything: bool = False,
        reread: abc.Callable[[runs.Run], runs.Run | None] | None = None,
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._settler = settler
        self._records = store
        self._watch = watch
        self._tick = tick
        self._everything = everything
        self._reread = reread or (lambda run: store.read(run.key))
        self._clock = clock
        self._sleep = sleep
        self._pace = pace or Pace()
        self._likely = paces.PollPace(paces.PollLimits(), clock)
        # When each run was added.
        self._since: dict[str, float] = {}
        self._pause = self._pace.first
        self._next_look = clock()
        self._next_deep = clock()
        self._outage = retrying.OutageBudget(note, clock=clock)
        self._runs: dict[str, runs.Run] = {}
        # Those that Heat is going to be asked for next.
        self._turn: list[str] = []
        # How many records of others were read.
        self._adopted = 0
        # Those that cannot be read, and were told of.
        self._unreadable: set[str] = set()

    def add(self, run: runs.Run) -> None:
        """Wait for a run, too."""
        self._runs[run.id] = run
        self._since[run.id] = self._clock()
        self._likely.deliver()
        self._pause = self._pace.first

    @property
    def pending(self) -> list[runs.Run]:
        return [run for run in self._runs.values() if not run.ended]

    @property
    def all(self) -> list[runs.Run]:
        return list(self._runs.values())

    def step(self) -> None:
        """Look if it is time to, and sleep for a while.

        :raises errors.Error: Heat has been out of order for too long.
        :raises errors.ServiceError: the object store has.
        """
        now = self._clock()
        if now >= self._next_look:
            is_deep = now >= self._next_deep
            with self._outage.ridden_out():
                self._look(deep=is_deep)
                if is_deep:
                    self._next_deep = now + _DEEP
            self._next_look = self._clock() + self._next_pause()
        self._tick()
        if self.pending:
            rest = self._next_look - self._clock()
            self._sleep(max(0.05, min(self._pace.nap, rest)))

    def _next_pause(self) -> float:
        """Return the seconds until the next look."""
        pause = self._pause
        self._pause = min(pause * _GROWTH, self._pace.most)
        if self._likely.is_likely and not self._outage.lasts:
            return min(self._pace.fast, pause)
        return pause

    def _look(self, *, deep: bool) -> None:
        for run in self.pending:
            if run.operation is not None:
                # Who advances it settles it.
                self._note(self._reread(run) or self._settler.lost(run))
        if self._everything or self._single:
            self._look_at_single(deep=deep)

    @property
    def _single(self) -> list[runs.Run]:
        return [run for run in self.pending if run.operation is None]

    def _look_at_single(self, *, deep: bool) -> None:
        try:
            keys = self._records.opened()
            if self._everything:
                self._adopt(keys)
            opened = {key.run_id for key in keys}
            arrivals = self._records.arrivals()
            asked = self._next_to_ask() if deep else ()
            for run in self._single:
                self._look_at(run, opened, arrivals, run.id in asked)
        except errors.NoObject:
            # The container is gone.
            for run in self._single:
                self._note(self._settler.lost(run))

    def _adopt(self, opened: abc.Iterable[record_names.Key]) -> None:
        """Take in what others have started, and forget what has ended."""
        self._runs = {run.id: run for run in self.pending}
        self._since = {each: self._since[each] for each in self._runs}
        unknown = [key for key in opened if key.run_id not in self._runs]
        start = self._adopted % max(1, len(unknown))
        turn = [*unknown[start:], *unknown[:start]][:_ADOPTED]
        self._adopted += len(turn)
        for key in turn:
            run = None
            try:
                run = self._records.read(key)
            except errors.UnreadableRun as exc:
                self._pass_over(exc)
            if run is not None and run.ended:
                self._settler.clean_up(run)
            elif run is not None:
                self.add(run)

    def _pass_over(self, exc: errors.UnreadableRun) -> None:
        if exc.run_id not in self._unreadable:
            self._unreadable.add(exc.run_id)
            LOG.warning('%s', exc)

    def _next_to_ask(self) -> abc.Collection[str]:
        """Return the runs that it is the turn of to be asked Heat for."""
        if not self._turn:
            self._turn = [run.id for run in self._single]
        turn, self._turn = self._turn[:_DEEP_BATCH], self._turn[_DEEP_BATCH:]
        return turn

    def _look_at(
        self,
        run: runs.Run,
        opened: abc.Collection[str],
        arrivals: abc.Collection[str],
        deep: bool,
    ) -> None:
        try:
            # One that is not listed was settled by another process.
            fresh = run if run.id in opened else self._reread(run)
            if fresh is not None:
                fresh = self._settler.settle(fresh, arrivals, deep=deep)
            self._note(fresh or self._settler.lost(run))
        except errors.UnreadableRun as exc:
            self._pass_over(exc)
            self._note(self._settler.given_up(run))

    def _note(self, run: runs.Run) -> None:
        before = self._runs[run.id]
        self._runs[run.id] = run
        if run != before:
            self._likely.arrive(self._since[run.id] if run.ended else None)
            self._pause = self._pace.first
            self._watch(run)
