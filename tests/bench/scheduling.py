# SPDX-License-Identifier: Apache-2.0
"""How soon heat-engine starts what schedules have due, and what they cost."""

from collections.abc import Callable
import datetime
import math
import time
from typing import Any

from tests.bench import counting
from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import base

#: Schedules that are due in the same second, one after another, and not due.
COUNT, SINGLE, RESTING = 200, 100, 1000

_ACTION = 'BACKUP'

# Seconds until the stack of the schedules is there, between two that are due
# one after another, and then until the others are; for which resting ones are
# watched; and until all has started or ended.
_CREATION, _STEP, _GAP, _WATCHED, _LIMIT = 300, 1, 120, 60, 300

# Schedules of a resting stack, and servers of one with schedules that are due.
_TOGETHER, _SERVERS = 200, 20

_NEVER = '2090-01-01T00:00:00'


def measure(lab: labs.Lab, say: Callable[[str], None]) -> list[list[str]]:
    """Return a table: the seconds and the requests to the object store."""
    lab.start(labs.SIDES['ours'])
    with lab.state() as state:
        rounds.warm_up(lab, state)
        quiet = _watched(lab)
        resting = [_resting(lab, state) for _ in range(RESTING // _TOGETHER)]
        rested = _watched(lab)
        for stack in resting:
            stack.delete()
        group = _Group(lab, state)
        single = group.start_one_by_one()
        say(f'from the tick to the start, s: {single}')
        seconds, requests = group.start_together()
        # Also what has not started, or ended.
        for stack in group.stacks:
            stack.delete()
    busy = (rested.cpu['heat'] - quiet.cpu['heat']) / rested.seconds
    worst = sorted(single)[len(single) * 99 // 100 - 1]
    rows = [
        ('due together: all started after, s', COUNT, seconds, 25),
        ('due together: store requests of each', COUNT, requests / COUNT, 2),
        ('from the tick to the start, s: 99 of 100', SINGLE, worst, 2),
        ('not due: % of a core', RESTING, 100 * busy, 1),
        ('not due: store requests', RESTING, sum(rested.swift.values()), 0),
    ]
    return [
        ['', 'N', 'measured', 'goal'],
        *([name, f'{n}', f'{f:.1f}', f'{goal}'] for name, n, f, goal in rows),
    ]


def _watched(lab: labs.Lab) -> counting.Counts:
    meter = counting.Meter(lab.cloud)
    begin = meter.mark()
    time.sleep(_WATCHED)
    return meter.between(begin, meter.mark())


def _schedule(at: str, **more: Any) -> scenarios.Template:
    return {
        'type': 'OS::Heat::SoftwareSchedule',
        'properties': {'at': at, 'action': _ACTION, **more},
    }


def _resting(lab: labs.Lab, state: engine_state.EngineState) -> base.Stack:
    """Create schedules that are not due."""
    template = {
        'heat_template_version': '2021-04-16',
        'resources': {
            f'schedule{number}': _schedule(_NEVER)
            for number in range(_TOGETHER)
        },
    }
    stack = base.Stack(lab.cloud.session(), template, timeout_mins=30)
    _until(state, stack, 'CREATE_COMPLETE')
    return stack


def _until(
    state: engine_state.EngineState, stack: base.Stack, status: str
) -> None:
    engine_state.until(
        lambda: state.stacks([stack.id]) == {status}, _LIMIT, status
    )


class _Group:
    """Stacks of deployments, with schedules of them.

    :ivar tick: when the first of those that are due one by one is due.
    :ivar together: when all others are.
    """

    def __init__(self, lab: labs.Lab, state: engine_state.EngineState) -> None:
        self._lab, self._state = lab, state
        self.tick = int(time.time()) + _CREATION
        self.together = self.tick + _STEP * SINGLE + _GAP
        self.stacks = [
            self._stack(first) for first in range(0, COUNT, _SERVERS)
        ]
        for stack in self.stacks:
            _until(state, stack, 'CREATE_COMPLETE')
        if time.time() > self.tick:
            raise engine_state.TooLongError(f'their stacks: {_CREATION} s')

    def _stack(self, first: int) -> base.Stack:
        """Create a stack of some deployments, with their schedules."""
        servers = self._lab.servers[first : first + _SERVERS]
        template = scenarios.components(servers, _ACTION)
        found = template['resources']
        for number in range(len(servers)):
            target = f'deployment{number}'
            found[target]['properties']['signal_transport'] = 'NO_SIGNAL'
            targets = [{'get_resource': target}]
            found[f'together{number}'] = _schedule(
                _shown(self.together), targets=targets
            )
            if first + number < SINGLE:
                at = _shown(self.tick + _STEP * (first + number))
                found[f'single{number}'] = _schedule(at, targets=targets)
        return base.Stack(self._lab.cloud.session(), template, timeout_mins=30)

    def start_one_by_one(self) -> list[float]:
        """Return the seconds from each tick to its start."""
        seen = self._starts(SINGLE, self.tick)
        self._end()
        return [
            round(found - self.tick - _STEP * number, 1)
            for number, found in enumerate(seen)
        ]

    def start_together(self) -> tuple[float, int]:
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

    def _starts(self, count: int, tick: int) -> list[float]:
        """Return when the servers were given something, in that order."""
        seen: dict[str, float] = {}
        now = time.time()
        while len(seen) < count and now < tick + _STEP * SINGLE + _LIMIT:
            now = time.time()
            for each in self._state.triggered(_ACTION):
                seen.setdefault(each, now)
            time.sleep(0.1)
        return sorted(seen.values())

    def _end(self) -> None:
        """Answer all, and wait for the ends of their runs."""
        given = self._state.triggered(_ACTION)
        for url in self._state.signal_urls(given).values():
            base.put(url, stacks.BODY)
        engine_state.until(
            lambda: not self._state.has_runs(), _LIMIT, 'their ends'
        )


def _shown(time: int) -> str:
    when = datetime.datetime.fromtimestamp(time, datetime.UTC)
    return f'{when:%Y-%m-%dT%H:%M:%S}'
