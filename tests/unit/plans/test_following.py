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

    def test_what_is_complete_is_counted(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_COMPLETE')
        self.heat.happen('shop', 'b', 'CREATE_IN_PROGRESS')
        found = self.follower().look()
        self.assertEqual(1, found.done)
        self.assertEqual('b CREATE_IN_PROGRESS', found.under_way)
        self.assertFalse(found.ended)

    def test_one_who_comes_later_counts_the_present_action_alone(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='no space')
        self.heat.happen(
            'shop', 'shop', 'UPDATE_IN_PROGRESS', physical_id='shop-id'
        )
        self.heat.happen('shop', 'b', 'UPDATE_COMPLETE')
        found = self.follower().look()
        self.assertEqual((1, ()), (found.done, found.failures))

    def test_no_event_is_counted_twice_or_lost_between_pages(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        for number in range(450):
            self.heat.happen('shop', f'r{number}', 'UPDATE_COMPLETE')
        follower = self.follower()
        self.assertEqual(450, follower.look().done)
        self.heat.happen('shop', 'late', 'UPDATE_COMPLETE')
        self.assertEqual(451, follower.look().done)

    def test_failures_are_told_with_their_reasons(self):
        self.heat.become('shop', 'CREATE_FAILED', reason='a: no space')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='no space')
        found = self.follower().look()
        self.assertEqual(('a CREATE_FAILED: no space',), found.failures)
        self.assertTrue(found.ended)
        self.assertFalse(found.success)

    def test_an_update_that_has_not_begun_has_not_ended(self):
        self.heat.become('shop', 'CREATE_COMPLETE')
        before = self.heat.stacks['shop'].changed_at
        self.assertFalse(self.follower(before=before).look().ended)
        self.assertTrue(self.follower().look().success)

    def test_a_create_that_has_not_begun_has_not_ended(self):
        self.heat.become('shop', 'INIT_COMPLETE')
        self.assertFalse(self.follower().look().ended)

    def test_a_stack_that_is_deleted_meanwhile_ends_it_badly(self):
        found = self.follower().look()
        self.assertTrue(found.ended)
        self.assertFalse(found.success)
        self.assertIn('deleted', found.reason)

    def test_secrets_are_masked_in_what_resources_and_the_stack_say(self):
        self.heat.become('shop', 'CREATE_FAILED', reason='a: geheim')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='not geheim')
        found = self.follower().look()
        self.assertEqual('a: ******', found.reason)
        self.assertEqual(('a CREATE_FAILED: not ******',), found.failures)
