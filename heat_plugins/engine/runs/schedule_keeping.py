# SPDX-License-Identifier: Apache-2.0
"""Keeping schedules: each due tick becomes an operation, once.

One thread of each process with an engine reads the schedules of all projects
with one statement, and sleeps until the first of them is due. It records what
it decides, see `schedule_deciding`, before it acts: of several engines one
does so. If that one dies, another creates the operation, whose ID is that of
the tick. Operations are created, advanced and read with the credentials that
are stored with the stack, each in a thread.
"""

from collections import abc
import contextlib
import dataclasses
import enum
import functools
import logging
import math
import random
import threading
import time
from typing import Any, TypeAlias

from heat.common import context as heat_context
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.clients import heat as heat_api
from heat_plugins.clients import rest
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine.database import scans
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import notices
from heat_plugins.engine.runs import operation_telling
from heat_plugins.objectstore import wire
from heat_plugins.runs import notifying
from heat_plugins.runs import schedule_deciding
from heat_plugins.runs import schedule_notices
from heat_plugins.runs import schedule_reading
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders

LOG = foreign.logger(__name__)

# Operations that one process creates or reads at a time, and of one project.
_MOST, _MOST_OF_PROJECT = 32, 8

# Requests, seconds and bytes for that: as many as to lead an operation.
_BUDGET = (2000, 300.0, 400 * 1024 * 1024)

# Seconds between two polls while an operation has not ended, and until what
# has no thread is retried: at random, as there are several processes.
_POLLS, _NO_PLACE = (15.0, 30.0), (2.0, 6.0)

# Seconds until what failed is retried first, and after which the end of an
# operation is recorded although something else was done for it.
_RETRY, _SOON = 15.0, 5.0

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
_Judged: TypeAlias = tuple[_Row, _Kept, schedule_deciding.Decision]

# What a warning names already, or a user has asked for.
_NOT_LOGGED = (
    schedule_deciding.Passed.MISSED,
    schedule_deciding.Passed.PAUSED,
)


class _Step(enum.Enum):
    """What an engine does for a schedule, as messages say it."""

    CREATE = 'create the operation of'
    CANCEL = 'cancel the operation of'
    SETTLE = 'read the end of the operation of'
    CHECK = 'find the targets of'


_PLACES = process.Places(_MOST, _MOST_OF_PROJECT)
# The numbers of schedules that have changed in this process.
_changed: set[int] = set()
_woken = threading.Event()


def wake(number: int) -> None:
    """Let this process read a schedule now: it has changed."""
    _changed.add(number)
    _woken.set()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Known:
    """What was decided of a schedule, and when to decide again.

    :ivar kept: what the text says; None if it was not read.
    """

    text: str = ''
    kept: _Kept | None = None
    until: float = 0.0


class Keeper:
    """Keeps the schedules of all projects, for one process.

    :param clock: seconds since the epoch.
    """

    def __init__(self, clock: abc.Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._known: dict[int, _Known] = {}
        self._next_scan = 0.0

    def keep(self) -> None:
        """Keep schedules until an error of the database."""
        while True:
            _woken.wait(self.look())

    def look(self) -> float:
        """Decide what is due; return the seconds until the next look."""
        self._forget_changed()
        context, now = heat_context.get_admin_context(), self._clock()
        # In another order each time, so that none is always last.
        rows = fleet_watching.shuffled(self._rows(context, now))
        judged = [each for row in rows if (each := self._judge(row, now))]
        # What is due gets a thread before what is only checked.
        judged.sort(key=lambda each: each[2].record.running is None)
        ended = scans.ended(
            context,
            {
                (row.project_id, record_names.id_of_tick(row.id, running))
                for row, kept, _ in judged
                if (running := kept.record.running) and kept.record.created
            },
        )
        for each in judged:
            self._try_to_follow(each, ended, now)
        times = [self._next_scan, *(k.until for k in self._known.values())]
        return max(_LEAST, min(times) - self._clock())

    def _try_to_follow(
        self, judged: _Judged, ended: abc.Set[tuple[str, str]], now: float
    ) -> None:
        """Record and do what is decided; a failure must stop no other."""
        row = judged[0]
        try:
            self._follow(*judged, ended, int(now))
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

    def _forget_changed(self) -> None:
        """Forget the schedules that have changed in this process."""
        _woken.clear()
        while _changed:
            self._known[_changed.pop()] = _Known()

    def _rows(self, context: heat_types.Context, now: float) -> list[_Row]:
        """Read what is due, or now and then all schedules."""
        wanted = {n for n, each in self._known.items() if each.until <= now}
        is_scan = not 0 < self._next_scan - now <= _LONGEST
        if is_scan:
            interval: float = cfg.CONF.heat_plugins.rescue_interval
            self._next_scan = now + max(1.0, min(interval, _LONGEST))
            operation_telling.look(self._clock)
            wanted = {*self._known}
        rows = schedule_rows.kept(context, None if is_scan else wanted)
        for number in wanted - {row.number for row in rows}:
            del self._known[number]
        return rows

    def _judge(self, row: _Row, now: float) -> _Judged | None:
        """Decide on a schedule; None if it is not due, or unreadable."""
        known = self._known.get(row.number)
        if known is None or known.text != row.text:
            known = _Known(text=row.text)
        if known.until > now:
            return None
        try:
            kept = known.kept or _read(row.text)
            decision = schedule_deciding.due(kept.schedule, kept.record, now)
        # A user may have written it: it must stop no other.
        except Exception as exc:
            is_later = isinstance(exc, stored.LaterRelease)
            LOG.warning(
                'Schedule %(name)s of stack %(stack)s does not run here, as '
                'its record is unreadable; %(remedy)s: %(error)s',
                {
                    'name': row.name,
                    'stack': row.stack_id,
                    'remedy': 'engines of that release keep it'
                    if is_later
                    else 'update its resource',
                    'error': foreign.brief(exc),
                },
            )
            self._known[row.number] = dataclasses.replace(
                known, until=math.inf
            )
            return None
        return row, kept, decision

    def _follow(
        self,
        row: _Row,
        kept: _Kept,
        decision: schedule_deciding.Decision,
        ended: abc.Set[tuple[str, str]],
        now: int,
    ) -> None:
        """Record what is decided, then do it if no other process does."""
        after = dataclasses.replace(kept, record=decision.record)
        running = record_names.id_of_tick(row.id, after.record.running or 0)
        after = schedule_notices.changed(
            kept, after, now, has_ended=(row.project_id, running) in ended
        )
        step, until = self._needed(row, after, decision, ended, now)
        # No engine has started a tick of which nothing is recorded. One of the
        # past may have run then.
        record = after.record
        is_first = not (record.acted or record.is_backfilled)
        if step is not None and not _PLACES.take(row.id, row.project_id):
            step, until = None, now + _between(*_NO_PLACE)
        if step is not None:
            when = 'checked' if step is _Step.CHECK else 'acted'
            after = after.with_record(**{when: now})
        notice, after, again = self._next_notice(row, after, now)
        until = min(until, again)
        text = row.text if after == kept else after.text()
        # If another engine decides it, or a user changes it, it is read again.
        self._known[row.number] = _Known()
        is_recorded = False
        try:
            context = heat_context.get_admin_context()
            is_recorded = after == kept or schedule_rows.replace(
                context, row.number, row.text, text
            )
        finally:
            if step is not None and not is_recorded:
                _PLACES.leave(row.id)
            if notice is not None and not is_recorded:
                notices.PLACES.leave(row.id)
        if is_recorded:
            self._known[row.number] = _Known(
                text=text, kept=after, until=until
            )
            schedule_rows.count(kept, after)
            _log(row, kept, decision)
            if step is not None:
                name = f'schedule {row.name}'
                _PLACES.run(
                    row.id, name, self._perform, step, row, after, is_first
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
            return None, kept, schedule_notices.next_time(kept)
        if not notices.PLACES.take(row.id, row.project_id):
            return None, kept, now + _between(*_NO_PLACE)
        notice, kept = kept.tried(notice, now)
        return notice, kept, schedule_notices.next_time(kept)

    def _needed(
        self,
        row: _Row,
        kept: _Kept,
        decision: schedule_deciding.Decision,
        ended: abc.Set[tuple[str, str]],
        now: int,
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
        operation_id = record_names.id_of_tick(row.id, record.running)
        if not record.created:
            step = _Step.CREATE
        elif (row.project_id, operation_id) in ended:
            step = _Step.SETTLE
        elif decision.cancel is not None:
            step = _Step.CANCEL
        acted = record.acted if record.acted <= now + _LONGEST else 0
        until = acted + _pause(kept, acted)
        if step is _Step.SETTLE and not record.reason:
            until = acted + _SOON
        if step is not None and until > now:
            return None, min(next_time, until)
        pause = _between(*_POLLS) if step is None else _pause(kept, now)
        return step, min(next_time, now + pause)

    def _perform(
        self, step: _Step, row: _Row, kept: _Kept, is_first: bool
    ) -> None:
        """Do something for a schedule, and record how that went.

        :param is_first: whether nothing was done before for this tick.
        """
        steps: dict[_Step, abc.Callable[[_Row, _Kept], _Change]] = {
            _Step.CREATE: functools.partial(self._create, is_first=is_first),
            _Step.CANCEL: _cancel,
            _Step.SETTLE: _settle,
            _Step.CHECK: _check,
        }
        try:
            changed = steps[step](row, kept)
            if _change(row, kept, changed) and changed is _Kept.given_up:
                tick = kept.record.running or 0
                missed = record_names.id_of_tick(row.id, tick)
                why = kept.record.reason or schedule_deciding.LATE
                _tell(row, f'{missed}: {why}')
        except Exception as exc:
            _record_failure(step, row, kept, exc)
        wake(row.number)
        if step is _Step.CREATE and fleets.is_tick_to_tidy():
            # The next tick retries.
            with contextlib.suppress(errors.Error):
                door = _door(row, _stack(row))
                door.tidy(fleets.FORGOTTEN_AT_TICKS)

    def _tell(self, row: _Row, notice: notifying.Notice) -> None:
        """Send a notice of a schedule."""

        def opened() -> tuple[Any, Any, fleets.Fleets]:
            stack = _stack(row)
            door = _door(row, stack, limits=notices.BUDGET)
            return stack, _resource(row, stack), door

        notices.tell(row, notice, opened, self._clock)
        wake(row.number)

    def _create(self, row: _Row, kept: _Kept, *, is_first: bool) -> _Change:
        """Create the operation of the tick that runs."""
        tick = kept.record.running or 0
        operation_id = record_names.id_of_tick(row.id, tick)
        now = self._clock()
        is_over = kept.is_held or now > kept.record.create_until
        is_advanced = False
        if not _is_created(row, operation_id, is_over):
            if is_over:
                return _when_held if kept.is_held else _Kept.given_up
            try:
                is_advanced = _operate(row, kept, operation_id, now, is_first)
            except errors.Exists as exc:
                LOG.info('%s', exc)
        if not is_advanced:
            fleet_watching.look_soon(operation_id, row.project_id)
        return lambda after: dataclasses.replace(
            after, record=schedule_deciding.created(after.record)
        )


def _between_checks(record: schedule_deciding.ScheduleRecord) -> int:
    """Return the seconds between two checks whether a schedule can run."""
    # A check does not withdraw the reason of a tick that was missed.
    is_missed = record.outcome == schedule_deciding.MISSED
    return _HOUR if record.reason and not is_missed else _DAY


def _check_soon(kept: _Kept) -> _Kept:
    """Return it so that its check is retried soon."""
    early = _between_checks(kept.record) - _CHECK_RETRY
    return kept.with_record(checked=max(0, kept.record.checked - early))


def _read(text: str) -> _Kept:
    """Read a schedule whose record can be stored, however it changes.

    :raises ValueError: it cannot, or it is unreadable.
    """
    if len(text) > _MOST_TEXT:
        raise ValueError(f'it is longer than {_MOST_TEXT} characters')
    return _Kept.read(text)


def _is_created(row: _Row, operation_id: str, is_over: bool) -> bool:
    """Say whether an engine, which may have died since, has created it.

    It may have ended: at once, or long ago, if it is of a backfill.

    :param is_over: whether no other engine may create it now.
    :raises errors.Unavailable: one does so all the same.
    """
    if not scans.is_registered(
        heat_context.get_admin_context(), row.project_id, operation_id
    ):
        return False
    door = _door(row, _stack(row))
    if door.is_recorded(operation_id):
        return True
    if is_over and door.is_led(operation_id):
        raise errors.Unavailable(
            f'Another process creates operation {operation_id}'
        )
    return False


def _when_held(kept: _Kept) -> _Kept:
    """Return it without the tick that runs, if a pause still holds that."""
    return kept.given_up() if kept.is_held else kept


def _pause(kept: _Kept, acted: float) -> float:
    """Return the seconds until something is retried: a late creation later.

    :param acted: when an engine began with it.
    """
    if kept.record.created:
        return _RETRY
    if kept.is_held:
        # Until then, who began with it may still create it.
        return _LONGEST
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


def _tell(row: _Row, missed: str) -> None:
    """Tell operators and users of ticks that are missed."""
    LOG.warning(
        'Schedule %(name)s of stack %(stack)s has missed %(missed)s',
        {'name': row.name, 'stack': row.stack_id, 'missed': missed},
    )
    try:
        context = heat_context.get_admin_context()
        schedule_rows.add_event(context, row, f'missed {missed}')
    except Exception as exc:
        # The record has it, too.
        LOG.info('Cannot write an event: %s', foreign.brief(exc))


def _log(
    row: _Row, before: _Kept, decision: schedule_deciding.Decision
) -> None:
    if decision.record.since < before.record.since:
        LOG.warning(
            'Schedule %(name)s of stack %(stack)s was decided by a clock that '
            'was more than a day ahead; synchronize the clocks of the engines',
            {'name': row.name, 'stack': row.stack_id},
        )
    missed = [
        record_names.id_of_tick(row.id, tick)
        for tick, why in decision.passed
        if why is schedule_deciding.Passed.MISSED
    ]
    if missed:
        listed = bounds.listed(missed)
        _tell(row, f'{listed}: {decision.record.reason}')
    passed = [
        f'{record_names.id_of_tick(row.id, tick)}: {why.value}'
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
    # Others may quote secrets.
    is_own_error = isinstance(exc, errors.Error)
    shown = str(exc) if is_own_error else type(exc).__name__
    reason = bounds.shortened(shown, bounds.PART)
    LOG.log(
        logging.INFO if reason == kept.record.reason else logging.WARNING,
        'Cannot %(step)s schedule %(name)s of stack %(stack)s; retrying: '
        '%(error)s',
        {
            'step': step.value,
            'name': row.name,
            'stack': row.stack_id,
            'error': foreign.brief(exc),
        },
    )
    change = _with_reason(reason)
    if step is _Step.CHECK and isinstance(exc, errors.Error) and exc.may_pass:
        change = _check_soon
    with contextlib.suppress(Exception):
        _change(row, kept, change)


def _with_reason(reason: str) -> _Change:
    return lambda kept: kept.with_record(reason=reason)


def _change(row: _Row, before: _Kept, changed: _Change) -> bool:
    """Change the record while the same tick runs; say if that did so."""

    def change(kept: _Kept) -> _Kept:
        is_same = kept.record.running == before.record.running
        return changed(kept) if is_same else kept

    context = heat_context.get_admin_context()
    return schedule_rows.change(context, row.number, change)


def _stack(row: _Row) -> Any:
    stack = fleet_watching.load_stack(row.stack_id, row.project_id)
    if stack is None:
        raise errors.Denied(
            'heat-engine cannot load the stack with its stored credentials; '
            'its log has the cause at debug level'
        )
    return stack


def _budget(
    row: _Row, limits: tuple[int, float, int] = _BUDGET
) -> wire.Budget:
    return fleet_watching.budget_of(f'schedule {row.name}', limits)


def _door(
    row: _Row,
    stack: Any,
    budget: wire.Budget | None = None,
    limits: tuple[int, float, int] = _BUDGET,
) -> fleets.Fleets:
    """Return the way to operations.

    :param budget: of one that this process may advance; None for others.
    :param limits: of the budget for others.
    """
    return fleet_watching.door(
        stack,
        budget or _budget(row, limits),
        who=f'schedule {row.name}',
        workers=fleet_watching.AT_A_TIME if budget else 1,
    )


def _choose(
    row: _Row, stack: Any
) -> tuple[fleet_targets.Chosen, operations.OperationLimits, orders.RunOrder]:
    """Return what a tick of a schedule runs now.

    :raises errors.Error: it can run nothing.
    """
    wanted, order, limits = _resource(row, stack).ordered()
    chooser = fleet_targets.Chooser(_heat(stack), pools.Pool(workers=1))
    try:
        return chooser.choose(wanted, order), limits, order
    except errors.Denied as exc:
        raise errors.Denied(
            f'{exc}. If the trust or the user of the stack is gone, update '
            'the stack as another user',
            exc.status,
        ) from exc


def _resource(row: _Row, stack: Any) -> Any:
    """Return the resource of a schedule.

    :raises errors.Error: there is none.
    """
    resource = stack.resource_get(row.name)
    if resource is None or resource.uuid != row.id:
        raise errors.Unavailable('The stack replaces the schedule')
    if resource.type() != schedule_reading.TYPE:
        # Who adopts a stack may write any data of any resource.
        raise errors.Refused('The resource is no schedule')
    return resource


def _operate(
    row: _Row, kept: _Kept, operation_id: str, now: float, is_first: bool
) -> bool:
    """Create an operation as a command does.

    :param is_first: see `Keeper._perform`.
    :returns: whether this process advances it; else it is left to an engine.
    """
    stack = _stack(row)
    chosen, limits, order = _choose(row, stack)
    cut_off = kept.schedule.cut_off
    if cut_off is not None:
        left = kept.start + cut_off - int(now)
        limits = dataclasses.replace(limits, cut_off=max(1, left))
    budget = _budget(row)
    advancer = _door(row, stack, budget).create(
        chosen,
        limits,
        order,
        operation_id=operation_id,
        # Another engine records that it begins.
        is_alone=lambda: is_first and _is_recorded(row, kept),
    )
    if fleet_watching.keep(advancer, row.project_id, stack):
        # Its members may need any number of requests.
        budget.lift()
        return True
    advancer.release()
    return False


def _is_recorded(row: _Row, kept: _Kept) -> bool:
    """Say whether no other process has changed a schedule since this one."""
    context = heat_context.get_admin_context()
    return schedule_rows.read(context, row.number) == kept.text()


def _check(row: _Row, kept: _Kept) -> _Change:
    """Find out whether a schedule can run."""
    chosen, _, order = _choose(row, _stack(row))
    if chosen.unmet:
        raise errors.NotFound(
            f'There is no target for {order.action} in '
            + bounds.listed(chosen.unmet)
        )
    return lambda now: (
        now
        if now.record.outcome == schedule_deciding.MISSED
        else now.with_record(reason='')
    )


def _heat(stack: Any) -> heat_api.Heat:
    """Return the way to Heat's API, as the owner of a stack."""
    plugin = stack.clients.client_plugin('heat')
    return heat_api.Heat(
        rest.Cloud(
            stack.context.keystone_session,
            plugin._get_client_option('heat', 'endpoint_type'),
            plugin._get_region_name(),
        )
    )


def _settle(row: _Row, kept: _Kept) -> _Change:
    """Find out how the operation of a schedule has ended."""
    operation_id = record_names.id_of_tick(row.id, kept.record.running or 0)
    phase, reason = operations.Phase.FAILED, ''
    try:
        phase = _door(row, _stack(row)).outline(operation_id).control.phase
    except errors.LaterRelease:
        raise
    except errors.Unreadable as exc:
        reason = bounds.shortened(str(exc), bounds.PART)
    except errors.NotFound as exc:
        context = heat_context.get_admin_context()
        reason = bounds.shortened(str(exc), bounds.PART)
        if not scans.is_registered(context, row.project_id, operation_id):
            # A user has deleted it, which takes a cancellation.
            phase = operations.Phase.CANCELLED
            reason = 'Its operation was deleted before its end was recorded'
        elif kept.record.acted < kept.record.create_until + _DAY:
            raise errors.Unavailable(str(exc)) from exc
    if not phase.ended:
        return lambda now: now
    return lambda now: dataclasses.replace(
        now,
        record=schedule_deciding.ended(
            now.schedule, now.record, phase, reason
        ),
    )


def _cancel(row: _Row, kept: _Kept) -> _Change:
    """Cancel the operation of a schedule, so that the next tick starts."""
    operation_id = record_names.id_of_tick(row.id, kept.record.running or 0)
    # It may have ended, or is cancelled already.
    with contextlib.suppress(errors.Refused):
        door = _door(row, _stack(row))
        door.request(operation_id, 'cancel').release()
    return lambda now: now.with_record(reason='')
