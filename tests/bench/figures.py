# SPDX-License-Identifier: Apache-2.0
"""What is made of the measurements: figures, ratios, goals, noise."""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import statistics

from tests.bench import rounds
from tests.bench import scenarios

#: What a group may hold of heat-engine: its own, and those that fetch.
THREADS_OF_GROUP = 1 + 8

#: The phases that make up the life of a deployment.
LIFE = ('create', 'waiting', 'signals', 'update', 'update_signals', 'delete')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Figure:
    """Something that is measured in each round."""

    title: str
    value: Callable[[rounds.Round], float]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Goal:
    """What a figure of ours may be, at most.

    :ivar n: of deployments in a stack; None for the N that is asked for.
    :ivar kind: of scenario; see `scenarios.Scenario`.
    :ivar heats_kind: the kind that Heat has for that, if another one.
    :ivar most: in the figure's own unit; None if that does not matter.
    :ivar part: of Heat's; None if that does not matter.
    """

    figure: Figure
    n: int | None = None
    kind: str = 'stack of'
    heats_kind: str | None = None
    most: float | None = None
    part: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Value:
    """A figure over the rounds of one side and scenario.

    :ivar middle: the median.
    :ivar noise: half of what lies between the extremes, as a part of the
        median; None where there was only one round.
    """

    middle: float
    noise: float | None


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


def _latency(
    part: float, attribute: str = 'signals'
) -> Callable[[rounds.Round], float]:
    """When a part of the deployments is complete; 1.0 is the slowest."""

    def value(one: rounds.Round) -> float:
        found = getattr(one, attribute).latencies
        return found[max(0, round(part * len(found)) - 1)]

    return value


def _peak(service: str) -> Callable[[rounds.Round], float]:
    return lambda one: one.peak_bytes[service] / 1e6


# In the first half minute, in which heat-plugins polls fast.
SWIFT = Figure(title='Swift requests/s', value=_rate('swift', 'waiting'))
# Heat's own classes poll alike all the time.
QUIET = Figure(
    title='Swift requests/s after 30 s',
    value=_rate('swift', 'quiet', 'waiting'),
)
RPC = Figure(title='RPC messages/s', value=_rate('rpc', 'waiting'))
DB = Figure(title='database statements/s', value=_rate('db', 'waiting'))
HEAT_CPU = Figure(title='heat-engine, cores above idle', value=_cores('heat'))
SWIFT_CPU = Figure(title='Swift, cores above idle', value=_cores('swift'))
MEDIAN = Figure(title='PUT to COMPLETE, median, s', value=_latency(0.5))
P95 = Figure(title='PUT to COMPLETE, 95th of 100, s', value=_latency(0.95))
WORST = Figure(title='PUT to COMPLETE, worst, s', value=_latency(1))
SETUP = Figure(title='set-up, s', value=lambda one: one.create)
COMPLETE = Figure(
    title='first PUT to stack COMPLETE, s',
    value=lambda one: one.signals.seconds,
)
LAST = Figure(
    title='last PUT to COMPLETE, s', value=lambda one: one.signals.last
)
UPDATE = Figure(title='update set-up, s', value=lambda one: one.update)
UPDATE_WORST = Figure(
    title='update, PUT to COMPLETE, worst, s',
    value=_latency(1, 'update_signals'),
)
DELETE = Figure(title='delete, s', value=lambda one: one.delete)
LIFE_SWIFT = Figure(
    title='Swift requests per deployment', value=_life('swift')
)
LIFE_RPC = Figure(title='RPC messages per deployment', value=_life('rpc'))
LIFE_DB = Figure(title='database statements per deployment', value=_life('db'))
THREADS = Figure(
    title='threads of heat-engine while all wait, above idle',
    value=lambda one: (
        one.counts['waiting'].threads - one.counts['idle'].threads
    ),
)
HEAT_PEAK = Figure(title='heat-engine, peak MB', value=_peak('heat'))
SWIFT_PEAK = Figure(title='Swift, peak MB', value=_peak('swift'))

RATES = (SWIFT, QUIET, RPC, DB)
WAITING = (*RATES, HEAT_CPU, SWIFT_CPU)
TIMES = (
    SETUP,
    MEDIAN,
    P95,
    WORST,
    COMPLETE,
    UPDATE,
    UPDATE_WORST,
    DELETE,
)
COSTS = (LIFE_SWIFT, LIFE_RPC, LIFE_DB, HEAT_PEAK, SWIFT_PEAK)
GOALS = (
    Goal(figure=MEDIAN, n=10, most=0.3, part=1),
    Goal(figure=WORST, n=10, most=0.6, part=1),
    Goal(figure=MEDIAN, part=1 / 2),
    Goal(figure=WORST, part=1 / 2),
    Goal(figure=SETUP, part=1 / 2),
    Goal(figure=QUIET, most=1, part=1 / 50),
    Goal(figure=RPC, part=1 / 50),
    Goal(figure=DB, part=1 / 50),
    Goal(figure=HEAT_CPU, part=1 / 10),
    Goal(figure=LIFE_SWIFT, part=1 / 5),
    *(
        Goal(
            figure=figure,
            n=n,
            kind=scenarios.SINGLE,
            heats_kind=scenarios.NESTED,
            most=most,
        )
        for n, seconds in ((200, 4), (1000, 20))
        for figure, most in (
            (SETUP, seconds),
            (LAST, seconds),
            (DELETE, seconds),
            (THREADS, THREADS_OF_GROUP),
        )
    ),
)


def is_reached(
    goal: Goal, ours: Value | None, heats: Value | None
) -> bool | None:
    """Say whether a goal is reached; None where that is not known."""
    if ours is None:
        return None
    if goal.most is not None and ours.middle > goal.most:
        return False
    if goal.part is None:
        return True
    found = ratio(ours, heats)
    return None if found is None else found <= goal.part


def over(figure: Figure, found: Iterable[rounds.Round]) -> Value | None:
    """Return a figure over rounds; None if none of them got there."""
    values = [
        value for one in found if (value := _of(figure, one)) is not None
    ]
    if not values:
        return None
    middle = statistics.median(values)
    noise = None
    if len(values) > 1 and middle:
        noise = (max(values) - min(values)) / 2 / abs(middle)
    return Value(middle=middle, noise=noise)


def ratio(ours: Value | None, heats: Value | None) -> float | None:
    """Return what ours is of Heat's; None where that says nothing."""
    if ours is None or heats is None or heats.middle <= 0:
        return None
    return max(ours.middle, 0) / heats.middle


def chosen(
    found: Sequence[rounds.Round], scenario: str, side: str
) -> list[rounds.Round]:
    return [
        one for one in found if (one.scenario, one.side) == (scenario, side)
    ]


def _of(figure: Figure, one: rounds.Round) -> float | None:
    try:
        return figure.value(one)
    except (AttributeError, KeyError, IndexError):
        # The round did not get there, or nothing was left to signal.
        return None
