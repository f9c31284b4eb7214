# SPDX-License-Identifier: Apache-2.0
"""The progress of deployments."""

import pytest

from heat_plugins.plans.deploy import plan_stacks
from tests.unit.plans import fake_heat


@pytest.fixture
def heat():
    return fake_heat.Heat()


def follower(heat, **more):
    return plan_stacks.StackFollower(
        heat,
        'shop-id',
        mask=lambda said: said.replace('geheim', '******'),
        **more,
    )


def test_events_of_the_present_action_are_counted(heat):
    heat.become('shop', 'UPDATE_IN_PROGRESS')
    heat.happen('shop', 'z', 'CREATE_FAILED', reason='no space')
    heat.happen('shop', 'shop', 'UPDATE_IN_PROGRESS', physical_id='shop-id')
    heat.happen('shop', 'a', 'CREATE_IN_PROGRESS')
    heat.happen('shop', 'a', 'CREATE_COMPLETE')
    heat.happen('shop', 'c', 'CREATE_COMPLETE')
    heat.happen('shop', 'c', 'UPDATE_IN_PROGRESS')
    # The beginning of a nested stack.
    nested = {'physical_id': 'x', 'stack_id': 'x'}
    heat.happen('shop', 'x', 'CREATE_IN_PROGRESS', **nested)
    heat.happen('shop', 'b', 'CREATE_IN_PROGRESS')
    follows = follower(heat)
    found = follows.look()
    assert (found.done, found.failures, found.ended) == (1, (), False)
    assert found.under_way == 'b CREATE_IN_PROGRESS'
    # None is counted twice, or lost between pages.
    for number in range(450):
        heat.happen('shop', f'r{number}', 'UPDATE_COMPLETE')
    assert follows.look().done == 451


def test_failures_have_reasons_without_secrets(heat):
    heat.become('shop', 'CREATE_FAILED', reason='a: geheim')
    heat.happen('shop', 'a', 'CREATE_FAILED', reason='not geheim')
    found = follower(heat).look()
    assert found.reason == 'a: ******'
    assert found.failures == ('a CREATE_FAILED: not ******',)
    assert (found.done, found.ended, found.success) == (1, True, False)


def test_the_end(heat):
    gone = follower(heat).look()
    assert (gone.ended, gone.success) == (True, False)
    assert 'deleted' in gone.reason
    # An accepted action may not have begun.
    heat.become('shop', 'INIT_COMPLETE')
    assert not follower(heat).look().ended
    heat.become('shop', 'CREATE_COMPLETE')
    before = heat.stacks['shop'].changed_at
    assert not follower(heat, before=before).look().ended
    assert follower(heat).look().success
