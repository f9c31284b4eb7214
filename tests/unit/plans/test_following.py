# SPDX-License-Identifier: Apache-2.0
"""The progress of deployments."""

import testtools

from heat_plugins.plans.deploy import stack_following
from tests.unit.plans import fake_heat


class FollowingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.heat = fake_heat.Heat()
        self.now = 0.0

    def follower(self, **more):
        return stack_following.StackFollower(
            self.heat,
            'shop-id',
            mask=lambda said: said.replace('geheim', '******'),
            clock=lambda: self.now,
            **more,
        )

    def test_a_create_is_counted_against_all_resources(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_COMPLETE')
        self.heat.happen('shop', 'b', 'CREATE_IN_PROGRESS')
        found = self.follower().look()
        self.assertEqual((1, 7), (found.done, found.total))
        self.assertEqual('b CREATE_IN_PROGRESS', found.under_way)
        self.assertFalse(found.ended)

    def test_resources_are_counted_seldom(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        follower = self.follower()
        for _ in range(9):
            follower.look()
            self.now += 1
        self.assertEqual(1, self.heat.asked.count('statuses'))

    def test_an_update_counts_what_it_changes(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'UPDATE_COMPLETE')
        found = self.follower().look()
        self.assertEqual((1, None), (found.done, found.total))

    def test_one_who_comes_later_counts_the_present_action_alone(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='no space')
        self.heat.happen(
            'shop', 'shop', 'UPDATE_IN_PROGRESS', physical_id='shop-id'
        )
        self.heat.happen('shop', 'b', 'UPDATE_COMPLETE')
        found = self.follower().look()
        self.assertEqual((1, ()), (found.done, found.failures))

    def complete(self, first, last):
        for number in range(first, last):
            self.heat.happen('shop', f'r{number}', 'CREATE_COMPLETE')

    def test_an_update_of_a_create_that_failed_early_has_no_total(self):
        self.heat.become('shop', 'CREATE_FAILED')
        follower = self.follower(before=self.heat.stacks['shop'].changed_at)
        # Heat may agree to an update before it begins.
        self.assertIsNone(follower.look().total)
        self.heat.become('shop', 'UPDATE_IN_PROGRESS', changed_at='2027-01-01')
        self.complete(0, 9)
        found = follower.look()
        self.assertEqual((9, None), (found.done, found.total))

    def test_one_who_comes_later_counts_no_update_against_a_create(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        follower = self.follower()
        self.assertEqual(7, follower.look().total)
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        self.assertIsNone(follower.look().total)

    def test_a_create_that_grows_is_counted_again_at_once(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        follower = self.follower()
        follower.look()
        self.complete(0, 9)
        self.heat.resources = 12
        found = follower.look()
        self.assertEqual((9, 12), (found.done, found.total))

    def test_never_more_are_done_than_there_are(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')
        self.complete(0, 9)
        found = self.follower().look()
        self.assertEqual((9, 9), (found.done, found.total))

    def test_events_of_former_actions_and_of_the_stack_do_not_count(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')
        self.heat.happen('shop', 'a', 'CREATE_COMPLETE')
        self.heat.happen(
            'shop', 'shop', 'UPDATE_IN_PROGRESS', physical_id='shop-id'
        )
        self.assertEqual(0, self.follower(after_event='event-0').look().done)

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
