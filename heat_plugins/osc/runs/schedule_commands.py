# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment schedule …``."""

import argparse
from collections import abc
import datetime
import itertools
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import timeline
from heat_plugins.runs import schedule_reading
from heat_plugins.runs import schedule_signals
from heat_plugins.runs import schedules
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.records import record_names
from heat_plugins.timeline import chart

_COLUMNS = ('local', 'utc', 'latest_start', 'note')

# What a list has of a schedule; JSON and YAML have all.
_LISTED = (
    'stack',
    'schedule',
    'when',
    'next_at',
    'last_at',
    'last_outcome',
    'missed',
    'paused',
    'reason',
)

# What there is to say about a time of the past, and of one that has no
# operation yet.
_BACKFILLED = ('local', 'utc', 'operation', 'state')
_NO_OPERATION = 'not started'

# Seconds between two polls of a command that waits for a backfill.
_POLL = 5.0

_NOTES = {
    schedules.ClockChange.NONE: '',
    schedules.ClockChange.SKIPPED: 'the clock skips {:%H:%M} on this day',
    schedules.ClockChange.DOUBLED: 'the clock shows {:%H:%M} twice; the first',
}


# Days before and after today, and the most times that are drawn.
_AROUND, _DRAWN = 3, 500

# How a time without an operation stands.
NEXT, _NOT_STARTED = 'next, within', 'not started within'

_WHY = 'missed, skipped or paused, or before the schedule existed'

_DAY = datetime.timedelta(days=1)


class PreviewSchedule(common.Report):
    """List the next times of a schedule, in local time and UTC.

    It needs no cloud. A time that a change of the clock skips is due at the
    next valid time, one that the clock shows twice is due the first time.
    """

    auth_required = False
    example = '--cron @daily --timezone Europe/Berlin --exclude sun'

    arguments = (
        command_line.either(
            command_line.value(
                '--cron',
                '<pattern>',
                'Minute, hour, day of month, month and day of week, as in '
                'crontab; or @hourly, @daily, @weekly, @monthly, @yearly',
                default='',
            ),
            command_line.value(
                '--at',
                '<time>',
                'The only time (2026-11-20T22:00)',
                default='',
            ),
            required=True,
        ),
        command_line.value(
            '--timezone',
            '<name>',
            'IANA name of the time zone of all times (default: %(default)s)',
            default='UTC',
        ),
        command_line.several(
            '--exclude',
            '<days>',
            'A date (2026-12-24), a range with both its ends '
            '(2026-12-24/2027-01-01) or a weekday (sat) without times '
            '(repeat option for several)',
        ),
        command_line.value(
            '--until',
            '<time>',
            'The last day, or the last time (default: no end)',
            default='',
        ),
        command_line.value(
            '--jitter',
            '<seconds>',
            'Seconds by which a start may be late (default: 0)',
            type=int,
            default=0,
        ),
        command_line.value(
            '--from',
            '<time>',
            'List the times from this one on (default: now)',
            dest='start',
        ),
        command_line.number(
            '--limit',
            '<number>',
            'Maximum number of times to list (default: %(default)s)',
            '-n',
            default=5,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        schedule = schedules.Schedule(
            cron=parsed_args.cron,
            at=parsed_args.at,
            timezone=parsed_args.timezone,
            exclude=tuple(parsed_args.exclude),
            until=parsed_args.until,
            jitter=parsed_args.jitter,
        )
        after = time.time()
        if parsed_args.start:
            after = schedule.instant(parsed_args.start) - 1
        ticks = schedule.next(parsed_args.limit, after)
        if not ticks:
            raise errors.Refused(
                f'The schedule has no time after {summary.time(int(after))}: '
                'check its time, its end and the days that it excludes'
            )
        return _COLUMNS, common.Many(
            [_row(schedule, tick) for tick in ticks], _listed(schedule)
        )


def _listed(schedule: schedules.Schedule) -> tuple[str, ...]:
    return tuple(
        name for name in _COLUMNS if name != 'latest_start' or schedule.jitter
    )


def _row(schedule: schedules.Schedule, tick: schedules.Tick) -> dict[str, Any]:
    local = datetime.datetime.fromtimestamp(tick.time, schedule.zone)
    return {
        'local': local.isoformat(),
        'utc': summary.time(tick.time),
        'latest_start': summary.time(tick.time + schedule.jitter),
        'note': _NOTES[tick.change].format(tick.local),
    }


class _ScheduleCommand(common.Report):
    """A command about schedules of stacks."""

    @property
    def schedules(self) -> schedule_reading.Schedules:
        heat = common.orchestration(self.app.client_manager)
        return schedule_reading.Schedules(heat, pools.Pool())


class ListSchedules(_ScheduleCommand):
    """List the schedules of a stack, or of all stacks of the project.

    Of what cannot be read, the reason is listed, and the exit code is 1.
    """

    example = 'shop'

    arguments = (
        command_line.value(
            'stack',
            '<stack>',
            'Name or ID of the stack (default: all stacks of the project)',
            nargs='?',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.schedules.list(parsed_args.stack)
        if not all(map(schedule_reading.is_read, found)):
            self.exit_code = 1
        return schedule_reading.KEYS, common.Many(found, _LISTED)


class _OfOne(_ScheduleCommand):
    """A command about one schedule."""

    example = 'shop nightly'

    arguments: command_line.Arguments = (
        command_line.STACK,
        command_line.value(
            'schedule', '<schedule>', 'The resource of the schedule (path)'
        ),
    )


class ShowSchedule(_OfOne, timeline.Drawing):
    """Show a schedule: its next times, and how the last one ended."""

    example = 'shop nightly --week'

    arguments = (
        *_OfOne.arguments,
        command_line.flag(
            '--week',
            'Draw three days before and after today: what has run, and when '
            'the schedule is due',
        ),
        timeline.output('that week'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        stack, path = parsed_args.stack, parsed_args.schedule
        if not (parsed_args.week or parsed_args.output):
            return _one(self.schedules.show(stack, path))
        drawn = week(
            stack,
            path,
            self.schedules.times(stack, path),
            common.fleets(self.app.client_manager).history(fleets.Filter()),
            time.time(),
        )
        return self.drawn(parsed_args, drawn)


class _Signal(_OfOne):
    """A command that asks a schedule for something."""

    do = ''

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        wanted = schedule_signals.ScheduleSignal(
            do=self.do, note=getattr(parsed_args, 'note', '')
        )
        return _one(self.signal(parsed_args, wanted))

    def signal(
        self,
        parsed_args: argparse.Namespace,
        wanted: schedule_signals.ScheduleSignal,
    ) -> dict[str, Any]:
        """Ask the schedule; return it as it is then."""
        return self.schedules.signal(
            parsed_args.stack, parsed_args.schedule, wanted
        )


class PauseSchedule(_Signal):
    """Let a schedule start nothing; what runs continues."""

    example = 'shop nightly --note "until the release"'
    do = schedule_signals.PAUSE

    arguments = (
        *_Signal.arguments,
        command_line.value(
            '--note', '<text>', 'Why, for colleagues', default=''
        ),
    )


class ResumeSchedule(_Signal):
    """Let a schedule that is paused start what is due from now on."""

    do = schedule_signals.RESUME


class RunSchedule(_Signal):
    """Run the action of a schedule now, even if the schedule is paused."""

    do = schedule_signals.RUN


class BackfillSchedule(_Signal):
    """Run the action of a schedule for times of the past.

    Times that were missed, or lie before the schedule existed, become
    operations, one after another. A time that has an operation is left out.
    """

    example = 'shop nightly --from 2026-11-20 --to 2026-11-22 --wait'

    arguments = (
        *_Signal.arguments,
        command_line.value(
            '--from',
            '<time>',
            'The first time, in local time of the schedule; or a day',
            dest='begin',
        ),
        command_line.value(
            '--to',
            '<time>',
            'The last time, in local time of the schedule; or a day',
            dest='end',
        ),
        command_line.either(
            command_line.flag('--dry-run', 'Only list what would start'),
            command_line.flag(
                '--wait', 'Wait until all operations have ended'
            ),
            command_line.flag(
                '--stop',
                'Start nothing else of a backfill; an operation in progress '
                'continues',
            ),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        begin, end = parsed_args.begin, parsed_args.end
        if bool(begin and end) is parsed_args.stop:
            raise errors.Refused('Give either --from and --to, or --stop')
        if parsed_args.stop:
            do = schedule_signals.STOP_BACKFILL
            wanted = schedule_signals.ScheduleSignal(do=do)
            return _one(self.signal(parsed_args, wanted))
        stack, path = parsed_args.stack, parsed_args.schedule
        schedule = self.schedules.times(stack, path)
        ticks = schedule_signals.ticks(schedule, begin, end, time.time())
        rows = self._rows(schedule, ticks)
        if not parsed_args.dry_run and _left(rows):
            wanted = schedule_signals.ScheduleSignal(
                do=schedule_signals.BACKFILL, begin=begin, end=end
            )
            self.signal(parsed_args, wanted)
        if parsed_args.wait:
            self._wait(stack, path, _left(rows))
            rows = self._rows(schedule, ticks)
            self.exit_code = _code(rows)
        return _BACKFILLED, [tuple(row.values()) for row in rows]

    def _rows(
        self, schedule: schedules.Schedule, ticks: abc.Iterable[schedules.Tick]
    ) -> abc.Sequence[dict[str, Any]]:
        """Return times of the past with the states of their operations."""
        known = {
            head.id: overview.of_head(head)['state']
            for head in common.fleets(self.app.client_manager).history(
                fleets.Filter()
            )
        }
        return [
            {
                **{
                    name: _row(schedule, tick)[name]
                    for name in ('local', 'utc')
                },
                'operation': (
                    found := record_names.id_of_tick(schedule.key, tick.time)
                ),
                'state': known.get(found, _NO_OPERATION),
            }
            for tick in ticks
        ]

    def _wait(self, stack: str, path: str, total: int) -> None:
        """Wait for the end of a backfill.

        :raises errors.Failed: the schedule is paused.
        """

        def look() -> dict[str, Any]:
            shown = self.schedules.show(stack, path)
            left = shown['backfill'] or 0
            self.progress.show('backfill', max(0, total - left), total)
            return shown

        def is_over(shown: dict[str, Any]) -> bool:
            is_held = shown['paused'] and shown['last_outcome'] != 'running'
            return bool(is_held or not shown['backfill'])

        shown = retrying.follow(look, is_over, interval=_POLL)
        if shown['backfill']:
            raise errors.Failed(
                f'The schedule is paused ({shown["paused"]}): the backfill '
                'continues once it is resumed, or ends with --stop'
            )


def _left(rows: abc.Iterable[dict[str, Any]]) -> int:
    """Return how many times have no operation."""
    return sum(row['state'] == _NO_OPERATION for row in rows)


def _code(rows: abc.Iterable[dict[str, Any]]) -> int:
    """Return the exit code for the states of operations."""
    states = [row['state'] for row in rows]
    for phase in operations.Phase:
        if phase.ended and phase.value in states and common.code_of(phase):
            return common.code_of(phase)
    return common.FAILED if _NO_OPERATION in states else 0


def _one(found: dict[str, Any]) -> common.Shown:
    return tuple(found), common.One(found.values())


def week(
    stack: str,
    name: str,
    schedule: schedules.Schedule,
    heads: abc.Iterable[operations.Head],
    now: float,
) -> chart.Chart:
    """Return the chart of the week around today.

    Each local day is a row. A time that has an operation is the bar of that;
    any other one is the window in which it may start, or might have.

    :param heads: of the project's operations.
    """
    today = datetime.datetime.fromtimestamp(now, schedule.zone).date()
    days = [today + _DAY * number for number in range(-_AROUND, _AROUND + 1)]
    begin, end = schedule.span(days[0], days[-1])
    suffix = record_names.id_of_tick(schedule.key, 0).partition('-')[2]
    ran = {
        record_names.started_at(head.id): head
        for head in heads
        if head.id.endswith(suffix) and begin <= head.created_at <= end
    }
    ticks = list(itertools.islice(schedule.ticks(begin - 1, end), _DRAWN + 1))
    bars = [_ran(schedule, time, head) for time, head in ran.items()]
    bars += [
        _window(schedule, tick, now)
        for tick in ticks[:_DRAWN]
        if tick.time not in ran
    ]
    left_out = f'Only the first {_DRAWN} times of the week are drawn'
    return chart.Chart(
        stack=f'{stack} {name}',
        status=f'{schedule.cron or schedule.at}',
        now=now,
        rows=[_day(schedule, day, bars) for day in days],
        notes=[left_out] if len(ticks) > _DRAWN else [],
        zone=schedule.zone,
    )


def _day(
    schedule: schedules.Schedule,
    day: datetime.date,
    bars: abc.Iterable[chart.Bar],
) -> chart.ChartRow:
    begin, end = schedule.span(day, day)
    return chart.ChartRow(
        kind=chart.RowKind.DAY,
        path=f'{day:%a %Y-%m-%d}',
        name=f'{day:%a %Y-%m-%d}',
        what='excluded' if schedule.excludes(day) else '',
        bars=tuple(bar for bar in bars if begin <= bar.start <= end),
    )


def _ran(
    schedule: schedules.Schedule, time: int, head: operations.Head
) -> chart.Bar:
    phase = head.state or operations.Phase.FAILED
    return chart.Bar(
        label=_clock(schedule, time),
        state=chart.State(phase.value) if phase.ended else chart.State.RUNNING,
        start=head.created_at,
        end=head.ended_at if phase.ended else None,
        working_since=head.created_at,
        reason=head.reason,
    )


def _window(
    schedule: schedules.Schedule, tick: schedules.Tick, now: float
) -> chart.Bar:
    """Return the bar of a time without an operation."""
    is_over = now > tick.start + schedule.lateness
    window = schedule.cut_off or schedule.lateness
    return chart.Bar(
        label=_clock(schedule, tick.time),
        state=chart.State.CANCELLED if is_over else chart.State.WAITING,
        start=tick.start,
        end=tick.start + window,
        said=_NOT_STARTED if is_over else NEXT,
        reason=_WHY if is_over else '',
    )


def _clock(schedule: schedules.Schedule, time: int) -> str:
    return f'{datetime.datetime.fromtimestamp(time, schedule.zone):%H:%M}'
