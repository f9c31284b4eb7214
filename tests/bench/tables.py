# SPDX-License-Identifier: Apache-2.0
"""Tables of the figures, for the terminal and for the documentation."""

from collections.abc import Sequence
import contextlib
import csv
import pathlib
import statistics

import prettytable

from tests.bench import completing as completions
from tests.bench import cycling
from tests.bench import figures
from tests.bench import lab
from tests.bench import pacing
from tests.bench import profiling
from tests.bench import rounds
from tests.bench import scenarios

Table = list[list[str]]

# Of less than that no parts can be told.
_FEWEST_SAMPLES = 50

# The smallest part of a phase that is worth a line.
_LEAST = 0.05

# What memory may become, as a part of what it was.
_GROWTH = 1.05

_LIFE = (figures.SETUP, figures.LAST, figures.DELETE)

# With the sending of all results.
_WHOLE = (figures.SETUP, figures.COMPLETE, figures.DELETE)

_SIDES = tuple(lab.SIDES.values())

_REACHED = {True: 'reached', False: 'missed', None: ''}


def goals(
    found: Sequence[rounds.Round],
    n: int,
    cycled: Sequence[cycling.Cycled] = (),
) -> Table:
    """Return our figures and Heat's, with the goals.

    :param n: the deployments in a stack, where a goal names no number.
    """
    table = [['', 'N', *(one.title for one in _SIDES), 'ratio', 'goal', '']]
    for goal in figures.GOALS:
        count = goal.n or n
        kinds = {'ours': goal.kind, 'heats': goal.heats_kind or goal.kind}
        ours, heats = (
            figures.over(
                goal.figure,
                figures.chosen(
                    found, f'{kinds[side.name]} {count}', side.name
                ),
            )
            for side in _SIDES
        )
        table.append(
            [
                goal.figure.title,
                # The number alone stands for a flat stack.
                f'{goal.kind} {count}'.removeprefix('stack of '),
                _shown(ours, noise=True),
                _shown(heats, noise=True),
                _ratio(figures.ratio(ours, heats)),
                _goal(goal),
                _REACHED[figures.is_reached(goal, ours, heats)],
            ]
        )
    table.append(_growth(found, n))
    return [*table, *_ours(found), _kept(cycled)]


def of_two(table: Table, other: Table) -> Table:
    """Return a table of goals with the figures of another run, too."""
    figures_of = {tuple(row[:2]): row[2:4] for row in other}
    head, *rows = table
    return [
        [*head, *(f'{one.title}, second run' for one in _SIDES)],
        *([*row, *figures_of.get(tuple(row[:2]), ('', ''))] for row in rows),
    ]


def _ours(found: Sequence[rounds.Round]) -> Table:
    """Return the goals that Heat has nothing to compare with."""

    def value(scenario: str, figure: figures.Figure) -> float:
        chosen = figures.chosen(found, scenario, 'ours')
        return figures.over(figure, chosen).middle

    few, many = (f'{scenarios.SINGLE} {count}' for count in (200, 1000))
    cfn = f'{scenarios.CFN} 200'
    rows = (
        (
            'time for 1000 over time for 200, the worst of the three',
            many,
            lambda: max(
                value(many, figure) / value(few, figure) for figure in _LIFE
            ),
            6,
        ),
        (
            'set-up, completion and deletion, over those with TempURLs',
            cfn,
            lambda: (
                sum(value(cfn, each) for each in _WHOLE)
                / sum(value(few, each) for each in _WHOLE)
            ),
            1.5,
        ),
        (
            'heat-engine, peak MB above that of a stack of 10',
            many,
            lambda: (
                value(many, figures.HEAT_PEAK)
                - value('stack of 10', figures.HEAT_PEAK)
            ),
            100,
        ),
    )
    table = []
    for title, n, measure, most in rows:
        shown = reached = ''
        # It may not have been measured.
        with contextlib.suppress(AttributeError):
            ours = measure()
            shown, reached = _number(ours), _REACHED[ours <= most]
        table.append([title, n, shown, '', '', f'{most:g}', reached])
    return table


def _kept(cycled: Sequence[cycling.Cycled]) -> list[str]:
    """Return what heat-engine keeps of stacks that are gone."""
    growth = {one.side: one.growth for one in cycled}
    ours, heats = (growth.get(side.name) for side in _SIDES)
    reached = None if ours is None else ours <= _GROWTH
    return [
        f'most memory up to stack {cycling.CYCLES}, over that after '
        f'{cycling.FULL}',
        f'{cycling.COUNT}',
        *('' if one is None else _number(one) for one in (ours, heats)),
        '' if ours is None or heats is None else _ratio(ours / heats),
        f'{_GROWTH:g}',
        _REACHED[reached],
    ]


def ours(found: Sequence[rounds.Round], n: int) -> Table:
    """Return our figures of the goals, where Heat has none."""
    return [row[:3] for row in goals(found, n) if row[2]]


def _goal(goal: figures.Goal) -> str:
    """Return what ours may be: a number, a part of Heat's, or both."""
    most = '' if goal.most is None else f'{goal.most:g}'
    return ', '.join(filter(None, [most, _ratio(goal.part)]))


def _growth(found: Sequence[rounds.Round], n: int) -> list[str]:
    """Return how ours grows above `n`: twice as many in twice the time."""
    cells = []
    reached = ''
    for side in _SIDES:
        once, twice = (
            _set_up_and_complete(
                figures.chosen(found, f'stack of {count}', side.name)
            )
            for count in (n, 2 * n)
        )
        cells.append('' if not once or not twice else f'{twice / once:.1f}')
        if cells[0] and not reached:
            reached = 'reached' if twice <= 2 * once else 'missed'
    title = f'time for {2 * n} over time for {n}, set-up and completion'
    return [title, f'{n}', *cells, '', '2 (ours)', reached]


def _set_up_and_complete(found: Sequence[rounds.Round]) -> float:
    values = [
        figures.over(figure, found)
        for figure in (figures.SETUP, figures.COMPLETE)
    ]
    return 0 if None in values else sum(value.middle for value in values)


def by_scenario(
    found: Sequence[rounds.Round], shown: Sequence[figures.Figure]
) -> Table:
    """Return a row for each scenario and side, with some figures."""
    table = [['', 'classes', *(figure.title for figure in shown)]]
    for scenario in dict.fromkeys(one.scenario for one in found):
        for side in _SIDES:
            of_side = figures.chosen(found, scenario, side.name)
            if of_side:
                values = [figures.over(figure, of_side) for figure in shown]
                cells = [_shown(value) for value in values]
                table.append([scenario, side.title, *cells])
    return table


def paces(found: Sequence[pacing.Measured]) -> Table:
    """Return what each interval did."""
    table = [['interval, s', 'median, s', 'worst, s', 'listings/s']]
    for one in found:
        numbers = (
            one.interval,
            statistics.median(one.latencies),
            max(one.latencies),
            one.listings_per_second,
        )
        table.append([_number(value) for value in numbers])
    return table


def completing(found: Sequence[completions.Measured]) -> Table:
    """Return how many resources completed together."""
    table = [['', 'seconds', 'writes', 'CPU seconds', 'failures']]
    ways = {'heat': 'as Heat does it', 'turns': 'with turns'}
    for one in found:
        failures = ', '.join(sorted(set(one.failures)))
        table.append(
            [
                f'{one.count}, {ways[one.way]}',
                _number(one.seconds),
                f'{one.writes}',
                _number(one.cpu),
                f'{len(one.failures)} {failures}'.rstrip(),
            ]
        )
    return table


def profile(found: Sequence[profiling.Profiled]) -> Table:
    """Return a row for each function that matters in a phase.

    Its cells are milliseconds of CPU for each deployment, so what grows from
    one round to the next takes more than its share of time.

    :param found: rounds of different sizes.
    """
    table = [['phase', 'function']]
    for one in found:
        table[0] += [f'{one.n}:ms', f'{one.n}:own']
    for phase in profiling.PHASES:
        seen = [one for one in found if one.samples(phase) >= _FEWEST_SAMPLES]
        if len(seen) < len(found):
            continue
        rows = {
            'everything': [(1.0, None) for one in seen],
            'heat_plugins': [(None, one.profiles[phase].ours) for one in seen],
            'heat': [(None, one.profiles[phase].heats) for one in seen],
            **{
                name: [_parts(one.profiles[phase], name) for one in seen]
                for name in _notable(seen, phase)
            },
        }
        for name, parts in rows.items():
            cells = [
                '' if part is None else f'{part * one.each(phase):.1f}'
                for one, pair in zip(seen, parts, strict=True)
                for part in pair
            ]
            table.append([phase, name, *cells])
    return table


def _notable(seen: Sequence[profiling.Profiled], phase: str) -> list[str]:
    """Name the functions that matter in one of the rounds at least."""
    names = [
        each.name
        for one in seen
        for each in one.profiles[phase].functions.values()
        if each.is_notable(_LEAST)
    ]
    return list(dict.fromkeys(names))


def _parts(read: profiling.Profile, name: str) -> tuple[float, float]:
    each = read.functions.get(name)
    return (0.0, 0.0) if each is None else (each.share, each.own)


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


def read(file: pathlib.Path) -> Table:
    with file.open(encoding='utf-8', newline='') as stream:
        return list(csv.reader(stream))


def text(table: Table) -> str:
    pretty = prettytable.PrettyTable(_unique(table[0]), align='r')
    pretty.align[pretty.field_names[0]] = 'l'
    pretty.add_rows(table[1:])
    return pretty.get_string()


def _unique(names: Sequence[str]) -> list[str]:
    """Column names that differ, as they have to; some are empty."""
    return [
        name + ' ' * names[:number].count(name)
        for number, name in enumerate(names)
    ]


def _shown(value: figures.Value | None, noise: bool = False) -> str:
    if value is None:
        return ''
    shown = _number(value.middle)
    if noise and value.noise is not None:
        shown += f' ±{value.noise:.0%}'
    return shown


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
