# SPDX-License-Identifier: Apache-2.0
"""Figures of the rounds, their goals, and the tables of both."""

from collections.abc import Callable
import contextlib
import dataclasses

from tests.bench import lab
from tests.bench import rounds
from tests.bench import scenarios

#: What a group may hold of heat-engine: its own, and those that fetch.
THREADS_OF_GROUP = 1 + 8

#: The phases that make up the life of a deployment.
LIFE = ('create', 'waiting', 'signals', 'update', 'update_signals', 'delete')

# What memory may become, as a part of what it was.
_GROWTH = 1.05

_REACHED = {True: 'reached', False: 'missed', None: ''}


@dataclasses.dataclass(frozen=True)
class Figure:
    """Something that is measured in each round, and how it is taken of one."""

    title: str
    value: Callable[[dict], float]

    def of(self, found, scenario, side):
        """Return the figure of a round; None if that was not measured."""
        for each in found:
            if (each['scenario'], each['side']) == (scenario, side):
                # The round may have ended before, or had nothing to signal.
                with contextlib.suppress(TypeError, KeyError, IndexError):
                    return self.value(each)
        return None


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a figure of ours may be, at most.

    :ivar n: of deployments in a stack.
    :ivar kind: of scenario; see `scenarios.Scenario`.
    :ivar most: in the figure's own unit; None if that does not matter.
    :ivar part: of Heat's; None if that does not matter.
    """

    figure: Figure
    n: int = 100
    kind: str = scenarios.FLAT
    most: float | None = None
    part: float | None = None

    def is_reached(self, ours, heats):
        """Say whether it is reached; None where that is not known."""
        if ours is None:
            return None
        if self.most is not None and ours > self.most:
            return False
        if self.part is None:
            return True
        found = ratio(ours, heats)
        return None if found is None else found <= self.part


def ratio(ours, heats):
    """Return what ours is of Heat's; None where that says nothing."""
    if ours is None or heats is None or heats <= 0:
        return None
    return max(ours, 0) / heats


def _rate(what, *phases):
    """Per second, in the first of some phases that a round has."""

    def value(one):
        phase = next(each for each in phases if each in one['counts'])
        counts = one['counts'][phase]
        return sum(counts[what].values()) / counts['seconds']

    return value


def _cores(service):
    """Of a service while all wait, above what it uses when none does."""

    def value(one):
        waiting, idle = (
            one['counts'][phase]['cpu'][service]
            / one['counts'][phase]['seconds']
            for phase in ('waiting', 'idle')
        )
        return waiting - idle

    return value


def _life(what):
    """Over the whole life, per deployment."""
    return lambda one: (
        sum(sum(one['counts'][phase][what].values()) for phase in LIFE)
        / one['n']
    )


def _latency(part, phase='signals'):
    """When a part of the deployments is complete; 1.0 is the slowest."""

    def value(one):
        found = one[phase]['latencies']
        return found[max(0, round(part * len(found)) - 1)]

    return value


def _peak(service):
    return lambda one: one['peak_bytes'][service] / 1e6


# In the first half minute, in which heat-plugins polls fast.
SWIFT = Figure('Swift requests/s', _rate('swift', 'waiting'))
# Heat's own classes poll alike all the time.
QUIET = Figure(
    'Swift requests/s after 30 s', _rate('swift', 'quiet', 'waiting')
)
RPC = Figure('RPC messages/s', _rate('rpc', 'waiting'))
DB = Figure('database statements/s', _rate('db', 'waiting'))
HEAT_CPU = Figure('heat-engine, cores above idle', _cores('heat'))
SWIFT_CPU = Figure('Swift, cores above idle', _cores('swift'))
MEDIAN = Figure('PUT to COMPLETE, median, s', _latency(0.5))
P95 = Figure('PUT to COMPLETE, 95th of 100, s', _latency(0.95))
WORST = Figure('PUT to COMPLETE, worst, s', _latency(1))
SETUP = Figure('set-up, s', lambda one: one['create'])
COMPLETE = Figure(
    'first PUT to stack COMPLETE, s', lambda one: one['signals']['seconds']
)
LAST = Figure('last PUT to COMPLETE, s', lambda one: one['signals']['last'])
UPDATE = Figure('update set-up, s', lambda one: one['update'])
UPDATE_WORST = Figure(
    'update, PUT to COMPLETE, worst, s', _latency(1, 'update_signals')
)
DELETE = Figure('delete, s', lambda one: one['delete'])
LIFE_SWIFT = Figure('Swift requests per deployment', _life('swift'))
LIFE_RPC = Figure('RPC messages per deployment', _life('rpc'))
LIFE_DB = Figure('database statements per deployment', _life('db'))
THREADS = Figure(
    'threads of heat-engine while all wait, above idle',
    lambda one: (
        one['counts']['waiting']['threads'] - one['counts']['idle']['threads']
    ),
)
HEAT_PEAK = Figure('heat-engine, peak MB', _peak('heat'))
SWIFT_PEAK = Figure('Swift, peak MB', _peak('swift'))

#: The figures of each table.
TABLES = {
    'waiting': (SWIFT, QUIET, RPC, DB, HEAT_CPU, SWIFT_CPU),
    'times': (
        *(SETUP, MEDIAN, P95, WORST, COMPLETE),
        *(UPDATE, UPDATE_WORST, DELETE),
    ),
    'costs': (LIFE_SWIFT, LIFE_RPC, LIFE_DB, HEAT_PEAK, SWIFT_PEAK),
}
GOALS = (
    Goal(MEDIAN, n=10, most=0.3, part=1),
    Goal(WORST, n=10, most=0.6, part=1),
    Goal(MEDIAN, part=1 / 2),
    Goal(WORST, part=1 / 2),
    Goal(SETUP, part=1 / 2),
    Goal(QUIET, most=1, part=1 / 50),
    Goal(RPC, part=1 / 50),
    Goal(DB, part=1 / 50),
    Goal(HEAT_CPU, part=1 / 10),
    Goal(LIFE_SWIFT, part=1 / 5),
    *(
        Goal(figure, n, scenarios.SINGLE, most)
        for n, seconds in ((200, 4), (1000, 20))
        for figure, most in (
            (SETUP, seconds),
            (LAST, seconds),
            (DELETE, seconds),
            (THREADS, THREADS_OF_GROUP),
        )
    ),
)


def goals(found, cycled=()):
    """Return our figures and Heat's, with the goals."""
    table = [['', 'N', *lab.SIDES.values(), 'ratio', 'goal', '']]
    for goal in GOALS:
        scenario = f'{goal.kind} {goal.n}'
        ours, heats = (
            goal.figure.of(found, scenario, side) for side in lab.SIDES
        )
        # What ours may be: a number, a part of Heat's, or both.
        most = '' if goal.most is None else f'{goal.most:g}'
        table.append(
            [
                goal.figure.title,
                # The number alone stands for a flat stack.
                scenario.removeprefix(f'{scenarios.FLAT} '),
                _shown(ours),
                _shown(heats),
                _part(ratio(ours, heats)),
                ', '.join(filter(None, [most, _part(goal.part)])),
                _REACHED[goal.is_reached(ours, heats)],
            ]
        )
    return [*table, *_ours(found, cycled)]


def _ours(found, cycled):
    """Return the goals that no figure of one round has."""

    def value(scenario, figure):
        return figure.of(found, scenario, 'ours')

    few, many = (f'{scenarios.SINGLE} {count}' for count in (200, 1000))
    # The most memory after it was full, as a part of that.
    growth = {}
    for each in cycled:
        full, *later = each['resident_bytes'][rounds.FULL - 1 :]
        growth[each['side']] = max(later, default=full) / full
    measured = (
        (
            'time for 1000 over time for 200, the worst of the three',
            *(many, 6),
            lambda: max(
                value(many, one) / value(few, one)
                for one in (SETUP, LAST, DELETE)
            ),
            None,
        ),
        (
            'heat-engine, peak MB above that of a stack of 10',
            *(many, 100),
            lambda: (
                value(many, HEAT_PEAK)
                - value(f'{scenarios.FLAT} 10', HEAT_PEAK)
            ),
            None,
        ),
        (
            f'most memory up to stack {rounds.CYCLES}, over that after '
            f'{rounds.FULL}',
            *(f'{rounds.COUNT}', _GROWTH),
            lambda: growth['ours'],
            growth.get('heats'),
        ),
    )
    for title, n, most, one, heats in measured:
        ours = None
        # They may not have been measured.
        with contextlib.suppress(TypeError, KeyError):
            ours = one()
        yield [
            title,
            n,
            _shown(ours),
            _shown(heats),
            _part(ratio(ours, heats)),
            f'{most:g}',
            '' if ours is None else _REACHED[ours <= most],
        ]


def by_scenario(found, shown):
    """Return a row for each scenario and side, with some figures."""
    table = [['', 'classes', *(figure.title for figure in shown)]]
    for scenario in dict.fromkeys(one['scenario'] for one in found):
        for side, title in lab.SIDES.items():
            cells = [
                _shown(figure.of(found, scenario, side)) for figure in shown
            ]
            if any(cells):
                table.append([scenario, title, *cells])
    return table


def measured(rows):
    """Return what was measured: what, of how many, how much, and the goal."""
    table = [['', 'N', 'measured', 'goal']]
    for what, n, value, most in rows:
        goal = '' if most is None else f'{most:g}'
        table.append([what, f'{n:,}', _shown(value), goal])
    return table


def troubles(found):
    """Return what went wrong, and completions without a signal."""
    said = []
    for one in found:
        who = f'{one["scenario"]}, {lab.SIDES[one["side"]]}'
        if one['trouble']:
            said.append(f'{who}: {one["trouble"]}')
        if early := (one['update_signals'] or {}).get('early'):
            said.append(
                f'{who}: {early} of {one["n"]} updates were complete '
                'before their servers had answered'
            )
    return list(dict.fromkeys(said))


def text(table):
    """Return a table for the terminal."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *others in table:
        cells = zip(others, widths[1:], strict=True)
        shown = [first.ljust(widths[0]), *(c.rjust(n) for c, n in cells)]
        lines.append('  '.join(shown))
    return '\n'.join(lines)


def _shown(value):
    if value is None:
        return ''
    if abs(value) >= 100:
        return f'{value:.0f}'
    return f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'


def _part(value):
    if value is None:
        return ''
    return f'1/{1 / value:.0f}' if 0 < value < 0.4 else f'{value:.2f}'
