# SPDX-License-Identifier: Apache-2.0
"""What another interval between two looks would cost and gain.

Short waits are measured on the mini cloud. How the interval grows shows only
in long ones, and those are computed: with the very watcher, on a clock that
takes no time.
"""

from collections.abc import Callable
import dataclasses
import statistics

from heat_plugins import config
from heat_plugins.signals import paces
from heat_plugins.signals import watcher
from tests.bench import counting
from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks

#: Intervals that are tried on the mini cloud, in seconds.
INTERVALS = (0.25, 0.5, 1.0, 2.0, 5.0)

#: Limits of the interval that are tried on the computed clock.
LIMITS = (1.0, 2.0, 5.0, 10.0, 30.0)

#: For how long servers take to answer there, in seconds.
DURATIONS = (10, 30, 60, 120, 300, 600, 1800, 3600)

_COUNT = 20

# Seconds between two signals. It drifts against all intervals, so that they
# come at any point of one.
_APART = 1.13

# Of an interval, for signals at any point of it.
_PHASES = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """What one interval did; latencies in seconds."""

    interval: float
    latencies: list[float]
    listings_per_second: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Computed:
    """What one limit of the interval would do to a wait.

    :ivar seconds: how long the server takes.
    :ivar listings: how many there are until then.
    :ivar latency: from the signal until Heat knows, in the mean.
    """

    limit: float
    seconds: float
    listings: float
    latency: float


def measure(lab: labs.Lab, say: Callable[[str], None]) -> list[Measured]:
    """Let servers answer one after another, with each of the intervals."""
    found = []
    meter = counting.Meter(lab.cloud)
    for interval in INTERVALS:
        lab.start(
            labs.SIDES['ours'],
            f'[{config.GROUP}]\n'
            f'signal_poll_interval_fast = {interval}\n'
            f'signal_poll_interval = {interval}\n'
            f'signal_poll_interval_max = {interval}\n',
        )
        with lab.state() as state:
            rounds.warm_up(lab, state)
            templates = scenarios.flat(_COUNT).templates(lab.servers)
            group = stacks.Stacks(lab, state, templates, _COUNT)
            group.create()
            begin = meter.mark()
            latencies = group.signal('CREATE', apart=_APART).latencies
            counts = meter.between(begin, meter.mark())
            group.delete()
        # Each signal is fetched once; the other GETs are listings.
        listings = counts.swift['GET'] - _COUNT
        found.append(
            Measured(
                interval=interval,
                latencies=latencies,
                listings_per_second=listings / counts.seconds,
            )
        )
        say(f'{interval} s: {statistics.median(latencies):.2f} s')
    return found


def compute() -> list[Computed]:
    """Let one server answer after each of the durations."""
    return [
        compute_one(limit, seconds)
        for limit in LIMITS
        for seconds in DURATIONS
    ]


def compute_one(limit: float, seconds: float) -> Computed:
    limits = paces.PollLimits(interval_max=limit)
    interval = limits.after(seconds)
    waits = [
        _wait(limits, seconds + phase * interval / _PHASES)
        for phase in range(_PHASES)
    ]
    return Computed(
        limit=limit,
        seconds=seconds,
        listings=statistics.mean(listings for listings, _ in waits),
        latency=statistics.mean(latency for _, latency in waits),
    )


def _wait(limits: paces.PollLimits, arrival: float) -> tuple[int, float]:
    """Return how many listings there are, and the latency."""
    store = _Store(arrival)
    looker = watcher.Watcher(
        store,
        watcher.WatchLimits(polls=limits, direct=float('inf')),
        lambda: store.now,
        sleep=store.sleep,
    )
    ticket = watcher.Ticket(
        deployment_id='d', config_id='c', object_name='signal'
    )
    looker.join(ticket)
    looker.wait([ticket], float('inf'))
    return store.listings, store.now - arrival


class _Store:
    """Where one signal arrives at its time."""

    def __init__(self, arrival: float) -> None:
        self.now = 0.0
        self.listings = 0
        self._arrival = arrival

    def sleep(self, event: object, seconds: float) -> None:
        self.now += seconds

    def names(self, wanted: object) -> list[str]:
        self.listings += 1
        return ['signal'] if self.now >= self._arrival else []

    def rows(self, ids: object) -> dict[str, watcher.WatchedRow]:
        return {'d': watcher.WatchedRow(config_id='c', in_progress=True)}
