# SPDX-License-Identifier: Apache-2.0
"""Leading the runs of this engine.

What comes next for a run is `deciding.advance`. It is stored with the rows
that servers are given, in one transaction; then servers are told. What is
stored says whom to tell, so that an engine which takes over a run continues
from there. One thread knows what is due. It gives steps of runs, and polls of
root stacks, to threads that live as long as there is something to do: a store
that hangs delays the runs of its project alone, and a run that waits has no
thread.
"""

from collections import abc
import contextlib
import dataclasses
import math
import os
import threading
import time
from typing import Any
import uuid

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins import pools
from heat_plugins.deployments import deliveries
from heat_plugins.engine import process
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import deciding
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping

LOG = foreign.logger(__name__)

#: Seconds until a user's request to another engine is seen.
LOOK = 1.0

# Steps and polls that a process, and one project in it, does at a time.
_STEPS, _STEPS_OF_PROJECT = 16, 4

# Targets that one step gives something; how many may have something and are
# not told, so that a server which has several is told once; and tries of a
# step that others compete with.
_TOGETHER, _UNTOLD, _TRIES = 250, 1000, 3

# Seconds between two checks whether stacks and deployments exist; until a
# retry of what failed, at first and at most.
_DEEP, _AGAIN, _LONGEST = 15.0, 2.0, 300.0

# Seconds between two looks for late results, at first and at most; how many
# each asks for; and for how long a run that has ended is looked at.
_LATE, _LATEST, _ASKED, _AFTERWARDS = 5.0, 300.0, 20, 120.0

_State = run_records.State


@dataclasses.dataclass(kw_only=True)
class _Led:
    """A run that this engine leads.

    :ivar stored: as it was read or written last; None if it must be read.
    :ivar due: when to continue, by the monotonic clock.
    :ivar fresh: what servers were given and not told, without scripts.
    :ivar is_giving: whether the next step gives more servers something.
    :ivar untold: the servers from which something was taken.
    :ivar unstopped: the targets whose servers could not be told to stop.
    :ivar known: what servers were told, by attempt, to read their results.
    :ivar failing: since when targets could not be prepared.
    """

    id: str
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    stored: run_store.StoredRun | None = None
    is_new: bool = True
    due: float = 0.0
    next_deep: float = 0.0
    next_late: float = 0.0
    late_pause: float = _LATE
    failures: int = 0
    fresh: dict[int, deliveries.Delivery] = dataclasses.field(
        default_factory=dict
    )
    is_giving: bool = False
    untold: set[str] = dataclasses.field(default_factory=set)
    unstopped: set[int] = dataclasses.field(default_factory=set)
    known: dict[run_store.TargetKey, deliveries.Delivery] = dataclasses.field(
        default_factory=dict
    )
    failing: dict[int, float] = dataclasses.field(default_factory=dict)


class Leader:
    """Leads the runs of one engine.

    :param places: for what is done in threads.
    """

    def __init__(
        self,
        engine_id: str,
        store: run_store.RunStore,
        servers: abc.Callable[[run_fleet.Settle], run_fleet.RunServers],
        *,
        places: process.Places,
        clock: abc.Callable[[], float] = time.time,
        monotonic: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self.engine_id = engine_id
        self._store = store
        self._servers = servers(self.settle)
        self._places = places
        self._clock = clock
        self._monotonic = monotonic
        self._led: dict[str, _Led] = {}
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._next_look = 0.0

    def start(
        self,
        project_id: str,
        run: run_records.RunRecord,
        tick: run_store.Tick | None = None,
    ) -> run_store.StoredRun:
        """Store a run and lead it; see `run_store.RunStore.create`.

        :raises errors.Unavailable: also if the tables of runs are missing.
        """
        try:
            made = self._store.create(
                project_id, run, self.engine_id, tick=tick
            )
        except errors.ServiceError as exc:
            raise errors.Unavailable(str(exc)) from exc
        self.wake(run.id)
        return made

    @property
    def failing(self) -> int:
        """How many runs it leads and cannot continue."""
        return sum(led.failures > 0 for led in list(self._led.values()))

    def wake(self, *run_ids: str) -> None:
        """Continue runs at once; without any, look which there are."""
        with self._lock:
            for run_id in run_ids:
                self._led.setdefault(run_id, _Led(id=run_id)).due = 0.0
            self._next_look = 0.0
        self._woken.set()

    def check_targets(self, run_ids: abc.Iterable[str]) -> None:
        """Check at once whether targets of runs exist, of those it leads."""
        for run_id in run_ids:
            if led := self._led.get(run_id):
                led.next_deep = 0.0
                self.wake(run_id)

    def run(self) -> None:
        """Lead for ever."""
        while True:
            self._woken.clear()
            try:
                pause = self.turn()
            except Exception as exc:
                LOG.info('Cannot lead runs; retrying: %s', foreign.brief(exc))
                pause = _AGAIN
            self._woken.wait(pause)

    def turn(self) -> float | None:
        """Begin due steps and polls; return the seconds until the next.

        None if this engine leads no run.
        """
        now = self._monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK
            self._look()
        dues = [self._next_look]
        for led in list(self._led.values()):
            dues.append(led.due)
            project_id = led.stored.project_id if led.stored else led.id
            if led.due <= now and self._places.take(led.id, project_id):
                self._places.run(led.id, 'heat-plugins-run', self._go_on, led)
        for stack in self._servers.stacks.values():
            if stack.is_idle:
                continue
            dues.append(stack.due)
            if stack.due <= now and self._places.take(
                stack.stack_id, stack.project_id
            ):
                self._places.run(
                    stack.stack_id, 'heat-plugins-poll', self._poll, stack
                )
        if not self._led:
            return None
        # What is due has no place, or wakes this.
        return max(0.1, min(dues) - now)

    def _look(self) -> None:
        """Read which runs this engine leads, and whether others changed them.

        :raises errors.Error: the database does not answer.
        """
        versions = self._store.led_by(self.engine_id)
        with self._lock:
            for run_id in versions:
                self._led.setdefault(run_id, _Led(id=run_id))
            known = list(self._led.values())
        for led in known:
            stored = led.stored
            # One that is absent has ended, or another engine leads it.
            if stored is not None and stored.version < versions.get(
                led.id, -1 if stored.run.ended else math.inf
            ):
                # A step of this process may be stored just now.
                with led.lock:
                    if led.stored is stored:
                        led.stored, led.due = None, 0.0

    def _poll(self, stack: run_fleet.StackRuns) -> None:
        """Look for answers of a stack's servers; retry if that fails."""
        stack.due = math.inf
        try:
            stack.poll()
        except Exception as exc:
            LOG.info(
                'Cannot poll for runs in stack %(stack)s; retrying: %(error)s',
                {'stack': stack.stack_id, 'error': foreign.brief(exc)},
            )
        finally:
            stack.due = min(stack.due, self._monotonic() + _AGAIN)

    # A step

    def _go_on(self, led: _Led) -> None:
        """Take all due steps of a run."""
        led.due = math.inf
        try:
            while stored := self._load(led):
                if not led.is_giving or len(led.fresh) >= _UNTOLD:
                    self._tell(led, stored)
                self._note_late(led, led.stored or stored)
                led.is_giving = False
                is_stored = self._step(led, led.stored or stored)
                if not is_stored and not led.fresh:
                    break
            led.failures = 0
        except Exception as exc:
            self._note_failure(led, exc)
        finally:
            self._woken.set()

    def _note_failure(self, led: _Led, exc: Exception) -> None:
        """Retry a run later; warn once if that is not likely to help."""
        pause = min(_LONGEST, _AGAIN * 2.0 ** min(led.failures, 10))
        # A run that its user has just deleted is forgotten as it is read.
        is_gone = isinstance(exc, errors.NotFound)
        led.stored = None if is_gone else led.stored
        passing = isinstance(exc, errors.Error) and (is_gone or exc.may_pass)
        if passing:
            pause = min(pause, 4 * _AGAIN)
        log = LOG.info if passing or led.failures else LOG.warning
        log(
            'Cannot continue run %(id)s; retrying after %(pause).0f s: '
            '%(error)s',
            {'id': led.id, 'pause': pause, 'error': foreign.brief(exc)},
        )
        led.failures += 1
        led.due = min(led.due, self._monotonic() + pause)

    def _forget(self, led: _Led) -> None:
        """Stop leading a run: it has ended, or another engine leads it."""
        with self._lock:
            self._led.pop(led.id, None)
        schedule_rows.wake(led.id)
        if led.stored is None:
            return
        run = led.stored.run
        for n in run.live:
            self._stack(led.stored, n).leave(run_store.key_of(run, n))

    def _stack(
        self, stored: run_store.StoredRun, number: int
    ) -> run_fleet.StackRuns:
        """Return the servers of the root stack that a target is in."""
        stack_id = stored.run.order.members[number].stack_id
        return self._servers.of_stack(stored.project_id, stack_id)

    def _load(self, led: _Led) -> run_store.StoredRun | None:
        """Read a run if need be; None if there is nothing left to do."""
        with led.lock:
            if led.stored is None:
                try:
                    led.stored = self._store.load(led.id)
                except errors.NotFound:
                    self._forget(led)
                    return None
            stored = led.stored
        run, now = stored.run, self._clock()
        awaits_late = now - (run.control.ended_at or 0) < _AFTERWARDS and any(
            attempt.is_unanswered for attempt in run.attempts
        )
        is_over = run.ended and not awaits_late
        if stored.engine_id != self.engine_id or is_over:
            self._forget(led)
            return None
        if led.is_new:
            # Who led it before may have died before it told these.
            led.untold |= {
                run.order.members[n].server_id
                for n, attempt in enumerate(run.attempts)
                if attempt.started_at is not None and not attempt.is_live
            }
            led.is_new = False
        return stored

    def _tell(self, led: _Led, stored: run_store.StoredRun) -> None:
        """Update the metadata of servers, and wait for their answers."""
        run, project_id = stored.run, stored.project_id
        given = {
            n: run_store.key_of(run, n)
            for n in run.live
            if run.attempts[n].row_id is not None
        }
        new = [n for n, key in given.items() if key not in led.known]
        members = run.order.members
        server_ids = led.untold | {members[n].server_id for n in new}
        if not server_ids:
            return
        made = dict(led.fresh)
        if missing := [n for n in new if n not in made]:
            made |= self._servers.given(project_id, run, missing)
        self._servers.tell(project_id, members[0].stack_id, server_ids)
        led.untold, led.fresh = set(), {}
        lost = {}
        for n in new:
            key = given[n]
            if n not in made:
                lost[key] = stepping.Answer(lost=run_fleet.CHANGED)
                continue
            led.known[key] = made[n]
            self._stack(stored, n).add(key, made[n])
        self.settle(lost)

    def _step(self, led: _Led, stored: run_store.StoredRun) -> bool:
        """Store the next step of a run; False if there is none now."""
        now = self._clock()
        reasons = self._gone(led, stored)
        step = deciding.advance(stored.run, now)
        ending = stepping.ending(stored.run, step, reasons)
        if ending:
            # What has come counts.
            outage = self._ask(led, stored, ending, reports=step.expire)
            if outage is not None and stepping.may_wait(stored.run, step, now):
                raise outage
            current = led.stored or stored
            step = deciding.advance(current.run, now)
            self._stop(
                led, current, stepping.ending(current.run, step, reasons)
            )
        room, prepared = self._prepare(led, stored, step)
        with led.lock:
            for _ in range(_TRIES):
                if led.stored is None or led.stored.version != stored.version:
                    # A node of the database may show that a moment later.
                    break
                # To prepare them may have taken long.
                now = self._clock()
                step = deciding.advance(led.stored.run, now)
                if {*stepping.ending(led.stored.run, step, reasons)} - {
                    *ending
                }:
                    return True
                decision = stepping.decide(
                    led.stored, now, reasons, prepared, room
                )
                if decision.after == led.stored.run:
                    self._plan_next(led, led.stored, is_full=room < 1)
                    return False
                try:
                    self._store_step(led, led.stored, decision)
                    led.is_giving = (
                        len(decision.given) == _TOGETHER < len(step.start)
                    )
                    return True
                except run_store.KeysTaken as exc:
                    busy = {
                        n: errors.AlreadyRunning(
                            f'The action already runs there: run {run_id}. To '
                            'wait for its end: --if-running wait'
                        )
                        for n, run_id in exc.runs.items()
                    }
                    prepared = {**prepared, **busy}
                except errors.Error as exc:
                    # It may be stored all the same.
                    led.stored = None
                    if not isinstance(exc, run_store.Stale):
                        raise
                    break
        led.due = min(led.due, self._monotonic() + LOOK / 2)
        return False

    def _store_step(
        self,
        led: _Led,
        before: run_store.StoredRun,
        decision: stepping.Decision,
    ) -> None:
        """Store what a step decided, and note which servers must be told."""
        members = before.run.order.members
        rows = [str(before.run.attempts[n].row_id) for n in decision.taken]
        # Before the step: the database may store it and not answer.
        led.untold |= {members[n].server_id for n in decision.taken}
        led.stored = self._store.step(
            before,
            decision.after,
            str(uuid.uuid4()),
            given=decision.given,
            taken=rows,
        )
        # Scripts may be long, and are in the database.
        led.fresh |= {
            n: dataclasses.replace(
                each, draft=dataclasses.replace(each.draft, config=None)
            )
            for n, each in decision.given.items()
        }
        _count_targets(before.run.attempts, decision.after.attempts)
        for n in decision.taken:
            self._stack(before, n).leave(run_store.key_of(before.run, n))
        if decision.after.ended:
            schedule_rows.wake(led.id)
            control = decision.after.control
            metrics.count(metrics.RUNS, control.phase.value)
            LOG.info(
                'Run %(id)s is %(state)s: %(reason)s',
                {
                    'id': led.id,
                    'state': control.phase.value,
                    'reason': control.reason,
                },
            )

    def _plan_next(
        self, led: _Led, stored: run_store.StoredRun, *, is_full: bool
    ) -> None:
        """Note when to continue a run of which nothing is due now."""
        now, run = self._monotonic(), stored.run
        pauses = []
        if not run.ended:
            pauses.append(led.next_deep - now)
            at = deciding.next_time(run)
            if at is not None:
                pauses.append(at - self._clock())
        if any(attempt.is_unanswered for attempt in run.attempts):
            pauses.append(led.next_late - now)
        if is_full or led.failing:
            pauses.append(_AGAIN)
        pause = max(LOOK / 2, min(pauses, default=_LONGEST))
        led.due = min(led.due, now + pause)

    def _gone(
        self, led: _Led, stored: run_store.StoredRun
    ) -> dict[int, dict[str, object]]:
        """Return the changes of targets that cannot continue, by number."""
        run, now = stored.run, int(self._clock())
        members = [*run.live, *run.pending]
        if stored.unreadable:
            failed = {
                'ended_at': now,
                'state': _State.FAILED,
                'reason': stored.unreadable,
            }
            return dict.fromkeys(members, failed)
        if self._monotonic() < led.next_deep or not members:
            return {}
        led.next_deep = self._monotonic() + _DEEP
        reasons = self._servers.gone(stored.project_id, run, members)
        return {
            n: {
                'ended_at': now,
                'state': _State.CANCELLED,
                'reason': why,
                'gone': True,
            }
            for n, why in reasons.items()
        }

    def _ask(
        self,
        led: _Led,
        stored: run_store.StoredRun,
        members: abc.Sequence[int],
        *,
        reports: abc.Container[int] = (),
    ) -> errors.Unavailable | None:
        """Take the results that lie in the object store.

        What cannot be asked for has not come.

        :returns: what keeps it from that for a while.
        """
        run = stored.run

        def ask(n: int) -> stepping.Answer | errors.Unavailable | None:
            key = run_store.key_of(run, n)
            expected = run_objects.NOTHING_KNOWN
            if key in led.known:
                expected = run_objects.Expected.by(led.known[key].draft)
            try:
                return self._stack(stored, n).ask(
                    key, expected, run.order.inputs, reports=n in reports
                )
            except errors.Unavailable as exc:
                return exc
            except errors.Error:
                return None

        found = pools.Pool(attempts=1).each(ask, members)
        answers = {
            n: answer
            for n, answer in zip(members, found, strict=True)
            if isinstance(answer, stepping.Answer)
        }
        self.settle(
            {run_store.key_of(run, n): each for n, each in answers.items()}
        )
        for n, answer in answers.items():
            if answer.result is not None:
                with contextlib.suppress(errors.Error):
                    self._stack(stored, n).discard_all(
                        run_store.key_of(run, n)
                    )
        outages = (e for e in found if isinstance(e, errors.Unavailable))
        return next(outages, None)

    def _stop(
        self,
        led: _Led,
        stored: run_store.StoredRun,
        members: abc.Collection[int],
    ) -> None:
        """Tell servers to stop attempts that are withdrawn from them."""

        def stop(n: int) -> bool:
            try:
                self._stack(stored, n).stop(run_store.key_of(stored.run, n))
            except errors.Unavailable as exc:
                LOG.info(
                    'Cannot tell the server of target %(n)d of run %(id)s to '
                    'stop; retrying: %(error)s',
                    {'n': n, 'id': led.id, 'error': exc},
                )
                return False
            except errors.Error as exc:
                LOG.debug('Cannot tell a server to stop: %s', exc)
            return True

        told = pools.Pool(attempts=1).each(stop, members)
        led.unstopped = {
            n for n, is_told in zip(members, told, strict=True) if not is_told
        }

    def _prepare(
        self, led: _Led, stored: run_store.StoredRun, step: deciding.Step
    ) -> tuple[float, stepping.Prepared]:
        """Return how many targets have room, and their deliveries."""
        if not step.start:
            return math.inf, {}
        room = self._servers.room(stored.project_id)
        start = step.start[: int(min(room, _TOGETHER))]
        if not start:
            return room, {}
        prepared = self._servers.prepare(stored.project_id, step.run, start)
        now = self._monotonic()
        led.failing = {
            n: led.failing.get(n, now)
            for n, outcome in prepared.items()
            if isinstance(outcome, errors.Unavailable)
        }
        late = {
            n: errors.Refused(str(prepared[n]))
            for n, since in led.failing.items()
            if now - since > stepping.BUDGET
        }
        return room, {**prepared, **late}

    # Answers

    def settle(
        self, answers: abc.Mapping[run_store.TargetKey, stepping.Answer]
    ) -> abc.Collection[run_store.TargetKey]:
        """Store the answers of servers; return those that count."""
        if not answers:
            return ()
        run_ids = sorted({key.run_id for key in answers})
        with contextlib.ExitStack() as locks:
            led = {
                each: self._led.get(each) or _Led(id=each) for each in run_ids
            }
            for each in run_ids:
                locks.enter_context(led[each].lock)
            outcomes = {
                key: outcome
                for key, answer in answers.items()
                if (outcome := self._outcome(led[key.run_id], key, answer))
            }
            counted = self._store.answer(outcomes) if outcomes else {}
            for each in run_ids:
                theirs = [key for key in outcomes if key.run_id == each]
                self._note(led[each], theirs, counted)
                led[each].due = 0.0
        self._woken.set()
        return counted

    def take(self, found: run_store.Awaiting, answer: stepping.Answer) -> bool:
        """Store an answer that came to this engine; say whether it counts.

        If another engine leads the run, that reads the row at its next poll.
        """
        key, before = found.key, found.run.attempts[0]
        if key.run_id in self._led:
            return key in self.settle({key: answer})
        outcome = stepping.answered(found.run, 0, answer, self._clock())
        counted = self._store.answer({key: outcome}) if outcome else {}
        if key not in counted:
            return False
        _count_targets([before], [counted[key]])
        return True

    def _outcome(
        self, led: _Led, key: run_store.TargetKey, answer: stepping.Answer
    ) -> run_records.Attempt | None:
        """Return an attempt with its answer; None if it waits for none."""
        if led.stored is None:
            try:
                led.stored = self._store.load(key.run_id)
            except errors.NotFound:
                # Another engine has led it to its end since.
                return None
        if led.stored.run.attempts[key.number].number != key.attempt:
            return None
        return stepping.answered(
            led.stored.run, key.number, answer, self._clock()
        )

    def _note(
        self,
        led: _Led,
        keys: abc.Collection[run_store.TargetKey],
        counted: abc.Mapping[run_store.TargetKey, run_records.Attempt],
    ) -> None:
        """Note answers that are stored, as the store has noted them."""
        if led.stored is None:
            return
        if set(keys) - counted.keys():
            # Some had ended before.
            led.stored = None
            return
        run, revisions = led.stored.run, list(led.stored.revisions)
        changes = {}
        for key in keys:
            before, after = run.attempts[key.number], counted[key]
            if after == before:
                continue
            if not (after.is_live or after.is_unanswered):
                led.known.pop(key, None)
            revisions[key.number] += 1
            changes[key.number] = vars(after)
            _count_targets([before], [after])
        led.stored = dataclasses.replace(
            led.stored,
            run=run.attempted(changes),
            revisions=tuple(revisions),
        )

    def _note_late(self, led: _Led, stored: run_store.StoredRun) -> None:
        """Note results that came after their attempts had ended."""
        now = self._monotonic()
        if now < led.next_late:
            return
        silent = [
            n
            for n, attempt in enumerate(stored.run.attempts)
            if attempt.is_unanswered
        ]
        self._stop(led, stored, led.unstopped & {*silent})
        # Each has its turn.
        first = int(now) % max(1, len(silent))
        self._ask(led, stored, (silent[first:] + silent[:first])[:_ASKED])
        led.late_pause = min(_LATEST, 2 * led.late_pause) if silent else _LATE
        led.next_late = now + led.late_pause


def _count_targets(
    before: abc.Iterable[run_records.Attempt],
    after: abc.Iterable[run_records.Attempt],
) -> None:
    """Count the attempts that have ended; one that was skipped is none."""
    for former, attempt in zip(before, after, strict=True):
        state = attempt.state
        is_new = former.is_live or former.state is None
        if is_new and state is not None and state.ended:
            metrics.count(metrics.TARGETS, state.value)


#: The leader of this process, if it has one; one that was forked has none yet.
leaders: list[Leader] = []
os.register_at_fork(after_in_child=leaders.clear)


def begin(engine: Any) -> None:
    """Lead the runs of an engine of Heat's; the process has no other."""
    if leaders:
        return
    install(
        Leader(
            engine.engine_id,
            run_rows.RunRows(),
            run_fleet.RunServers,
            places=process.Places(_STEPS, _STEPS_OF_PROJECT),
        )
    )
    threading.Thread(
        target=leader().run, name='heat-plugins-runs', daemon=True
    ).start()


def install(leader: Leader | None) -> None:
    """Let this process start runs by a leader; None ends that."""
    leaders[:] = [] if leader is None else [leader]


def leader() -> Leader:
    """Return the leader of this process.

    :raises errors.Unavailable: it has none yet.
    """
    if not leaders:
        raise errors.Unavailable('This heat-engine does not lead runs yet')
    return leaders[0]


def wake(run_id: str) -> None:
    """Continue a run at once, if this process leads it."""
    for each in leaders:
        each.wake(run_id)
