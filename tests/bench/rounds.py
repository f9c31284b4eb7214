# SPDX-License-Identifier: Apache-2.0
"""One round: the life of some deployments, from create to delete.

All of them wait, some time is counted, and all are signalled at once; then
the same for an update, after a longer wait; then they are deleted.
"""

import time

from tests.bench import counting
from tests.bench import engine_state
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


class Runner:
    """Runs rounds on a lab."""

    def __init__(self, lab, say):
        self._lab = lab
        self._say = say
        self._meter = counting.Meter(lab.cloud)

    def run(self, scenario, side):
        """Run one round, from a start of Heat on; return what was measured.

        What could not be is None. ``create`` and ``update`` are the seconds
        until all servers could read their configs, ``delete`` those until all
        was gone; for ``signals`` and ``update_signals`` see
        `stacks.Stacks.signal`. ``counts`` has the phases idle, create,
        waiting, signals, update, quiet, update_signals and delete; there is no
        quiet wait where nothing waits in an update. ``trouble`` is what kept
        the round from continuing.
        """
        found = {
            'scenario': scenario.name,
            'kind': scenario.kind,
            'n': scenario.count,
            'side': side,
            **dict.fromkeys(('create', 'signals', 'update')),
            **dict.fromkeys(('update_signals', 'delete')),
            'counts': {},
            'peak_bytes': {},
            'trouble': '',
        }
        self._lab.start(side, waiting=scenario.waiting)
        try:
            with self._lab.state() as state:
                warm_up(self._lab, state)
                template = scenario.template(self._lab.servers)
                self._live(
                    found,
                    stacks.Stacks(
                        self._lab, state, [template], scenario.count
                    ),
                )
        except engine_state.TooLongError as error:
            found['trouble'] = str(error)
            self._say(f'gave up: {error}')
        if found['delete'] is None:
            # What is left in this cloud would be in the next round.
            self._lab.reset()
        return found

    def _live(self, found, group):
        """Create, signal, update, signal and delete."""
        mark = None

        def count(phase, do, *arguments):
            """Note what the services do meanwhile, and the seconds."""
            nonlocal mark
            before = mark or self._meter.mark()
            begun = time.monotonic()
            do(*arguments)
            seconds = time.monotonic() - begun
            mark = self._meter.mark()
            found['counts'][phase] = self._meter.between(before, mark)
            return seconds

        def deliver(action, begin):
            """Begin an action, and wait until the servers can read it."""
            since = time.time()
            begin()
            group.until_told(action, since)

        def signal(phase, action):
            found[phase] = group.signal(action)

        count('idle', time.sleep, IDLE)
        mark = None
        found['create'] = count('create', deliver, 'CREATE', group.create)
        self._say(f'all wait after {found["create"]:.1f} s')
        time.sleep(SETTLE)
        mark = None
        count('waiting', time.sleep, WAITING)
        count('signals', signal, 'signals', 'CREATE')
        found['peak_bytes'] = self._meter.peak_bytes()
        self._hold_complete(found['signals'])
        self._settle()
        found['update'] = count('update', deliver, 'UPDATE', group.update)
        if group.waiting('UPDATE'):
            time.sleep(QUIET)
            mark = None
            count('quiet', time.sleep, WAITING)
            mark = None
        count('update_signals', signal, 'update_signals', 'UPDATE')
        self._hold_complete(found['update_signals'])
        self._settle()
        found['delete'] = count('delete', group.delete)
        self._say(f'gone after {found["delete"]:.1f} s')

    def _hold_complete(self, signalled):
        """Go on only with stacks that can be updated or deleted."""
        if signalled['seconds'] is None:
            raise engine_state.TooLongError(
                'all were complete, but not their stack in two minutes more'
            )
        taken = signalled['seconds']
        self._say(f'all complete {taken:.1f} s after the PUTs')

    def _settle(self):
        """Wait until Swift has deleted the results that were read.

        Else that takes the time of the phase that follows.
        """

        def is_idle():
            before = self._lab.cloud.usage('swift')['cpu_seconds']
            time.sleep(1)
            after = self._lab.cloud.usage('swift')['cpu_seconds']
            return after - before < _IDLE_CORES

        engine_state.until(is_idle, _PATIENCE, 'an idle Swift')


def warm_up(lab, state):
    """Let Heat make what it makes once: keys, tokens, caches."""
    template = scenarios.flat(1).template(lab.servers)
    group = stacks.Stacks(lab, state, [template], 1)
    group.create()
    group.signal('CREATE')
    group.delete()


def cycle(lab, side, say):
    """Let stacks of single deployments come and go, one after another.

    Return the memory of heat-engine after each.
    """
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
    return {'side': side, 'resident_bytes': found}
