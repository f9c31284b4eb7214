# SPDX-License-Identifier: Apache-2.0
"""One round: the life of some deployments, from create to delete.

All of them wait, some time is counted, and all are signalled at once; then
the same for an update, after a longer wait; then they are deleted.
"""

from collections.abc import Callable
import dataclasses
import time

from tests.bench import counting
from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import scenarios
from tests.bench import stacks

#: Seconds that are counted while nothing happens, and while all wait.
IDLE = 10
WAITING = 15

#: Seconds after the last delivery until a wait counts as quiet.
QUIET = 30

#: Seconds for what follows the last hand-over.
SETTLE = 2

# What Swift may use while it counts as idle, and seconds for that to come.
_IDLE_CORES = 0.1
_PATIENCE = 120


#: Deployments of a stack that comes and goes.
COUNT = 50

#: How often stacks come and go, and after how often caches must be full.
CYCLES, FULL = 30, 10


@dataclasses.dataclass(kw_only=True)
class Round:
    """What was measured; what could not be is None.

    :ivar scenario: its name, such as ``stack of 100``.
    :ivar side: whose classes served it.
    :ivar create: seconds until all servers could read their configs.
    :ivar update: the same for the update.
    :ivar delete: seconds until all was gone.
    :ivar counts: by phase: idle, create, waiting, signals, update, quiet,
        update_signals, delete. There is no quiet wait where nothing waits
        in an update.
    :ivar peak_bytes: of memory, by service.
    :ivar trouble: what kept the round from continuing; empty if nothing did.
    """

    scenario: str
    kind: str
    n: int
    side: str
    create: float | None = None
    signals: stacks.Signalled | None = None
    update: float | None = None
    update_signals: stacks.Signalled | None = None
    delete: float | None = None
    counts: dict[str, counting.Counts] = dataclasses.field(
        default_factory=dict
    )
    peak_bytes: dict[str, int] = dataclasses.field(default_factory=dict)
    trouble: str = ''


class Runner:
    """Runs rounds on a lab."""

    def __init__(self, lab: labs.Lab, say: Callable[[str], None]) -> None:
        self._lab = lab
        self._say = say
        self._meter = counting.Meter(lab.cloud)

    def run(self, scenario: scenarios.Scenario, side: labs.Side) -> Round:
        """Run one round, from a start of Heat on."""
        found = Round(
            scenario=scenario.name,
            kind=scenario.kind,
            n=scenario.count,
            side=side.name,
        )
        self._lab.start(side, waiting=scenario.waiting)
        try:
            with self._lab.state() as state:
                warm_up(self._lab, state)
                template = scenario.template(self._lab.servers)
                group = stacks.Stacks(
                    self._lab, state, [template], scenario.count
                )
                mark = self._create(found, group)
                self._settle()
                mark = self._update(found, group, mark)
                self._settle()
                _, found.delete = self._count(
                    found, 'delete', group.delete, mark
                )
                self._say(f'gone after {found.delete:.1f} s')
        except engine_state.TooLongError as error:
            found.trouble = str(error)
            self._say(f'gave up: {error}')
        if found.delete is None:
            # What is left in this cloud would be in the next round.
            self._lab.reset()
        return found

    def _settle(self) -> None:
        """Wait until Swift has deleted the results that were read.

        Else that takes the time of the phase that follows.
        """

        def is_idle() -> bool:
            before = self._lab.cloud.usage('swift')['cpu_seconds']
            time.sleep(1)
            after = self._lab.cloud.usage('swift')['cpu_seconds']
            return after - before < _IDLE_CORES

        engine_state.until(is_idle, _PATIENCE, 'an idle Swift')

    def _create(self, found: Round, group: stacks.Stacks) -> counting.Mark:
        self._count(found, 'idle', lambda: time.sleep(IDLE))
        mark, found.create = self._deliver(
            found, group, 'CREATE', group.create
        )
        self._say(f'all wait after {found.create:.1f} s')
        time.sleep(SETTLE)
        mark, _ = self._count(found, 'waiting', lambda: time.sleep(WAITING))

        def signal() -> None:
            found.signals = group.signal('CREATE')

        mark, _ = self._count(found, 'signals', signal, mark)
        found.peak_bytes = self._meter.peak_bytes()
        self._hold_complete(found.signals)
        self._say(f'all complete {found.signals.seconds:.1f} s after the PUTs')
        return mark

    def _hold_complete(self, signalled: stacks.Signalled) -> None:
        """Go on only with stacks that can be updated or deleted."""
        if signalled.seconds is None:
            raise engine_state.TooLongError(
                'all were complete, but not their stack in two minutes more'
            )

    def _update(self, found, group, mark):
        mark, found.update = self._deliver(
            found, group, 'UPDATE', group.update, mark
        )
        if group.waiting('UPDATE'):
            time.sleep(QUIET)
            self._count(found, 'quiet', lambda: time.sleep(WAITING))
            mark = None

        def signal_again() -> None:
            found.update_signals = group.signal('UPDATE')

        mark, _ = self._count(found, 'update_signals', signal_again, mark)
        self._hold_complete(found.update_signals)
        return mark

    def _deliver(self, found, group, action, begin, mark=None):
        """Begin an action, and wait until the servers can read it."""

        def deliver() -> None:
            since = time.time()
            begin()
            group.until_told(action, since)

        return self._count(found, action.lower(), deliver, mark)

    def _count(self, found, phase, do, begin=None):
        """Do something, and note what the services did meanwhile.

        :param begin: where the phase before has ended.
        :returns: where this one has, and how many seconds it took.
        """
        begin = begin or self._meter.mark()
        begun = time.monotonic()
        do()
        seconds = time.monotonic() - begun
        end = self._meter.mark()
        found.counts[phase] = self._meter.between(begin, end)
        return end, seconds


def warm_up(lab: labs.Lab, state: engine_state.EngineState) -> None:
    """Let Heat make what it makes once: keys, tokens, caches."""
    template = scenarios.flat(1).template(lab.servers)
    group = stacks.Stacks(lab, state, [template], 1)
    group.create()
    group.signal('CREATE')
    group.delete()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cycled:
    """Stacks that were created, answered and deleted, one after another.

    :ivar side: whose classes served them.
    :ivar resident_bytes: of heat-engine after each.
    """

    side: str
    resident_bytes: list[int]

    @property
    def growth(self) -> float:
        """The most memory after it was full, as a part of that."""
        full, *later = self.resident_bytes[FULL - 1 :]
        return max(later, default=full) / full


def cycle(lab, side, say):
    """Let stacks of single deployments come and go."""
    # With as many threads as Heat has by default: they are there before the
    # tenth stack.
    lab.start(side, waiting=0)
    template = scenarios.flat(COUNT).template(lab.servers)
    found = []
    with lab.state() as state:
        warm_up(lab, state)
        for number in range(1, CYCLES + 1):
            group = stacks.Stacks(lab, state, [template], COUNT)
            group.create()
            group.signal('CREATE')
            group.delete()
            found.append(lab.cloud.usage('heat')['rss_bytes'])
            say(f'{found[-1] / 1e6:.0f} MB after {number} stacks')
    return Cycled(side=side.name, resident_bytes=found)
