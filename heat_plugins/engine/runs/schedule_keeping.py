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
import math
import threading
import time
from typing import Any, TypeAlias

from heat.common import context as heat_context
from heat.rpc import client as rpc_client
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins.clients import heat as heat_api
from heat_plugins.clients import heat_swift
from heat_plugins.clients import rest
from heat_plugins.engine import process
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.objectstore import wire
from heat_plugins.runs import schedule_deciding
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders

LOG = foreign.logger(__name__)

# Operations that one process creates or reads at a time, and of one project.
_MOST, _MOST_OF_PROJECT = 32, 8

# Requests, seconds and bytes for that.
_BUDGET = (2000, 300.0, 64 * 1024 * 1024)

# Seconds between two polls while an operation has not ended, until an
# operation that could not be created is retried first, and until what has no
# thread is.
_POLL, _RETRY, _SOON = 5.0, 15.0, 1.0

# Seconds between two polls for schedules that other engines have stored, at
# most and at least.
_LONGEST, _LEAST = 60.0, 0.1

# Seconds between two checks whether a schedule can run.
_DAY = 86400

_Row = schedule_rows.ScheduleRow
_Kept = schedule_deciding.KeptSchedule
_Do: TypeAlias = abc.Callable[[_Row, _Kept], None]

_PLACES = process.Places(_MOST, _MOST_OF_PROJECT)
_woken = threading.Event()


def wake() -> None:
    """Let this process read the schedules now: one has changed."""
    _woken.set()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Known:
    """What was decided of a schedule, and when to decide again."""

    text: str
    until: float


class Keeper:
    """Keeps the schedules of all projects, for one process.

    :param clock: seconds since the epoch.
    """

    def __init__(self, clock: abc.Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._known: dict[int, _Known] = {}

    def keep(self) -> None:
        """Keep schedules until an error of the database."""
        while True:
            pause = self.look()
            _woken.wait(pause)
            _woken.clear()

    def look(self) -> float:
        """Decide what is due; return the seconds until the next look."""
        context, now = heat_context.get_admin_context(), self._clock()
        rows = schedule_rows.kept(context)
        self._known = {
            row.number: known
            for row in rows
            if (known := self._known.get(row.number))
            and known.text == row.text
        }
        due = [
            (row, kept)
            for row in rows
            if self._is_due(row, now) and (kept := self._read(row))
        ]
        running = {
            (row.project_id, record_names.id_of_tick(row.id, running))
            for row, kept in due
            if (running := kept.record.running) and kept.record.created
        }
        ended = schedule_rows.ended(context, running)
        for row, kept in due:
            self._decide(row, kept, ended, int(now))
        longest: float = cfg.CONF.heat_plugins.rescue_interval
        next_times = [known.until for known in self._known.values()]
        first = min(next_times, default=math.inf) - self._clock()
        return max(_LEAST, min(first, longest, _LONGEST))

    def _is_due(self, row: _Row, now: float) -> bool:
        known = self._known.get(row.number)
        return known is None or known.until <= now

    def _read(self, row: _Row) -> _Kept | None:
        try:
            return _Kept.read(row.text)
        except ValueError as exc:
            LOG.warning(
                'Schedule %(name)s of stack %(stack)s does not run, as its '
                'record is unreadable; update its resource: %(error)s',
                {'name': row.name, 'stack': row.stack_id, 'error': exc},
            )
            self._known[row.number] = _Known(text=row.text, until=math.inf)
            return None

    def _decide(
        self,
        row: _Row,
        kept: _Kept,
        ended: abc.Set[tuple[str, str]],
        now: int,
    ) -> None:
        decision = schedule_deciding.due(kept.schedule, kept.record, now)
        after = dataclasses.replace(kept, record=decision.record)
        is_idle = after.record.running is None
        is_to_check = (
            is_idle
            and now - after.record.checked >= _DAY
            and not schedule_deciding.why_paused(after)
            and _PLACES.take(row.id, row.project_id)
        )
        if is_to_check:
            after = after.with_record(checked=now)
        if after != kept:
            context = heat_context.get_admin_context()
            if not schedule_rows.replace(
                context, row.number, row.text, after.text()
            ):
                # Another engine has decided it, or a user has changed it.
                self._known[row.number] = _Known(text=row.text, until=now)
                if is_to_check:
                    _PLACES.leave(row.id)
                return
            _log(row, decision)
        row = dataclasses.replace(row, text=after.text())
        until = min(
            decision.next_time or math.inf,
            max(after.record.checked + _DAY, now + _LONGEST),
        )
        if not is_idle:
            until = now + self._act(row, after, decision, ended)
        elif is_to_check:
            _run(_check, row, after)
        self._known[row.number] = _Known(text=row.text, until=until)

    def _act(
        self,
        row: _Row,
        kept: _Kept,
        decision: schedule_deciding.Decision,
        ended: abc.Set[tuple[str, str]],
    ) -> float:
        """Do what the operation of a schedule needs now, in a thread.

        :returns: seconds until it may need more.
        """
        do: _Do | None = None
        operation_id = record_names.id_of_tick(
            row.id, kept.record.running or 0
        )
        if not kept.record.created:
            do = self._create
        elif (row.project_id, operation_id) in ended:
            do = _settle
        elif decision.cancel is not None:
            do = _cancel
        if do is None:
            return _POLL
        if not _start(do, row, kept):
            return _SOON
        if kept.record.created:
            return _POLL
        begun = kept.record.create_until - kept.schedule.lateness
        return min(_LONGEST, _RETRY + (self._clock() - begun) / 4)

    def _create(self, row: _Row, kept: _Kept) -> None:
        """Create the operation of the tick that runs."""
        tick = kept.record.running or 0
        operation_id = record_names.id_of_tick(row.id, tick)
        # One may have died when it had created it.
        if self._clock() > kept.record.create_until and not (
            schedule_rows.is_registered(
                heat_context.get_admin_context(), row.project_id, operation_id
            )
        ):
            LOG.warning(
                'Schedule %(name)s of stack %(stack)s has missed %(tick)s: '
                '%(reason)s',
                {
                    'name': row.name,
                    'stack': row.stack_id,
                    'tick': operation_id,
                    'reason': kept.record.reason,
                },
            )
            _change(row, tick, schedule_deciding.given_up)
            return
        try:
            _operate(row, kept, operation_id, self._clock())
        except errors.Exists as exc:
            LOG.info('%s', exc)
        except Exception as exc:
            # Others may quote secrets.
            is_ours = isinstance(exc, errors.Error)
            shown = str(exc) if is_ours else type(exc).__name__
            _change(
                row,
                tick,
                lambda record: dataclasses.replace(
                    record, reason=bounds.shortened(shown, bounds.PART)
                ),
            )
            raise
        _change(
            row,
            tick,
            lambda record: dataclasses.replace(
                record, created=True, reason=''
            ),
        )
        fleet_watching.look_for(operation_id)


#: Starts with each engine.
SCAN = process.Scan(
    name='heat-plugins-schedules',
    wanted='schedules that are due',
    begin=lambda: Keeper().keep,
    spread=1.0,
)


def _log(row: _Row, decision: schedule_deciding.Decision) -> None:
    passed = [
        f'{record_names.id_of_tick(row.id, tick)}: {why.value}'
        for tick, why in decision.passed
        if why is not schedule_deciding.Passed.PAUSED
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


def _start(do: _Do, row: _Row, kept: _Kept) -> bool:
    """Do something in a thread; False if there is no place."""
    if not _PLACES.take(row.id, row.project_id):
        return False
    _run(do, row, kept)
    return True


def _run(do: _Do, row: _Row, kept: _Kept) -> None:
    """Do something in a thread, whose place is taken."""
    _PLACES.run(row.id, f'schedule {row.name}', _do, do, row, kept)


def _do(do: _Do, row: _Row, kept: _Kept) -> None:
    try:
        do(row, kept)
    except Exception as exc:
        LOG.warning(
            'Cannot keep schedule %(name)s of stack %(stack)s now; retrying: '
            '%(error)s',
            {
                'name': row.name,
                'stack': row.stack_id,
                'error': foreign.brief(exc),
            },
        )
    else:
        wake()


def _change(
    row: _Row,
    tick: int | None,
    changed: abc.Callable[
        [schedule_deciding.ScheduleRecord], schedule_deciding.ScheduleRecord
    ],
) -> None:
    """Change the record while a tick runs, and not after."""

    def change(text: str) -> str:
        kept = _Kept.read(text)
        if kept.record.running != tick:
            return text
        return dataclasses.replace(kept, record=changed(kept.record)).text()

    schedule_rows.change(heat_context.get_admin_context(), row.number, change)


def _stack(row: _Row) -> Any:
    stack = fleet_watching.load_stack(row.stack_id, row.project_id)
    if stack is None:
        raise errors.Denied(
            'heat-engine cannot use the credentials that are stored with the '
            'stack: its trust or its user is gone. Update the stack as '
            'another user'
        )
    return stack


def _door(row: _Row, stack: Any) -> fleets.Fleets:
    requests, seconds, size = _BUDGET
    budget = wire.Budget(
        f'schedule {row.name}', requests=requests, seconds=seconds, size=size
    )
    rpc = in_process.Client(rpc_client.EngineClient)
    return fleets.Fleets.with_own_key(
        own_heat.OwnHeat(rpc, stack.context),
        stack.clients.client(heat_swift.CLIENT_NAME).within(budget),
        who=f'schedule {row.name}',
        # Heat's contexts are not for several threads.
        pool=pools.Pool(workers=1),
    )


def _choose(
    row: _Row, stack: Any
) -> tuple[fleet_targets.Chosen, operations.OperationLimits, orders.RunOrder]:
    """Return what a tick of a schedule runs now.

    :raises errors.Error: it can run nothing.
    """
    resource = stack.resource_get(row.name)
    if resource is None or resource.uuid != row.id:
        raise errors.Unavailable('The stack replaces the schedule')
    wanted, order, limits = resource.ordered()
    chooser = fleet_targets.Chooser(_heat(stack), pools.Pool(workers=1))
    return chooser.choose(wanted, order), limits, order


def _operate(row: _Row, kept: _Kept, operation_id: str, now: float) -> None:
    """Create an operation as a command does, and leave it to an engine."""
    stack = _stack(row)
    chosen, limits, order = _choose(row, stack)
    cut_off, tick = kept.schedule.cut_off, kept.record.running or 0
    if cut_off is not None:
        left = kept.schedule.start_of(tick) + cut_off - int(now)
        limits = dataclasses.replace(limits, cut_off=max(1, left))
    advancer = _door(row, stack).create(
        chosen, limits, order, operation_id=operation_id
    )
    advancer.release()


def _check(row: _Row, kept: _Kept) -> None:
    """Record why a schedule cannot run, if it cannot."""
    reason = ''
    try:
        _choose(row, _stack(row))
    except errors.Error as exc:
        if exc.may_pass:
            raise
        reason = bounds.shortened(str(exc), bounds.PART)
        LOG.warning(
            'Schedule %(name)s of stack %(stack)s cannot run: %(reason)s',
            {'name': row.name, 'stack': row.stack_id, 'reason': reason},
        )
    _change(
        row, None, lambda record: dataclasses.replace(record, reason=reason)
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


def _settle(row: _Row, kept: _Kept) -> None:
    """Record how the operation of a schedule has ended."""
    tick = kept.record.running or 0
    stack = _stack(row)
    try:
        operation = _door(row, stack).show(
            record_names.id_of_tick(row.id, tick)
        )
        phase = operation.control.phase
    except errors.NotFound:
        # A user has deleted it, which takes a cancellation.
        phase = operations.Phase.CANCELLED
    if phase.ended:
        _change(
            row,
            tick,
            lambda record: schedule_deciding.ended(
                kept.schedule, record, phase
            ),
        )


def _cancel(row: _Row, kept: _Kept) -> None:
    """Cancel the operation of a schedule, so that the next tick starts."""
    tick, stack = kept.record.running or 0, _stack(row)
    # It may have ended, or is cancelled already.
    with contextlib.suppress(errors.Refused):
        advancer = _door(row, stack).request(
            record_names.id_of_tick(row.id, tick), 'cancel'
        )
        advancer.release()
