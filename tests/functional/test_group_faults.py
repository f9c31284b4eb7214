# SPDX-License-Identifier: Apache-2.0
"""Groups of fifty, whatever goes wrong: nothing is lost, nothing is left."""

from collections.abc import Callable, Iterator
import contextlib
import os
import time
from typing import Any

import pytest

from tests.bench import engine_state
from tests.functional import base
from tests.functional import conftest
from tests.functional import kills
from tests.functional import servers
from tests.functional import test_groups
from tests.functional import test_rescue

COUNT = 50

#: Seconds after which an engine dies, of each action. There may be more:
#: MOMENTS='0.1 0.5 1 2 3 4 5'.
MOMENTS = [float(one) for one in os.environ.get('MOMENTS', '0.3 2').split()]

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        conftest.PROFILE != 'small', reason='reads the database of one engine'
    ),
]


class Fleet:
    """A group, and its servers, that answer whatever they are given.

    :ivar ran: the actions of each deployment that its server has run.
    """

    def __init__(self, cloud: Any, stack: base.Stack) -> None:
        self._state = engine_state.EngineState(cloud.path / 'data/heat.sqlite')
        self._stack = stack
        self._answered: set[str] = set()
        self.ran: dict[str, list[str]] = {}

    def answer(self, count: int = COUNT) -> int:
        """Answer for some servers that have something new; say how many."""
        waiting = {
            one.id: one.row_action
            for one in self._state.deployments([self._stack.id])
            if one.row_status == 'IN_PROGRESS'
        }
        urls = self._state.signal_urls([*waiting])
        new = {k: url for k, url in urls.items() if url not in self._answered}
        for deployment_id, url in [*new.items()][:count]:
            assert base.put(url, servers.body(greeting='hello')) == 201
            self._answered.add(url)
            self.ran.setdefault(deployment_id, []).append(
                waiting[deployment_id]
            )
        return min(count, len(new))

    def until(self, *statuses: str, seconds: float = 240) -> str:
        """Answer until the stack has one of some statuses; return that."""
        deadline = time.monotonic() + seconds
        while True:
            (status,) = self._state.stacks([self._stack.id])
            if status in statuses:
                return str(status)
            assert time.monotonic() < deadline, self._stack.reason
            self.answer()
            time.sleep(0.2)

    def times(self, action: str) -> list[int]:
        """Return how often each server has run an action."""
        return [found.count(action) for found in self.ran.values()]


def _group(ids: dict[str, str], **properties: Any) -> base.Template:
    whole = test_groups.template(names=(), members='single', **properties)
    whole['resources']['group']['properties']['servers'] = ids
    return whole


Make = Callable[..., tuple[base.Stack, Fleet, base.Template]]


@contextlib.contextmanager
def _making(cloud: Any) -> Iterator[Make]:
    stacks = [base.Stack(cloud.session(), kills.server_template(COUNT))]
    stacks[0].wait('CREATE_COMPLETE', 180)

    def make(**properties: Any) -> tuple[base.Stack, Fleet, base.Template]:
        whole = _group(stacks[0].outputs, **properties)
        stack = base.Stack(cloud.session(), whole)
        stacks.append(stack)
        return stack, Fleet(cloud, stack), whole

    yield make
    cloud.clear_faults()
    cloud.revive()
    base.purge(stacks)


alone = test_rescue.alone


def _gone(cloud: Any, stack: base.Stack) -> None:
    """Hold that nothing is left of a group."""
    stack.wait('DELETE_COMPLETE', 120)
    names = [
        one['name']
        for one in cloud.session().get('object-store', '?format=json').json()
    ]
    assert f'heat-plugins-{stack.id}' not in names


def test_engines_die_at_several_moments(alone: Any) -> None:
    with _making(alone) as make:
        for moment in MOMENTS:
            _lives_on(alone, moment, *make(actions=test_groups.ALL))
        _becomes_nested(alone, *make())


def _becomes_nested(
    cloud: Any, stack: base.Stack, fleet: Fleet, whole: base.Template
) -> None:
    """Let the engine die while a group gets a nested stack."""
    fleet.until('CREATE_COMPLETE')
    stack.nest(whole)
    base.until(lambda: stack.members('group'), 60)
    cloud.kill('heat')
    cloud.start('heat')
    fleet.until('UPDATE_COMPLETE')
    assert fleet.times('CREATE') == [1] * COUNT
    assert fleet.times('UPDATE') == [0] * COUNT
    assert len(stack.outputs['members']) == COUNT
    stack.delete()
    _gone(cloud, stack)


def _lives_on(
    cloud: Any,
    moment: float,
    stack: base.Stack,
    fleet: Fleet,
    whole: base.Template,
) -> None:
    """Let the engine die some seconds after each action has begun."""

    def dies() -> None:
        time.sleep(moment)
        cloud.kill('heat')
        cloud.start('heat')

    dies()
    fleet.until('CREATE_COMPLETE')
    assert fleet.times('CREATE') == [1] * COUNT
    if moment == MOMENTS[-1]:
        stack.mark('group')
        stack.update(whole)
    else:
        stack.update(whole, who='moon')
    base.until(lambda: fleet.answer(COUNT // 2), 240)
    dies()
    fleet.until('UPDATE_COMPLETE')
    assert fleet.times('UPDATE') == [1] * COUNT
    stack.delete()
    dies()
    if fleet.until('DELETE_COMPLETE', 'DELETE_FAILED') == 'DELETE_FAILED':
        # The second engine acts by the stack's trust, and Heat deletes the
        # trust before the stack's project in Keystone.
        assert 'Error deleting project' in stack.reason
        stack.delete()
        fleet.until('DELETE_COMPLETE')
    assert fleet.times('DELETE') == [1] * COUNT
    _gone(cloud, stack)
