# SPDX-License-Identifier: Apache-2.0
"""The progress of deployments."""

import testtools

from heat_plugins.plans.deploy import plan_stacks
from tests.unit.plans import fake_heat


class FollowingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.heat = fake_heat.Heat()

    def follower(self, **more):
        return plan_stacks.StackFollower(
            self.heat,
            'shop-id',
            mask=lambda said: said.replace('geheim', '******'),
            **more,
        )

    def test_events_are_counted(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_COMPLETE')
        self.heat.happen('shop', 'c', 'CREATE_COMPLETE')
        self.heat.happen('shop', 'c', 'UPDATE_IN_PROGRESS')
        # The beginning of a nested stack.
        self.heat.happen(
            'shop', 'x', 'CREATE_IN_PROGRESS', physical_id='x', stack_id='x'
        )
        self.heat.happen('shop', 'b', 'CREATE_IN_PROGRESS')
        found = self.follower().look()
        assert (found.done, found.under_way, found.ended) == (
            1,
            'b CREATE_IN_PROGRESS',
            False,
        )

    def test_only_the_present_action_is_counted(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='no space')
        self.heat.happen(
            'shop', 'shop', 'UPDATE_IN_PROGRESS', physical_id='shop-id'
        )
        self.heat.happen('shop', 'b', 'UPDATE_COMPLETE')
        found = self.follower().look()
        assert (found.done, found.failures) == (1, ())

    def test_no_event_is_counted_twice_or_lost_between_pages(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        for number in range(450):
            self.heat.happen('shop', f'r{number}', 'UPDATE_COMPLETE')
        follower = self.follower()
        assert follower.look().done == 450
        self.heat.happen('shop', 'late', 'UPDATE_COMPLETE')
        assert follower.look().done == 451

    def test_failures_have_reasons_without_secrets(self):
        self.heat.become('shop', 'CREATE_FAILED', reason='a: geheim')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='not geheim')
        found = self.follower().look()
        assert found.reason == 'a: ******'
        assert found.failures == ('a CREATE_FAILED: not ******',)
        assert (found.ended, found.success) == (True, False)

    def test_the_end(self):
        gone = self.follower().look()
        assert (gone.ended, gone.success) == (True, False)
        assert 'deleted' in gone.reason
        # An accepted action may not have begun.
        self.heat.become('shop', 'INIT_COMPLETE')
        assert not self.follower().look().ended
        self.heat.become('shop', 'CREATE_COMPLETE')
        before = self.heat.stacks['shop'].changed_at
        assert not self.follower(before=before).look().ended
        assert self.follower().look().success
