# SPDX-License-Identifier: Apache-2.0
"""The week of a schedule as a chart: its runs, and when it is due."""

from collections import abc
import datetime
import itertools
from typing import TYPE_CHECKING

from heat_plugins import heat_values
from heat_plugins.runs.schedules import schedules
from heat_plugins.timeline import chart

if TYPE_CHECKING:
    from heat_plugins.clients import runs as run_values

# Days before and after today, and the most times that are drawn.
_AROUND, _DRAWN = 3, 500

# The states of a time without a run.
NEXT, _NOT_STARTED = 'next, within', 'not started within'

_WHY = 'missed, skipped or paused'


def week(
    stack: str,
    name: str,
    schedule: schedules.Schedule,
    ran: abc.Iterable['run_values.Run'],
    now: float,
    since: float = 0,
) -> chart.Chart:
    """Return the chart of the week around today.

    Each local day is a row. A time that has a run is the bar of that; any
    other one is the window in which it may start, or might have.

    :param ran: the runs of the schedule in that week.
    :param since: when the schedule was created.
    """
    begin, end = span(schedule, now)
    ticks = list(itertools.islice(schedule.ticks(begin - 1, end), _DRAWN + 1))
    due = {
        schedules.run_id(schedule.key, tick.time): tick
        for tick in ticks[:_DRAWN]
    }
    bars = []
    for run in ran:
        begun = heat_values.moment(run.created_at)
        # A run that a user has asked for has no time.
        tick = due.pop(run.id, None)
        bars.append(
            chart.Bar(
                label=_clock(schedule, tick.time if tick else int(begun)),
                state=chart.State(run.state)
                if run.ended
                else chart.State.RUNNING,
                start=begun,
                end=heat_values.moment(run.ended_at) if run.ended_at else None,
                working_since=begun,
                reason=run.reason,
            )
        )
    window = schedule.cut_off or schedule.lateness
    for tick in due.values():
        if tick.time >= since:
            is_over = now > tick.start + schedule.lateness
            bars.append(
                chart.Bar(
                    label=_clock(schedule, tick.time),
                    state=chart.State.SKIPPED
                    if is_over
                    else chart.State.WAITING,
                    start=tick.start,
                    end=tick.start + window,
                    status=_NOT_STARTED if is_over else NEXT,
                    reason=_WHY if is_over else '',
                )
            )
    spans = {day: schedule.span(day, day) for day in _days(schedule, now)}
    rows = [
        chart.ChartRow(
            kind=chart.RowKind.DAY,
            path=f'{day:%a %Y-%m-%d}',
            name=f'{day:%a %Y-%m-%d}',
            what='excluded' if schedule.excludes(day) else '',
            bars=tuple(bar for bar in bars if begin <= bar.start <= end),
        )
        for day, (begin, end) in spans.items()
    ]
    left_out = f'Only the first {_DRAWN} times of the week are drawn'
    return chart.Chart(
        stack=f'{stack} {name}',
        status=f'{schedule.cron or schedule.at}',
        now=now,
        rows=rows,
        notes=[left_out] if len(ticks) > _DRAWN else [],
        zone=schedule.zone,
    )


def span(schedule: schedules.Schedule, now: float) -> tuple[int, int]:
    """Return the beginning and the end of the week around today."""
    days = _days(schedule, now)
    return schedule.span(days[0], days[-1])


def _days(schedule: schedules.Schedule, now: float) -> list[datetime.date]:
    """Return the days of the week around today."""
    today = datetime.datetime.fromtimestamp(now, schedule.zone).date()
    return [
        today + datetime.timedelta(days=number)
        for number in range(-_AROUND, _AROUND + 1)
    ]


def _clock(schedule: schedules.Schedule, time: int) -> str:
    """Return the local time of day of an instant."""
    return f'{datetime.datetime.fromtimestamp(time, schedule.zone):%H:%M}'
