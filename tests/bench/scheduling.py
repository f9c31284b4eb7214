# SPDX-License-Identifier: Apache-2.0
"""How soon heat-engine starts what schedules have due, and what they cost."""

import datetime
import math
import time

from tests.bench import engine_state
from tests.bench import figures
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
    lab.start()
    with lab.state() as state:
        rounds.warm_up(lab, state)
        tick = int(time.time()) + _CREATION
        together = tick + SINGLE + _GAP
        made = [
            _stack(lab, first, tick, together)
            for first in range(0, COUNT, COUNT // STACKS)
        ]
        ids = [stack.id for stack in made]
        engine_state.until(
            lambda: state.stacks(ids) == {'CREATE_COMPLETE'},
            _CREATION,
            'their stacks',
        )
        seen = _starts(state, SINGLE, tick)
        stacks.end_runs(state, _ACTION)
        single = sorted(
            round(at - tick - number, 1) for number, at in enumerate(seen)
        )
        say(f'from the tick to the start, s: {single}')
        time.sleep(max(0.0, together - time.time()))
        seen = _starts(state, COUNT, together)
        requests = lab.cloud.swift_requests(together)
        # Also what has not started, or ended.
        for stack in made:
            stack.delete()
    # Not all may have started within minutes.
    seconds = seen[-1] - together if len(seen) == COUNT else math.inf
    each = sum(one['time'] < seen[-1] for one in requests) / COUNT
    worst = single[len(single) * 99 // 100 - 1]
    return figures.measured(
        [
            ('due together: all started after, s', COUNT, seconds, 25),
            ('due together: store requests of each', COUNT, each, 2),
            ('from the tick to the start, s: 99 of 100', SINGLE, worst, 2),
        ]
    )


def _stack(lab, first, tick, together):
    """Begin to create a stack of some deployments with schedules.

    :param tick: when the first of those that are due one by one is due.
    :param together: when all others are.
    """
    servers = lab.servers[first : first + COUNT // STACKS]
    template = scenarios.components(servers, _ACTION)
    found = template['resources']
    for number in range(len(servers)):
        target = f'deployment{number}'
        found[target]['properties']['signal_transport'] = 'NO_SIGNAL'
        found[f'together{number}'] = _schedule(together, target)
        if first + number < SINGLE:
            at = tick + first + number
            found[f'single{number}'] = _schedule(at, target)
    return base.Stack(lab.cloud.session(), template, timeout_mins=30)


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


def _starts(state, count, tick):
    """Return when the servers were given something, in that order."""
    seen = {}
    now = time.time()
    while len(seen) < count and now < tick + SINGLE + _LIMIT:
        now = time.time()
        for each in state.triggered(_ACTION):
            seen.setdefault(each, now)
        time.sleep(0.1)
    return sorted(seen.values())
