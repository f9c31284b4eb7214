# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment schedule …``."""

import argparse
from collections import abc
import datetime
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import timeline
from heat_plugins.runs import run_records
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules
from heat_plugins.timeline import schedule_week

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

# What there is to say about a time of the past, and of one that has no run
# yet.
_BACKFILLED = ('local', 'utc', 'run', 'state')
_NO_RUN = 'not started'

# The exit codes of a backfill by the states of its runs; the least counts.
_CODES = {_NO_RUN: common.FAILED} | {
    phase.value: common.code_of(phase)
    for phase in run_records.Phase
    if phase.ended and common.code_of(phase)
}

# Seconds between two polls of a command that waits for a backfill.
_POLL = 5.0

_NOTES = {
    schedules.ClockChange.NONE: '',
    schedules.ClockChange.SKIPPED: 'the clock skips {:%H:%M} on this day',
    schedules.ClockChange.DOUBLED: 'the clock shows {:%H:%M} twice; the first',
}


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
        listed = [
            each
            for each in _COLUMNS
            if each != 'latest_start' or schedule.jitter
        ]
        rows = [_row(schedule, tick) for tick in ticks]
        return _COLUMNS, common.Many(rows, listed)


def _row(schedule: schedules.Schedule, tick: schedules.Tick) -> dict[str, Any]:
    """Return a time of a schedule for a table."""
    local = datetime.datetime.fromtimestamp(tick.time, schedule.zone)
    return {
        'local': local.isoformat(),
        'utc': summary.time(tick.time),
        'latest_start': summary.time(tick.time + schedule.jitter),
        'note': _NOTES[tick.change].format(tick.local),
    }


class _ScheduleCommand(common.Report):
    """A command about one schedule, or several."""

    example = 'shop nightly'

    arguments: command_line.Arguments = (
        command_line.STACK,
        command_line.value(
            'schedule', '<schedule>', 'The resource of the schedule (path)'
        ),
    )

    @property
    def schedules(self) -> schedule_signals.Schedules:
        heat = common.orchestration(self.app.client_manager)
        return schedule_signals.Schedules(heat, pools.Pool())


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
        rows = self.schedules.list(parsed_args.stack)
        if any(each['reason'] and not each['when'] for each in rows):
            # It cannot be read.
            self.exit_code = 1
        return schedule_signals.KEYS, common.Many(rows, _LISTED)


class ShowSchedule(_ScheduleCommand, timeline.Drawing):
    """Show a schedule: its next times, and how the last one ended."""

    example = 'shop nightly --week'

    arguments = (
        *_ScheduleCommand.arguments,
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
            return common.one(self.schedules.show(stack, path))
        schedule, since = self.schedules.times(stack, path)
        now = time.time()
        begin, end = schedule_week.span(schedule, now)
        ran = common.runs(self.app.client_manager).list(
            schedule=schedule.key, since=begin, until=end
        )
        drawn = schedule_week.week(stack, path, schedule, ran, now, since)
        return self.drawn(parsed_args, drawn)


class _Signal(_ScheduleCommand):
    """A command that asks a schedule for something."""

    do = ''

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        wanted = schedule_signals.ScheduleSignal(
            do=self.do, note=getattr(parsed_args, 'note', '')
        )
        stack, path = parsed_args.stack, parsed_args.schedule
        return common.one(self.schedules.signal(stack, path, wanted))


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


class RunSchedule(_ScheduleCommand):
    """Run the action of a schedule now, even if the schedule is paused.

    Exit codes: 0 the run has started, 1 it has not; the reason is shown.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        stack, path = parsed_args.stack, parsed_args.schedule
        shown = self.schedules.run(stack, path)
        if shown['last_outcome'] in ('starting', 'missed'):
            self.exit_code = common.NOT_STARTED
            why = shown['reason'] or 'no heat-engine has created it'
            self.log.error('Run %s is not started: %s', shown['last_run'], why)
        return common.one(shown)


class BackfillSchedule(_ScheduleCommand):
    """Run the action of a schedule for times of the past.

    Times that were missed, or lie before the schedule existed, become runs,
    one after another. A time that has a run is left out.
    """

    example = 'shop nightly --from 2026-11-20 --to 2026-11-22 --wait'

    arguments = (
        *_ScheduleCommand.arguments,
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
            command_line.flag('--wait', 'Wait until all runs have ended'),
            command_line.flag(
                '--stop',
                'Start nothing else of a backfill; a run in progress '
                'continues',
            ),
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        begin, end = parsed_args.begin, parsed_args.end
        if bool(begin and end) is parsed_args.stop:
            raise errors.Refused('Give either --from and --to, or --stop')
        stack, path = parsed_args.stack, parsed_args.schedule
        if parsed_args.stop:
            do = schedule_signals.STOP_BACKFILL
            wanted = schedule_signals.ScheduleSignal(do=do)
            return common.one(self.schedules.signal(stack, path, wanted))
        schedule, _ = self.schedules.times(stack, path)
        ticks = schedule_signals.ticks(schedule, begin, end, time.time())
        rows = self._rows(schedule, ticks)
        left = sum(row['state'] == _NO_RUN for row in rows)
        if left and not parsed_args.dry_run:
            wanted = schedule_signals.ScheduleSignal(
                do=schedule_signals.BACKFILL, begin=begin, end=end
            )
            self.schedules.signal(stack, path, wanted)
        if parsed_args.wait:
            self._wait(stack, path, left)
            rows = self._rows(schedule, ticks)
            states = {row['state'] for row in rows}
            self.exit_code = min(
                (_CODES[each] for each in states & _CODES.keys()), default=0
            )
        return _BACKFILLED, common.Many(rows, _BACKFILLED)

    def _rows(
        self, schedule: schedules.Schedule, ticks: abc.Sequence[schedules.Tick]
    ) -> abc.Sequence[dict[str, Any]]:
        """Return times of the past with the states of their runs."""
        known = {
            run.id: run.state
            for run in common.runs(self.app.client_manager).list(
                schedule=schedule.key, since=ticks[0].time
            )
        }
        return [
            {
                **_row(schedule, tick),
                'run': run_id,
                'state': known.get(run_id, _NO_RUN),
            }
            for tick in ticks
            if (run_id := schedules.run_id(schedule.key, tick.time))
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
