# SPDX-License-Identifier: Apache-2.0
"""Nested stacks, a row each: their own bars and, over those, what was run."""

from collections import abc
import dataclasses
import itertools

from heat_plugins.timeline import chart

_OVER_DEPLOYMENTS = (chart.Kind.RUN, chart.Kind.EXECUTION)

# The worse the earlier.
_WORST = (
    chart.State.FAILED,
    chart.State.TIMED_OUT,
    chart.State.CANCELLED,
    chart.State.COMPLETE,
)


def fold(
    own: chart.Row, inside: abc.Sequence[chart.Row], now: float
) -> list[chart.Row]:
    """Return rows in place of a nested stack's.

    :param own: the row of the resource that the nested stack is.
    :param inside: the rows of what is in it.
    :param now: where bars end that go on.
    """
    hidden = len({row.path for row in inside})
    rows = [dataclasses.replace(own, folded=hidden)] if own.bars else []
    named = sorted(
        (row for row in inside if row.kind in _OVER_DEPLOYMENTS),
        key=lambda row: (row.kind.value, row.what),
    )
    for _, same in itertools.groupby(
        named, key=lambda row: (row.kind.value, row.what)
    ):
        group = list(same)
        bars = [bar for row in group for bar in row.bars]
        rows.append(
            dataclasses.replace(
                own,
                kind=group[0].kind,
                what=group[0].what,
                bars=tuple(_merged(bars, now)),
                folded=len(group),
            )
        )
    return rows


def _merged(
    bars: abc.Iterable[chart.Bar], now: float
) -> abc.Iterator[chart.Bar]:
    """Make one of all bars that overlap."""
    together: list[chart.Bar] = []
    end = 0.0
    for bar in sorted(bars, key=lambda bar: bar.start):
        if together and bar.start >= end:
            yield _one(together)
            together = []
        end = max(end, bar.until(now)) if together else bar.until(now)
        together.append(bar)
    if together:
        yield _one(together)


def _one(bars: list[chart.Bar]) -> chart.Bar:
    if len(bars) == 1:
        return bars[0]
    states = [bar.state for bar in bars]
    counts = ', '.join(
        f'{states.count(state)} {state.value}'
        for state in chart.State
        if state in states
    )
    ends = [bar.end for bar in bars if bar.end is not None]
    goes_on = len(ends) < len(bars)
    begun = [bar.working_since for bar in bars if bar.working_since]
    if goes_on:
        at_it = chart.State.RUNNING in states
        state = chart.State.RUNNING if at_it else chart.State.WAITING
    else:
        state = next(one for one in _WORST if one in states)
    return chart.Bar(
        label=f'{len(bars)} x {bars[0].label}',
        state=state,
        start=bars[0].start,
        end=None if goes_on else max(ends),
        working_since=min(begun, default=None),
        reason=counts,
    )
