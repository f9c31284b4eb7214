# SPDX-License-Identifier: Apache-2.0
"""Tables of the figures, for the terminal and for the documentation."""

from collections.abc import Sequence
import contextlib
import csv
import pathlib

from tests.bench import figures
from tests.bench import lab
from tests.bench import rounds
from tests.bench import scenarios

Table = list[list[str]]

# What memory may become, as a part of what it was.
_GROWTH = 1.05

_LIFE = (figures.SETUP, figures.LAST, figures.DELETE)

# With the sending of all results.
_WHOLE = (figures.SETUP, figures.COMPLETE, figures.DELETE)

_SIDES = tuple(lab.SIDES.values())

_REACHED = {True: 'reached', False: 'missed', None: ''}


def goals(found, cycled=()):
    """Return our figures and Heat's, with the goals."""
    table = [['', 'N', *(one.title for one in _SIDES), 'ratio', 'goal', '']]
    for goal in figures.GOALS:
        ours, heats = (
            figures.of(goal.figure, found, f'{goal.kind} {goal.n}', side.name)
            for side in _SIDES
        )
        table.append(
            [
                goal.figure.title,
                # The number alone stands for a flat stack.
                f'{goal.kind} {goal.n}'.removeprefix(f'{scenarios.FLAT} '),
                _shown(ours),
                _shown(heats),
                _ratio(figures.ratio(ours, heats)),
                _goal(goal),
                _REACHED[figures.is_reached(goal, ours, heats)],
            ]
        )
    return [*table, *_ours(found), _kept(cycled)]


def _ours(found: Sequence[rounds.Round]) -> Table:
    """Return the goals that Heat has nothing to compare with."""

    def value(scenario: str, figure: figures.Figure) -> float | None:
        return figures.of(figure, found, scenario, 'ours')

    few, many = (f'{scenarios.SINGLE} {count}' for count in (200, 1000))
    cfn = f'{scenarios.CFN} 200'
    least = f'{scenarios.FLAT} 10'
    slower = other = more = None
    # They may not have been measured.
    with contextlib.suppress(TypeError):
        slower = max(value(many, one) / value(few, one) for one in _LIFE)
    with contextlib.suppress(TypeError):
        other = sum(value(cfn, one) for one in _WHOLE) / sum(
            value(few, one) for one in _WHOLE
        )
    with contextlib.suppress(TypeError):
        more = value(many, figures.HEAT_PEAK) - value(least, figures.HEAT_PEAK)
    return [
        [title, n, _shown(one), '', '', f'{most:g}', _reached(one, most)]
        for title, n, one, most in (
            (
                'time for 1000 over time for 200, the worst of the three',
                many,
                slower,
                6,
            ),
            (
                'set-up, completion and deletion, over those with TempURLs',
                cfn,
                other,
                1.5,
            ),
            (
                'heat-engine, peak MB above that of a stack of 10',
                many,
                more,
                100,
            ),
        )
    ]


def _reached(value: float | None, most: float) -> str:
    return '' if value is None else _REACHED[value <= most]


def _kept(cycled: Sequence[rounds.Cycled]) -> list[str]:
    """Return what heat-engine keeps of stacks that are gone."""
    growth = {one.side: one.growth for one in cycled}
    ours, heats = (growth.get(side.name) for side in _SIDES)
    return [
        f'most memory up to stack {rounds.CYCLES}, over that after '
        f'{rounds.FULL}',
        f'{rounds.COUNT}',
        _shown(ours),
        _shown(heats),
        _ratio(figures.ratio(ours, heats)),
        f'{_GROWTH:g}',
        _reached(ours, _GROWTH),
    ]


def ours(found: Sequence[rounds.Round]) -> Table:
    """Return our figures of the goals, where Heat has none."""
    return [row[:3] for row in goals(found) if row[2]]


def _goal(goal: figures.Goal) -> str:
    """Return what ours may be: a number, a part of Heat's, or both."""
    most = '' if goal.most is None else f'{goal.most:g}'
    return ', '.join(filter(None, [most, _ratio(goal.part)]))


def by_scenario(found, shown):
    """Return a row for each scenario and side, with some figures."""
    table = [['', 'classes', *(figure.title for figure in shown)]]
    for scenario in dict.fromkeys(one.scenario for one in found):
        for side in _SIDES:
            cells = [
                _shown(figures.of(figure, found, scenario, side.name))
                for figure in shown
            ]
            if any(cells):
                table.append([scenario, side.title, *cells])
    return table


def measured(rows: Sequence[tuple[str, int, float, float | None]]) -> Table:
    """Return what was measured: what, of how many, how much, and the goal."""
    return [
        ['', 'N', 'measured', 'goal'],
        *(
            [
                what,
                f'{n:,}',
                f'{value:.1f}',
                '' if most is None else f'{most:g}',
            ]
            for what, n, value, most in rows
        ),
    ]


def troubles(found: Sequence[rounds.Round]) -> list[str]:
    """Return what went wrong, and completions without a signal."""
    said = []
    for one in found:
        who = f'{one.scenario}, {lab.SIDES[one.side].title}'
        if one.trouble:
            said.append(f'{who}: {one.trouble}')
        again = one.update_signals
        if again is not None and again.early:
            said.append(
                f'{who}: {again.early} of {one.n} updates were complete '
                'before their servers had answered'
            )
    return list(dict.fromkeys(said))


def write(table: Table, file: pathlib.Path) -> None:
    with file.open('w', encoding='utf-8', newline='') as stream:
        csv.writer(stream, lineterminator='\n').writerows(table)


def text(table: Table) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *others in table:
        cells = zip(others, widths[1:], strict=True)
        shown = [first.ljust(widths[0]), *(c.rjust(n) for c, n in cells)]
        lines.append('  '.join(shown))
    return '\n'.join(lines)


def _shown(value: float | None) -> str:
    return '' if value is None else _number(value)


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f'{value:.0f}'
    return f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'


def _ratio(value: float | None) -> str:
    if value is None:
        return ''
    if 0 < value < 0.4:
        return f'1/{1 / value:.0f}'
    return f'{value:.2f}'
