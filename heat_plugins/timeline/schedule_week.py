# SPDX-License-Identifier: Apache-2.0
"""The picture of a schedule's week: what has run, and what comes next.

Each local day is a row. A time that has an operation is the bar of that; any
other one is the window in which it may start, or might have.
"""

from collections import abc
import datetime
import itertools
from typing import Final

from heat_plugins.runs import schedules
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.records import record_names
from heat_plugins.timeline import chart

# Days before and after today, and the most times that are drawn.
_DAYS, _MOST = 3, 500

#: How a time without an operation stands.
NEXT: Final = 'next, within'
NOT_STARTED: Final = 'not started within'

_WHY = 'missed, skipped or paused, or before the schedule existed'

_DAY = datetime.timedelta(days=1)


def draw(
    stack: str,
    name: str,
    schedule: schedules.Schedule,
    heads: abc.Iterable[operations.Head],
    now: float,
) -> chart.Chart:
    """Return the chart of the week around today.

    :param heads: of the project's operations.
    """
    today = datetime.datetime.fromtimestamp(now, schedule.zone).date()
    days = [today + _DAY * number for number in range(-_DAYS, _DAYS + 1)]
    begin, end = schedule.span(days[0], days[-1])
    suffix = record_names.id_of_tick(schedule.key, 0).partition('-')[2]
    ran = {
        record_names.started_at(head.id): head
        for head in heads
        if head.id.endswith(suffix) and begin <= head.created_at <= end
    }
    ticks = list(itertools.islice(schedule.ticks(begin - 1, end), _MOST + 1))
    bars = [_ran(schedule, time, head) for time, head in ran.items()]
    bars += [
        _window(schedule, tick, now)
        for tick in ticks[:_MOST]
        if tick.time not in ran
    ]
    left_out = f'Only the first {_MOST} times of the week are drawn'
    return chart.Chart(
        stack=f'{stack} {name}',
        status=f'{schedule.cron or schedule.at}',
        now=now,
        rows=[_row(schedule, day, bars) for day in days],
        notes=[left_out] if len(ticks) > _MOST else [],
        zone=schedule.zone,
    )


def _row(
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
        said=NOT_STARTED if is_over else NEXT,
        reason=_WHY if is_over else '',
    )


def _clock(schedule: schedules.Schedule, time: int) -> str:
    return f'{datetime.datetime.fromtimestamp(time, schedule.zone):%H:%M}'
