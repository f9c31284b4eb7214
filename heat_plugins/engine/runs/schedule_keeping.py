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
from heat_plugins import heat_values
from heat_plugins import stored
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine import transports
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.database import stack_reading
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import deciding
from heat_plugins.runs import notifying
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
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

# Seconds between two scans for schedules that other engines have stored, at
# most, and the least pause.
_LONGEST, _LEAST = 60.0, 0.1

# Seconds between two checks whether a schedule can run, after a temporary
# failure.
_CHECK_RETRY = 600

# Characters of a record that are read. A text of the database holds twice as
# many bytes.
_MOST_TEXT = 32_000

_Row = schedule_rows.ScheduleRow
_Kept = schedule_deciding.KeptSchedule
_Step = schedule_deciding.Needed
_Change: TypeAlias = abc.Callable[[_Kept], _Kept]

# What a warning names already, or a user has asked for.
_NOT_LOGGED = (
    schedule_deciding.Passed.MISSED,
    schedule_deciding.Passed.PAUSED,
)


#: The threads that start and cancel runs.
PLACES = process.Places(_MOST, _MOST_OF_PROJECT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Known:
    """What was decided of a schedule, and when to decide again.

    :ivar kept: what the text says; None if it was not read.
    :ivar run_id: of the tick that runs.
    """

    text: str = ''
    kept: _Kept | None = None
    run_id: str = ''
    until: float = 0.0


@dataclasses.dataclass(frozen=True)
class _Decided:
    """A decision on a schedule.

    :ivar before: what is recorded of it.
    :ivar settled: the same with what has become of the tick that runs.
    """

    row: _Row
    before: _Kept
    settled: _Kept
    decision: schedule_deciding.Decision


#: What to do for a schedule, whose row has what is recorded.
_Job: TypeAlias = tuple[_Step, _Row, _Kept]


class _Stack:
    """A stack with schedules that are due.

    :raises errors.Denied: it cannot be loaded.
    """

    def __init__(self, row: _Row) -> None:
        self._row = row

    @functools.cached_property
    def loaded(self) -> Any:
        """The stack, loaded with its stored credentials."""
        return run_fleet.load_stack(self._row.stack_id, self._row.project_id)

    @functools.cached_property
    def _selected_from(self) -> stack_reading.ProjectStacks:
        """The stacks that the schedule's stored credentials can read."""
        try:
            # It asks Keystone for a token.
            context = heat_types.in_project(
                self.loaded.context, self._row.project_id, is_admin=False
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
        """Return the order of a tick of a schedule, and its targets.

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
        """Decide the due schedules; return the seconds until the next look."""
        for changed in schedule_rows.take_changed():
            numbers = (
                [changed]
                if isinstance(changed, int)
                else [n for n, e in self._known.items() if e.run_id == changed]
            )
            self._known.update((number, _Known()) for number in numbers)
        now = self._clock()
        rows = self._rows(now)
        # In another order each time, so that none is always last.
        random.shuffle(rows)  # nosec B311
        due = [
            (row, kept)
            for row in rows
            if (kept := self._read(row, now)) is not None
        ]
        # A run that has not ended now had not when a tick was due.
        heads = self._store.heads_of(
            {
                _run_id(row, kept): row.project_id
                for row, kept in due
                if kept.record.created
            }
        )
        decided = []
        for row, kept in due:
            try:
                settled = kept.settled(heads.get(_run_id(row, kept)), now)
                decision = schedule_deciding.due(
                    settled.schedule, settled.record, now
                )
            # A user may have written it: it must stop no other.
            except Exception as exc:
                self._note_unreadable(row, exc)
            else:
                decided.append(_Decided(row, kept, settled, decision))
        # What is due gets a thread before what is only checked.
        decided.sort(key=lambda each: each.decision.record.running is None)
        jobs: dict[str, list[_Job]] = {}
        try:
            for each in decided:
                self._try_to_follow(each, jobs, now)
        finally:
            for stack_id, theirs in jobs.items():
                if theirs:
                    PLACES.run(
                        stack_id,
                        f'schedules of stack {stack_id}',
                        self._perform,
                        theirs,
                    )
                else:
                    PLACES.leave(stack_id)
        times = [self._next_scan, *(k.until for k in self._known.values())]
        return max(_LEAST, min(times) - self._clock())

    def _rows(self, now: float) -> list[_Row]:
        """Read the due schedules, or now and then all."""
        wanted = {n for n, each in self._known.items() if each.until <= now}
        is_scan = not 0 < self._next_scan - now <= _LONGEST
        if is_scan:
            interval: float = cfg.CONF.heat_plugins.rescue_interval
            self._next_scan = now + max(1.0, min(interval, _LONGEST))
            wanted = {*self._known}
        rows = schedule_rows.kept(
            heat_context.get_admin_context(), None if is_scan else wanted
        )
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

    def _note_unreadable(self, row: _Row, exc: Exception) -> None:
        """Warn once of a schedule whose record is unreadable here."""
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
        self, decided: _Decided, jobs: dict[str, list[_Job]], now: float
    ) -> None:
        """Record a decision; a failure must stop no other schedule."""
        row = decided.row
        try:
            self._follow(decided, jobs, int(now))
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
        self, decided: _Decided, jobs: dict[str, list[_Job]], now: int
    ) -> None:
        """Record a decision, and add its job unless another engine does.

        :param jobs: by stack; one that is there has a place.
        """
        row, before, decision = decided.row, decided.before, decided.decision
        settled = decided.settled.noticed(before)
        after = dataclasses.replace(settled, record=decision.record)
        after = after.with_notices(settled, now)
        step, until = schedule_deciding.needed(
            after, decision, now, _between(*_POLLS)
        )
        if step is not None and row.stack_id not in jobs:
            if PLACES.take(row.stack_id, row.project_id):
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
            is_recorded = after == before or schedule_rows.replace(
                heat_context.get_admin_context(), row.number, row.text, text
            )
        finally:
            if notice is not None and not is_recorded:
                run_scans.PLACES.leave(row.id)
        if not is_recorded:
            return
        self._known[row.number] = _Known(
            text=text,
            kept=after,
            run_id=_run_id(row, after),
            until=min(until, again),
        )
        schedule_rows.count(before, after)
        _log(decided)
        if step is not None:
            row = dataclasses.replace(row, text=text)
            jobs[row.stack_id].append((step, row, after))
        if notice is not None:
            run_scans.PLACES.run(
                row.id,
                f'notice of schedule {row.name}',
                self._tell,
                row,
                notice,
            )

    def _next_notice(
        self, row: _Row, kept: _Kept, now: int
    ) -> tuple[notifying.Notice | None, _Kept, float]:
        """Return the notice to send, the new record, and the next time."""
        notice = kept.book.due(now)
        if notice is None:
            return None, kept, kept.notice_time
        if not run_scans.PLACES.take(row.id, row.project_id):
            return None, kept, now + _between(*_NO_PLACE)
        notice, kept = kept.tried(notice, now)
        return notice, kept, kept.notice_time

    def _perform(self, jobs: abc.Sequence[_Job]) -> None:
        """Do the due jobs of a stack; a failure must stop no other."""
        stack = _Stack(jobs[0][1])
        steps: dict[_Step, abc.Callable[[_Row, _Kept, _Stack], None]] = {
            _Step.START: self._start,
            _Step.CANCEL: self._cancel,
            _Step.CHECK: _check,
        }
        for step, row, kept in jobs:
            try:
                steps[step](row, kept, stack)
            except run_store.Stale as exc:
                LOG.info('%s', exc)
            except Exception as exc:
                _record_failure(step, row, kept, exc)
            schedule_rows.wake(row.number)

    def _start(self, row: _Row, kept: _Kept, stack: _Stack) -> None:
        """Start the run of the tick that is due."""
        wanted, chosen = stack.choose(row, _run_id(row, kept))
        now, limits = int(self._clock()), dict(wanted.limits)
        cut_off = kept.schedule.cut_off
        if cut_off is not None:
            limits['cut_off'] = max(1, kept.start + cut_off - now)
        order = run_records.RunOrder(
            id=wanted.run,
            action=wanted.action,
            limits=run_records.RunLimits.asked(limits),
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
            before=row.text,
            after=after.text(),
        )
        run = door.new_run(order, chosen.targets)
        try:
            leading.leader().start(row.project_id, run, tick)
        except errors.Exists as exc:
            # Of a time of the past, for which a user has asked again.
            LOG.info('%s', exc)
            _change(row, kept, _with_run)
        else:
            schedule_rows.count(kept, after)

    def _cancel(self, row: _Row, kept: _Kept, stack: _Stack) -> None:
        """Cancel the run of a schedule, so that the next tick starts."""
        ask = ordering.Ask(
            run=_run_id(row, kept),
            do=deciding.CANCEL,
            request=str(uuid.uuid4()),
        )
        # It may have ended, or is cancelled already.
        with contextlib.suppress(errors.Refused, errors.NotFound):
            door.Door(self._store, leading.wake, self._clock).follow(
                row.project_id, f'schedule {row.name}', ask
            )
        _change(row, kept, lambda kept: kept.with_record(reason=''))

    def _tell(self, row: _Row, notice: notifying.Notice) -> None:
        """Send a notice, and record how that went."""
        run_id = schedules.run_id(row.id, notice.tick)

        def send() -> None:
            stack = _Stack(row)
            resource = stack.resource(row)
            with resource.frozen_properties() as props:
                action = props[resource.ACTION]
            where = {
                'id': f'{run_id}.{notice.event.value}',
                'project': row.project_id,
                'stack': {'id': row.stack_id, 'name': row.stack_name},
                'schedule': {'id': row.id, 'name': row.name},
                'run': run_id,
                'action': action,
            }
            run_scans.send(
                notice,
                where,
                lambda: self._store.load(run_id).run,
                self._clock(),
                **resource.receiver(),
            )

        why = run_scans.why_not(send)
        context, now = heat_context.get_admin_context(), self._clock()
        # What is not recorded is repeated.
        with contextlib.suppress(Exception):
            is_changed = schedule_rows.change(
                context, row.number, lambda kept: kept.told(notice, why, now)
            )
            if why and is_changed:
                run_scans.log_given_up(
                    f'schedule {row.name} of stack {row.stack_id}',
                    notice.event.value,
                    why,
                )
                schedule_rows.add_event(
                    context,
                    row,
                    f'{notice.event.value}: {why}',
                    heat_values.EventKind.NOT_TOLD,
                )
        schedule_rows.wake(row.number)


def _run_id(row: _Row, kept: _Kept) -> str:
    """Return the ID of the run of the tick that runs."""
    return schedules.run_id(row.id, kept.record.running or 0)


def _with_run(kept: _Kept) -> _Kept:
    """Return a schedule once the run of its tick is there."""
    return dataclasses.replace(
        kept, record=schedule_deciding.created(kept.record)
    )


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
    times = [str(summary.time(tick)) for tick in ticks]
    LOG.warning(
        'Schedule %(name)s of stack %(stack)s has missed %(times)s: %(why)s',
        {
            'name': row.name,
            'stack': row.stack_id,
            'times': bounds.listed(times),
            'why': why,
        },
    )
    try:
        context = heat_context.get_admin_context()
        # A client that cuts the event shows why, too.
        schedule_rows.add_event(
            context, row, f'missed {bounds.listed(times, 2)}: {why}'
        )
    except Exception as exc:
        # The record has it, too.
        LOG.info('Cannot write an event: %s', foreign.brief(exc))


def _log(decided: _Decided) -> None:
    """Write events and the log of what was decided for a schedule."""
    row, decision = decided.row, decided.decision
    before, settled = decided.before.record, decided.settled.record
    is_left = settled.running is None and not before.created
    if before.running and is_left and not decided.before.is_held:
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


def _record_failure(
    step: _Step, row: _Row, kept: _Kept, exc: Exception
) -> None:
    """Log why a schedule cannot do a step, and keep the reason."""
    # Others may quote secrets.
    shown = str(exc) if isinstance(exc, errors.Error) else type(exc).__name__
    reason = bounds.shortened(shown, bounds.PART)
    is_repeated = kept.with_record(reason=reason) == kept
    LOG.log(
        logging.INFO if is_repeated else logging.WARNING,
        'Cannot %(step)s schedule %(name)s of stack %(stack)s; retrying: '
        '%(error)s',
        {
            'step': step.value,
            'name': row.name,
            'stack': row.stack_id,
            'error': foreign.brief(exc),
        },
    )
    changed: dict[str, object] = {'reason': reason}
    if step is _Step.CHECK and isinstance(exc, errors.Error) and exc.may_pass:
        # It is retried soon.
        interval = schedule_deciding.between_checks(kept.record)
        changed = {
            'checked': max(0, kept.record.checked - interval + _CHECK_RETRY)
        }
    with contextlib.suppress(Exception):
        _change(row, kept, lambda kept: kept.with_record(**changed))


def _change(row: _Row, kept: _Kept, changed: _Change) -> None:
    """Change the record while the same tick runs."""
    tick = kept.record.running
    schedule_rows.change(
        heat_context.get_admin_context(),
        row.number,
        lambda now: changed(now) if now.record.running == tick else now,
    )


def _check(row: _Row, kept: _Kept, stack: _Stack) -> None:
    """Find out whether a schedule can run.

    :raises errors.Error: it cannot.
    """
    wanted, chosen = stack.choose(row, '')
    if chosen.unmet:
        raise errors.NotFound(
            f'There is no target for {wanted.action} in '
            + bounds.listed(chosen.unmet)
        )
    # A check does not withdraw the reason of a tick that was missed.
    _change(
        row,
        kept,
        lambda kept: (
            kept
            if kept.record.outcome == schedule_deciding.MISSED
            else kept.with_record(reason='')
        ),
    )
