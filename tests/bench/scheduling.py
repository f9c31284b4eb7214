# SPDX-License-Identifier: Apache-2.0
"""How soon heat-engine starts what schedules have due, and what they cost."""

import datetime
import math
import time

from tests.bench import engine_state
from tests.bench import figures
from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import base

#: Schedules that are due in the same second, in how many stacks, and those
#: that are due one after another.
COUNT, STACKS, SINGLE = 200, 20, 100

_ACTION = 'BACKUP'

# Seconds until the stacks of the schedules are there, and from the last of
# those that are due one a second until the others are; and until all has
# started or ended.
_CREATION, _GAP, _LIMIT = 200, 60, 300


def measure(lab, say):
    """Return a table: the seconds and the requests to the object store."""
    lab.start(labs.SIDES['ours'])
    with lab.state() as state:
        rounds.warm_up(lab, state)
        group = _Group(lab, state)
        single = group.start_one_by_one()
        say(f'from the tick to the start, s: {single}')
        seconds, requests = group.start_together()
        # Also what has not started, or ended.
        for stack in group.stacks:
            stack.delete()
    each = requests / COUNT
    worst = sorted(single)[len(single) * 99 // 100 - 1]
    return figures.measured(
        [
            ('due together: all started after, s', COUNT, seconds, 25),
            ('due together: store requests of each', COUNT, each, 2),
            ('from the tick to the start, s: 99 of 100', SINGLE, worst, 2),
        ]
    )


def _schedule(at, target):
    """Return a schedule that is due at a time."""
    when = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return {
        'type': 'OS::Heat::SoftwareSchedule',
        'properties': {
            'at': f'{when:%Y-%m-%dT%H:%M:%S}',
            'action': _ACTION,
            'targets': [{'get_resource': target}],
        },
    }


class _Group:
    """Stacks of deployments, with schedules of them.

    :ivar tick: when the first of those that are due one by one is due.
    :ivar together: when all others are.
    """

    def __init__(self, lab, state):
        self._lab, self._state = lab, state
        self.tick = int(time.time()) + _CREATION
        self.together = self.tick + SINGLE + _GAP
        self.stacks = [
            self._stack(first) for first in range(0, COUNT, COUNT // STACKS)
        ]
        ids = [stack.id for stack in self.stacks]
        engine_state.until(
            lambda: state.stacks(ids) == {'CREATE_COMPLETE'},
            _CREATION,
            'their stacks',
        )

    def _stack(self, first):
        """Begin to create a stack of some deployments with schedules."""
        servers = self._lab.servers[first : first + COUNT // STACKS]
        template = scenarios.components(servers, _ACTION)
        found = template['resources']
        for number in range(len(servers)):
            target = f'deployment{number}'
            found[target]['properties']['signal_transport'] = 'NO_SIGNAL'
            found[f'together{number}'] = _schedule(self.together, target)
            if first + number < SINGLE:
                at = self.tick + first + number
                found[f'single{number}'] = _schedule(at, target)
        return base.Stack(self._lab.cloud.session(), template, timeout_mins=30)

    def start_one_by_one(self):
        """Return the seconds from each tick to its start."""
        seen = self._starts(SINGLE, self.tick)
        stacks.end_runs(self._state, _ACTION)
        return [
            round(found - self.tick - number, 1)
            for number, found in enumerate(seen)
        ]

    def start_together(self):
        """Return the seconds until all have started, and their requests.

        If they have not within minutes: infinity, and those of the others.
        """
        time.sleep(max(0.0, self.together - time.time()))
        seen = self._starts(COUNT, self.together)
        requests = self._lab.cloud.swift_requests(self.together)
        is_whole = len(seen) == COUNT
        return (
            seen[-1] - self.together if is_whole else math.inf,
            sum(one['time'] < seen[-1] for one in requests),
        )

    def _starts(self, count, tick):
        """Return when the servers were given something, in that order."""
        seen = {}
        now = time.time()
        while len(seen) < count and now < tick + SINGLE + _LIMIT:
            now = time.time()
            for each in self._state.triggered(_ACTION):
                seen.setdefault(each, now)
            time.sleep(0.1)
        return sorted(seen.values())
