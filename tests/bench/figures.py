# SPDX-License-Identifier: Apache-2.0
"""What is made of the measurements: figures, ratios, goals."""

from collections.abc import Callable
import dataclasses

from tests.bench import rounds
from tests.bench import scenarios

#: What a group may hold of heat-engine: its own, and those that fetch.
THREADS_OF_GROUP = 1 + 8

#: The phases that make up the life of a deployment.
LIFE = ('create', 'waiting', 'signals', 'update', 'update_signals', 'delete')


@dataclasses.dataclass(frozen=True)
class Figure:
    """Something that is measured in each round."""

    title: str
    value: Callable[[rounds.Round], float]


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


def _rate(what: str, *phases: str) -> Callable[[rounds.Round], float]:
    """Per second, in the first of some phases that a round has."""

    def value(one: rounds.Round) -> float:
        counts = next(
            one.counts[each] for each in phases if each in one.counts
        )
        return sum(getattr(counts, what).values()) / counts.seconds

    return value


def _cores(service: str) -> Callable[[rounds.Round], float]:
    """Of a service while all wait, above what it uses when none does."""

    def value(one: rounds.Round) -> float:
        idle, waiting = one.counts['idle'], one.counts['waiting']
        return (
            waiting.cpu[service] / waiting.seconds
            - idle.cpu[service] / idle.seconds
        )

    return value


def _life(what: str) -> Callable[[rounds.Round], float]:
    """Over the whole life, per deployment."""

    def value(one: rounds.Round) -> float:
        total = sum(
            sum(getattr(one.counts[phase], what).values()) for phase in LIFE
        )
        return total / one.n

    return value


def _latency(part, attribute='signals'):
    """When a part of the deployments is complete; 1.0 is the slowest."""

    def value(one: rounds.Round) -> float:
        found = getattr(one, attribute).latencies
        return found[max(0, round(part * len(found)) - 1)]

    return value


def _peak(service: str) -> Callable[[rounds.Round], float]:
    return lambda one: one.peak_bytes[service] / 1e6


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
SETUP = Figure('set-up, s', lambda one: one.create)
COMPLETE = Figure(
    'first PUT to stack COMPLETE, s', lambda one: one.signals.seconds
)
LAST = Figure('last PUT to COMPLETE, s', lambda one: one.signals.last)
UPDATE = Figure('update set-up, s', lambda one: one.update)
UPDATE_WORST = Figure(
    'update, PUT to COMPLETE, worst, s', _latency(1, 'update_signals')
)
DELETE = Figure('delete, s', lambda one: one.delete)
LIFE_SWIFT = Figure('Swift requests per deployment', _life('swift'))
LIFE_RPC = Figure('RPC messages per deployment', _life('rpc'))
LIFE_DB = Figure('database statements per deployment', _life('db'))
THREADS = Figure(
    'threads of heat-engine while all wait, above idle',
    lambda one: one.counts['waiting'].threads - one.counts['idle'].threads,
)
HEAT_PEAK = Figure('heat-engine, peak MB', _peak('heat'))
SWIFT_PEAK = Figure('Swift, peak MB', _peak('swift'))

WAITING = (SWIFT, QUIET, RPC, DB, HEAT_CPU, SWIFT_CPU)
TIMES = (SETUP, MEDIAN, P95, WORST, COMPLETE, UPDATE, UPDATE_WORST, DELETE)
COSTS = (LIFE_SWIFT, LIFE_RPC, LIFE_DB, HEAT_PEAK, SWIFT_PEAK)
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


def is_reached(goal, ours, heats):
    """Say whether a goal is reached; None where that is not known."""
    if ours is None:
        return None
    if goal.most is not None and ours > goal.most:
        return False
    if goal.part is None:
        return True
    found = ratio(ours, heats)
    return None if found is None else found <= goal.part


def ratio(ours: float | None, heats: float | None) -> float | None:
    """Return what ours is of Heat's; None where that says nothing."""
    if ours is None or heats is None or heats <= 0:
        return None
    return max(ours, 0) / heats


def of(figure, found, scenario, side):
    """Return a figure of a round; None if that was not measured."""
    for one in found:
        if (one.scenario, one.side) == (scenario, side):
            try:
                return figure.value(one)
            except (AttributeError, KeyError, IndexError):
                # The round did not get there, or nothing was left to signal.
                return None
    return None
