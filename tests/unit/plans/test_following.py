# SPDX-License-Identifier: Apache-2.0
"""Deployments, followed to their end."""

import testtools

from heat_plugins.plans.deploy import stack_following
from tests.unit.plans import fake_heat


class FollowingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.heat = fake_heat.Heat()
        self.now = 0.0
        self.told = []
        self.slept = []

    def follower(self, **more):
        return stack_following.Follower(
            self.heat,
            'shop-id',
            mask=lambda said: said.replace('geheim', '******'),
            clock=lambda: self.now,
            sleep=self.sleep,
            **more,
        )

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds
        self.soon()

    def soon(self):
        """What happens while somebody waits; tests say more."""

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

    def test_it_is_followed_to_its_end_through_an_outage(self):
        self.heat.become('shop', 'CREATE_IN_PROGRESS')

        def soon():
            self.heat.unavailable = 1 if len(self.slept) == 1 else 0
            if len(self.slept) == 3:
                self.heat.become('shop', 'CREATE_COMPLETE')

        self.soon = soon
        found = self.follower().follow(self.told.append)
        self.assertTrue(found.success)
        self.assertEqual(
            ['CREATE_IN_PROGRESS', 'CREATE_IN_PROGRESS', 'CREATE_COMPLETE'],
            [one.status for one in self.told],
        )

    def test_the_longer_it_takes_the_less_often_it_is_looked_at(self):
        self.heat.become('shop', 'UPDATE_IN_PROGRESS')

        def soon():
            if len(self.slept) == 30:
                self.heat.become('shop', 'UPDATE_COMPLETE')

        self.soon = soon
        self.follower().follow(self.told.append)
        self.assertEqual(1, self.slept[0])
        self.assertEqual(5, self.slept[-1])

    def test_secrets_are_masked_in_what_resources_and_the_stack_say(self):
        self.heat.become('shop', 'CREATE_FAILED', reason='a: geheim')
        self.heat.happen('shop', 'a', 'CREATE_FAILED', reason='not geheim')
        found = self.follower().look()
        self.assertEqual('a: ******', found.reason)
        self.assertEqual(('a CREATE_FAILED: not ******',), found.failures)
