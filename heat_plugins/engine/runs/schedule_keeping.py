# SPDX-License-Identifier: Apache-2.0
"""Keeping schedules: each due tick becomes a run, once.

One thread of each process with an engine reads the schedules of all projects
with one statement, and sleeps until the first of them is due. It records what
it decides, see `schedule_deciding`, before it acts: of several engines one
does so. That one selects the targets with the credentials that are stored with
the stack, stores the run and the record in one transaction, and leads the run.
If it dies before that, another engine does so.

What is due in one stack at a time has one thread, which reads the stack once.
"""

from collections import abc
import contextlib
import dataclasses
import enum
import functools
import logging
import math
import random
import time
from typing import Any, TypeAlias
import uuid

from heat.common import context as heat_context
from heat.common import exception
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import stored
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine import transports
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.database import stack_reading
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import notices
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import notifying
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs import run_requests
from heat_plugins.runs import run_store
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules
from heat_plugins.runs.targets import selecting

LOG = foreign.logger(__name__)

# Stacks in which one process starts runs at a time, and of one project.
_MOST, _MOST_OF_PROJECT = 32, 8

# Seconds between two polls while a run has not ended, and until what has no
# thread is retried: at random, as there are several processes.
_POLLS, _NO_PLACE = (15.0, 30.0), (0.5, 2.0)

# Seconds until what failed is retried first.
_RETRY = 15.0

# Seconds between two scans for schedules that other engines have stored, at
# most, and the least pause.
_LONGEST, _LEAST = 60.0, 0.1

# Seconds between two checks whether a schedule can run, if it can; if it
# cannot; and after a temporary failure.
_DAY, _HOUR, _CHECK_RETRY = 86400, 3600, 600

# Characters of a record that are read. A text of the database holds twice as
# many bytes.
_MOST_TEXT = 32_000

_Row = schedule_rows.ScheduleRow
_Kept = schedule_deciding.KeptSchedule
_Change: TypeAlias = abc.Callable[[_Kept], _Kept]

# What a warning names already, or a user has asked for.
_NOT_LOGGED = (
    schedule_deciding.Passed.MISSED,
    schedule_deciding.Passed.PAUSED,
)


class _Step(enum.Enum):
    """What an engine does for a schedule, as messages say it."""

    START = 'start the run of'
    CANCEL = 'cancel the run of'
    CHECK = 'find the targets of'


_PLACES = process.Places(_MOST, _MOST_OF_PROJECT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Known:
    """What was decided of a schedule, and when to decide again.

    :ivar kept: what the text says; None if it was not read.
    """

    text: str = ''
    kept: _Kept | None = None
    until: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Judged:
    """A decision on a schedule.

    :ivar before: what is recorded of it.
    :ivar settled: the same with what has become of the tick that runs.
    """

    row: _Row
    before: _Kept
    settled: _Kept
    decision: schedule_deciding.Decision


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Job:
    """A step for a schedule.

    :ivar text: the record that `kept` is written as.
    """

    step: _Step
    row: _Row
    kept: _Kept
    text: str


class _Stack:
    """A stack whose schedules have something due.

    :raises errors.Denied: it cannot be loaded.
    """

    def __init__(self, row: _Row) -> None:
        self._id = row.stack_id
        self._project_id = row.project_id

    @functools.cached_property
    def loaded(self) -> Any:
        stack = run_fleet.load_stack(self._id, self._project_id)
        if stack is None:
            raise errors.Denied(
                'heat-engine cannot load the stack with its stored '
                'credentials; its log has the cause at debug level'
            )
        return stack

    @functools.cached_property
    def _selected_from(self) -> stack_reading.ProjectStacks:
        stored = self.loaded.context
        try:
            # It asks Keystone for a token.
            context = heat_types.in_project(
                stored, self._project_id, is_admin=False
            )
        except exception.AuthorizationFailure:
            raise errors.Denied(
                'Keystone refuses the credentials that are stored with the '
                'stack. If the trust or the user of the stack is gone, '
                'update the stack as another user'
            ) from None
        except ks_exceptions.ClientException as exc:
            raise errors.Unavailable(
                f'Keystone does not answer: {type(exc).__name__}'
            ) from exc
        return stack_reading.ProjectStacks(context)

    def resource(self, row: _Row) -> Any:
        """Return the resource of a schedule, which keeps no stack alive.

        :raises errors.Error: there is none.
        """
        resource = self.loaded.resource_get(row.name)
        if resource is None or resource.uuid != row.id:
            raise errors.Unavailable('The stack replaces the schedule')
        if resource.type() != schedules.TYPE:
            # Who adopts a stack may write any data of any resource.
            raise errors.Refused('The resource is no schedule')
        return resource

    def choose(
        self, row: _Row, run_id: str
    ) -> tuple[ordering.Start, selecting.Chosen]:
        """Return what a tick of a schedule runs now, and where.

        :raises errors.Error: it can run nothing.
        """
        if refusal := transports.refusal_of_runs(self.loaded.clients):
            raise errors.Refused(refusal)
        wanted: ordering.Start = self.resource(row).ordered(run_id)
        return wanted, door.choose(self._selected_from, wanted, wanted.action)


class Keeper:
    """Keeps the schedules of all projects, for one process.

    :param clock: seconds since the epoch.
    """

    def __init__(self, clock: abc.Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._store = run_rows.RunRows()
        self._known: dict[int, _Known] = {}
        self._next_scan = 0.0

    def keep(self) -> None:
        """Keep schedules until an error of the database."""
        while True:
            schedule_rows.woken.wait(self.look())

    def look(self) -> float:
        """Decide what is due; return the seconds until the next look."""
        for number in schedule_rows.take_changed():
            self._known[number] = _Known()
        context, now = heat_context.get_admin_context(), self._clock()
        rows = self._rows(context, now)
        # In another order each time, so that none is always last.
        random.shuffle(rows)  # nosec B311
        due = [
            (row, kept)
            for row in rows
            if (kept := self._read(row, now)) is not None
        ]
        # A run that has not ended now had not when a tick was due.
        heads = self._store.heads_of(
            {_run_id(row, kept) for row, kept in due if kept.record.created}
        )
        judged = [
            each
            for row, kept in due
            if (each := self._judge(row, kept, heads, now)) is not None
        ]
        # What is due gets a thread before what is only checked.
        judged.sort(key=lambda each: each.decision.record.running is None)
        jobs: dict[str, list[_Job]] = {}
        try:
            for each in judged:
                self._try_to_follow(each, jobs, now)
        finally:
            for stack_id, theirs in jobs.items():
                if theirs:
                    name = f'schedules of stack {stack_id}'
                    _PLACES.run(stack_id, name, self._perform, theirs)
                else:
                    _PLACES.leave(stack_id)
        times = [self._next_scan, *(k.until for k in self._known.values())]
        return max(_LEAST, min(times) - self._clock())

    def _rows(self, context: heat_types.Context, now: float) -> list[_Row]:
        """Read what is due, or now and then all schedules."""
        wanted = {n for n, each in self._known.items() if each.until <= now}
        is_scan = not 0 < self._next_scan - now <= _LONGEST
        if is_scan:
            interval: float = cfg.CONF.heat_plugins.rescue_interval
            self._next_scan = now + max(1.0, min(interval, _LONGEST))
            wanted = {*self._known}
        rows = schedule_rows.kept(context, None if is_scan else wanted)
        for number in wanted - {row.number for row in rows}:
            self._known.pop(number, None)
        return rows

    def _read(self, row: _Row, now: float) -> _Kept | None:
        """Return a schedule; None if it is not due, or unreadable."""
        known = self._known.get(row.number)
        if known is None or known.text != row.text:
            known = _Known(text=row.text)
        if known.until > now:
            return None
        try:
            if len(row.text) > _MOST_TEXT:
                raise ValueError(f'it is longer than {_MOST_TEXT} characters')
            return known.kept or _Kept.read(row.text)
        except ValueError as exc:
            self._note_unreadable(row, exc)
        return None

    def _judge(
        self,
        row: _Row,
        before: _Kept,
        heads: abc.Mapping[str, run_records.Head],
        now: float,
    ) -> _Judged | None:
        """Decide on a schedule; None if that cannot be done."""
        try:
            settled = before.settled(heads.get(_run_id(row, before)), now)
            decision = schedule_deciding.due(
                settled.schedule, settled.record, now
            )
        # A user may have written it: it must stop no other.
        except Exception as exc:
            self._note_unreadable(row, exc)
            return None
        return _Judged(
            row=row, before=before, settled=settled, decision=decision
        )

    def _note_unreadable(self, row: _Row, exc: Exception) -> None:
        is_later = isinstance(exc, stored.LaterVersion)
        LOG.warning(
            'Schedule %(name)s of stack %(stack)s does not run here, as its '
            'record is unreadable; %(remedy)s: %(error)s',
            {
                'name': row.name,
                'stack': row.stack_id,
                'remedy': 'engines of that release keep it'
                if is_later
                else 'update its resource',
                'error': foreign.brief(exc),
            },
        )
        self._known[row.number] = _Known(text=row.text, until=math.inf)

    def _try_to_follow(
        self, judged: _Judged, jobs: dict[str, list[_Job]], now: float
    ) -> None:
        """Record what is decided; a failure must stop no other."""
        row = judged.row
        try:
            self._follow(judged, jobs, int(now))
        except db_exception.DBConnectionError:
            raise
        except Exception as exc:
            # Of two engines that change rows together, the database lets one.
            is_lost = isinstance(exc, db_exception.DBDeadlock)
            pause = _between(*_NO_PLACE) if is_lost else _LONGEST
            LOG.warning(
                'Cannot record schedule %(name)s of stack %(stack)s; retrying '
                'within %(seconds).0f s: %(error)s',
                {
                    'name': row.name,
                    'stack': row.stack_id,
                    'seconds': pause,
                    'error': foreign.brief(exc),
                },
            )
            self._known[row.number] = _Known(text=row.text, until=now + pause)

    def _follow(
        self, judged: _Judged, jobs: dict[str, list[_Job]], now: int
    ) -> None:
        """Record what is decided, and note what to do if no other does.

        :param jobs: by stack; one that is there has a place.
        """
        row, before, decision = judged.row, judged.before, judged.decision
        after = dataclasses.replace(judged.settled, record=decision.record)
        settled = judged.settled.noticed(before)
        after = dataclasses.replace(after, book=settled.book)
        after = after.with_notices(settled, now)
        step, until = _needed(after, decision, now)
        if step is not None and row.stack_id not in jobs:
            if _PLACES.take(row.stack_id, row.project_id):
                jobs[row.stack_id] = []
            else:
                step, until = None, now + _between(*_NO_PLACE)
        if step is not None:
            when = 'checked' if step is _Step.CHECK else 'acted'
            after = after.with_record(**{when: now})
        notice, after, again = self._next_notice(row, after, now)
        text = row.text if after == before else after.text()
        # If another engine decides it, or a user changes it, it is read again.
        self._known[row.number] = _Known()
        is_recorded = False
        try:
            context = heat_context.get_admin_context()
            is_recorded = after == before or schedule_rows.replace(
                context, row.number, row.text, text
            )
        finally:
            if notice is not None and not is_recorded:
                notices.PLACES.leave(row.id)
        if not is_recorded:
            return
        self._known[row.number] = _Known(
            text=text, kept=after, until=min(until, again)
        )
        schedule_rows.count(before, after)
        _log(judged)
        if step is not None:
            jobs[row.stack_id].append(
                _Job(step=step, row=row, kept=after, text=text)
            )
        if notice is not None:
            name = f'notice of schedule {row.name}'
            notices.PLACES.run(row.id, name, self._tell, row, notice)

    def _next_notice(
        self, row: _Row, kept: _Kept, now: int
    ) -> tuple[notifying.Notice | None, _Kept, float]:
        """Return what to tell now, what to record before, and when again."""
        notice = kept.book.due(now)
        if notice is None:
            return None, kept, kept.notice_time
        if not notices.PLACES.take(row.id, row.project_id):
            return None, kept, now + _between(*_NO_PLACE)
        notice, kept = kept.tried(notice, now)
        return notice, kept, kept.notice_time

    def _perform(self, jobs: abc.Sequence[_Job]) -> None:
        """Do what is due in a stack; a failure must stop no other."""
        stack = _Stack(jobs[0].row)
        steps: dict[_Step, abc.Callable[[_Job, _Stack], None]] = {
            _Step.START: self._start,
            _Step.CANCEL: self._cancel,
            _Step.CHECK: _check,
        }
        for job in jobs:
            try:
                steps[job.step](job, stack)
            except run_store.Stale as exc:
                LOG.info('%s', exc)
            except Exception as exc:
                _record_failure(job, exc)
            schedule_rows.wake(job.row.number)

    def _start(self, job: _Job, stack: _Stack) -> None:
        """Start the run of the tick that is due."""
        row, kept = job.row, job.kept
        run_id = _run_id(row, kept)
        wanted, chosen = stack.choose(row, run_id)
        limits = run_records.RunLimits.asked(wanted.limits)
        now = int(self._clock())
        cut_off = kept.schedule.cut_off
        if cut_off is not None:
            left = max(1, kept.start + cut_off - now)
            limits = dataclasses.replace(limits, cut_off=left)
        order = run_records.RunOrder(
            id=run_id,
            action=wanted.action,
            limits=limits,
            members=(),
            created_at=now,
            created_by=f'schedule {row.name}',
            targets=chosen.description,
            inputs=wanted.inputs,
        )
        after = _with_run(kept)
        tick = run_store.Tick(
            schedule=row.id,
            due_at=kept.record.running or 0,
            resource=row.number,
            before=job.text,
            after=after.text(),
        )
        try:
            leading.start(row.project_id, door.new_run(order, chosen), tick)
        except errors.Exists as exc:
            # Of a time of the past, for which a user has asked again.
            LOG.info('%s', exc)
            _change(job, _with_run)
        else:
            schedule_rows.count(kept, after)

    def _cancel(self, job: _Job, stack: _Stack) -> None:
        """Cancel the run of a schedule, so that the next tick starts."""
        ask = ordering.Ask(
            run=_run_id(job.row, job.kept),
            do=run_requests.CANCEL,
            request=str(uuid.uuid4()),
        )
        # It may have ended, or is cancelled already.
        with contextlib.suppress(errors.Refused, errors.NotFound):
            door.Door(self._store, leading.wake, self._clock).follow(
                job.row.project_id, f'schedule {job.row.name}', ask
            )
        _change(job, lambda kept: kept.with_record(reason=''))

    def _tell(self, row: _Row, notice: notifying.Notice) -> None:
        """Send a notice of a schedule."""

        def opened() -> tuple[Any, Any]:
            stack = _Stack(row)
            return stack.loaded, stack.resource(row)

        def read(run_id: str) -> run_records.RunRecord:
            return self._store.load(run_id).run

        notices.tell(row, notice, opened, read, self._clock)
        schedule_rows.wake(row.number)


def _run_id(row: _Row, kept: _Kept) -> str:
    """Return the ID of the run of the tick that runs."""
    return schedules.run_id(row.id, kept.record.running or 0)


def _with_run(kept: _Kept) -> _Kept:
    """Return a schedule once the run of its tick is there."""
    return dataclasses.replace(
        kept, record=schedule_deciding.created(kept.record)
    )


def _needed(
    kept: _Kept, decision: schedule_deciding.Decision, now: int
) -> tuple[_Step | None, float]:
    """Return what a schedule needs now, and when it may need more."""
    record, next_time = kept.record, decision.next_time or math.inf
    if record.running is None:
        # A clock may have been wrong, here as below.
        interval = _between_checks(record)
        is_late = abs(now - record.checked) >= interval
        if is_late and not kept.why_paused:
            return _Step.CHECK, min(next_time, now + _LONGEST)
        check = max(record.checked + interval, now + _LONGEST)
        return None, min(next_time, check)
    step: _Step | None = None
    if not record.created:
        step = _Step.START
    elif decision.cancel is not None:
        step = _Step.CANCEL
    acted = record.acted if record.acted <= now + _LONGEST else 0
    until = acted + _pause(kept, acted)
    if step is not None and until > now:
        return None, min(next_time, until)
    pause = _between(*_POLLS) if step is None else _pause(kept, now)
    return step, min(next_time, now + pause)


def _between_checks(record: schedule_deciding.ScheduleRecord) -> int:
    """Return the seconds between two checks whether a schedule can run."""
    # A check does not withdraw the reason of a tick that was missed.
    is_missed = record.outcome == schedule_deciding.MISSED
    return _HOUR if record.reason and not is_missed else _DAY


def _pause(kept: _Kept, acted: float) -> float:
    """Return the seconds until something is retried: a late start later.

    :param acted: when an engine began with it.
    """
    if kept.record.created:
        return _RETRY
    begun = kept.record.create_until - kept.schedule.lateness
    return min(_LONGEST, _RETRY + max(0, acted - begun) / 4)


def _between(least: float, most: float) -> float:
    """Return the seconds of a pause, of each process another number."""
    # Not a secret.
    return random.uniform(least, most)  # noqa: S311 # nosec B311


#: Starts with each engine.
SCAN = process.Scan(
    name='heat-plugins-schedules',
    wanted='schedules that are due',
    begin=lambda: Keeper().keep,
    spread=1.0,
)


def _tell(row: _Row, ticks: abc.Iterable[int], why: str) -> None:
    """Tell operators and users of ticks that are missed."""
    times = bounds.listed([str(summary.time(tick)) for tick in ticks])
    LOG.warning(
        'Schedule %(name)s of stack %(stack)s has missed %(times)s: %(why)s',
        {
            'name': row.name,
            'stack': row.stack_id,
            'times': times,
            'why': why,
        },
    )
    try:
        context = heat_context.get_admin_context()
        schedule_rows.add_event(context, row, f'missed {times}: {why}')
    except Exception as exc:
        # The record has it, too.
        LOG.info('Cannot write an event: %s', foreign.brief(exc))


def _log(judged: _Judged) -> None:
    row, decision = judged.row, judged.decision
    before, settled = judged.before.record, judged.settled.record
    if decision.record.since < before.since:
        LOG.warning(
            'Schedule %(name)s of stack %(stack)s was decided by a clock that '
            'was more than a day ahead; synchronize the clocks of the engines',
            {'name': row.name, 'stack': row.stack_id},
        )
    is_left = settled.running is None and not before.created
    if before.running and is_left and not judged.before.is_held:
        _tell(row, [before.running], settled.reason)
    missed = [
        tick
        for tick, why in decision.passed
        if why is schedule_deciding.Passed.MISSED
    ]
    if missed:
        _tell(row, missed, decision.record.reason)
    passed = [
        f'{summary.time(tick)}: {why.value}'
        for tick, why in decision.passed
        if why not in _NOT_LOGGED
    ]
    if passed:
        LOG.warning(
            'Schedule %(name)s of stack %(stack)s does not start %(passed)s',
            {
                'name': row.name,
                'stack': row.stack_id,
                'passed': bounds.listed(passed, between='; '),
            },
        )


def _record_failure(job: _Job, exc: Exception) -> None:
    # Others may quote secrets.
    is_own_error = isinstance(exc, errors.Error)
    shown = str(exc) if is_own_error else type(exc).__name__
    reason = bounds.shortened(shown, bounds.PART)
    LOG.log(
        logging.INFO if reason == job.kept.record.reason else logging.WARNING,
        'Cannot %(step)s schedule %(name)s of stack %(stack)s; retrying: '
        '%(error)s',
        {
            'step': job.step.value,
            'name': job.row.name,
            'stack': job.row.stack_id,
            'error': foreign.brief(exc),
        },
    )
    change: _Change = lambda kept: kept.with_record(reason=reason)  # noqa: E731
    may_pass = isinstance(exc, errors.Error) and exc.may_pass
    if job.step is _Step.CHECK and may_pass:
        # It is retried soon.
        last = job.kept.record.checked - _between_checks(job.kept.record)
        checked = max(0, last + _CHECK_RETRY)
        change = lambda kept: kept.with_record(checked=checked)  # noqa: E731
    with contextlib.suppress(Exception):
        _change(job, change)


def _change(job: _Job, changed: _Change) -> None:
    """Change the record while the same tick runs."""

    def change(kept: _Kept) -> _Kept:
        is_same = kept.record.running == job.kept.record.running
        return changed(kept) if is_same else kept

    context = heat_context.get_admin_context()
    schedule_rows.change(context, job.row.number, change)


def _check(job: _Job, stack: _Stack) -> None:
    """Find out whether a schedule can run.

    :raises errors.Error: it cannot.
    """
    wanted, chosen = stack.choose(job.row, '')
    if chosen.unmet:
        raise errors.NotFound(
            f'There is no target for {wanted.action} in '
            + bounds.listed(chosen.unmet)
        )
    _change(
        job,
        lambda kept: (
            kept
            if kept.record.outcome == schedule_deciding.MISSED
            else kept.with_record(reason='')
        ),
    )
