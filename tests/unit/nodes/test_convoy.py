# SPDX-License-Identifier: Apache-2.0
"""Many nodes on one way: how many at a time, how often, and how long."""

import dataclasses
import json

import testtools

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.nodes import convoy as convoys
from heat_plugins.nodes import moves
from tests.unit.nodes import fake_ironic

NAMES = ('a', 'b', 'c')


class ConvoyTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.ironic = fake_ironic.Ironic()
        for name in NAMES:
            self.ironic.add(
                f'id-{name}', name=name, provision_state='manageable'
            )
        self.escort = convoys.Escort(self.ironic, clock=lambda: self.now)

    def convoy(self, *names, verb='inspect', **options):
        return convoys.Convoy(
            verb=verb,
            members=tuple(
                convoys.NodeMember(uuid=f'id-{name}', name=name)
                for name in names or NAMES
            ),
            **options,
        )

    def step(self, convoy):
        """Take a step, with the convoy as JSON has it in between."""
        text = json.dumps(dataclasses.asdict(self.escort.step(convoy)))
        return stored.read(convoys.Convoy, json.loads(text))

    def phases(self, convoy):
        return ' '.join(one.phase for one in convoy.members)

    def finish(self, *names, error=None):
        for name in names:
            self.ironic.finish(name, error)

    def test_only_so_many_are_on_their_way_at_a_time(self):
        convoy = self.step(self.convoy(concurrency=2))
        self.assertEqual('moving moving waiting', self.phases(convoy))
        convoy = self.step(convoy)
        self.assertEqual('moving moving waiting', self.phases(convoy))
        self.finish('b')
        convoy = self.step(convoy)
        self.assertEqual('moving done moving', self.phases(convoy))

    def test_what_fails_at_first_may_arrive_later(self):
        convoy = self.step(self.convoy('a'))
        self.finish('a', error='disk on fire')
        convoy = self.step(convoy)
        self.finish('a')
        convoy = self.step(convoy)
        self.assertEqual('done', self.phases(convoy))
        self.assertEqual('', convoy.members[0].reason)

    def test_what_somebody_has_stopped_is_not_tried_again(self):
        convoy = self.step(self.convoy('a'))
        self.finish('a', error='Inspection was aborted by request.')
        convoy = self.step(convoy)
        self.assertEqual('aborted', self.phases(convoy))
        self.assertEqual(1, len(self.ironic.sent))

    def test_a_node_that_takes_too_long_has_failed_and_is_stopped(self):
        convoy = self.step(self.convoy('a', timeout=60))
        self.ironic.row('a')['provision_state'] = 'inspect wait'
        self.now += 59
        convoy = self.step(convoy)
        self.assertEqual('moving', self.phases(convoy))
        self.now += 1
        convoy = self.step(convoy)
        self.assertEqual('timed-out', self.phases(convoy))
        self.assertIn('inspect wait after 60 s', convoy.members[0].reason)
        self.assertEqual(
            'inspect failed', self.ironic.row('a')['provision_state']
        )

    def test_the_limit_is_for_all_attempts_together(self):
        convoy = self.step(self.convoy('a', timeout=60, attempts=9))
        self.now += 60
        self.finish('a', error='disk on fire')
        convoy = self.step(convoy)
        self.assertEqual('timed-out', self.phases(convoy))
        self.assertEqual('disk on fire', convoy.members[0].reason)

    def test_what_is_on_its_way_already_is_waited_for(self):
        self.ironic.row('a')['provision_state'] = 'inspecting'
        convoy = self.step(self.convoy('a'))
        self.assertEqual('moving', self.phases(convoy))
        self.assertEqual([], self.ironic.sent)

    def test_from_elsewhere_there_is_no_way(self):
        self.ironic.row('a')['provision_state'] = 'active'
        convoy = self.step(self.convoy('a', 'b'))
        self.assertEqual('failed moving', self.phases(convoy))
        self.assertEqual(
            'It is active: only a manageable node is inspected',
            convoy.members[0].reason,
        )

    def test_a_node_that_is_gone_has_failed(self):
        convoy = self.step(self.convoy('a', 'x'))
        self.assertEqual('moving failed', self.phases(convoy))

    def test_a_locked_node_is_sent_later(self):
        self.ironic.failing['set_state'] = [errors.NodeLocked('locked')]
        convoy = self.step(self.convoy('a', timeout=60))
        self.assertEqual('waiting', self.phases(convoy))
        convoy = self.step(convoy)
        self.assertEqual('moving', self.phases(convoy))
        self.assertEqual(1, convoy.members[0].attempts)

    def test_a_node_that_stays_locked_comes_to_its_time_limit(self):
        self.ironic.failing['set_state'] = [errors.NodeLocked('locked')] * 2
        convoy = self.step(self.convoy('a', timeout=60))
        self.now += 60
        convoy = self.step(convoy)
        self.assertEqual('timed-out', self.phases(convoy))

    def test_what_ironic_refuses_has_failed(self):
        self.ironic.failing['set_state'] = [errors.Refused('no boot image')]
        convoy = self.step(self.convoy('a', 'b'))
        self.assertEqual('failed moving', self.phases(convoy))
        self.assertEqual('no boot image', convoy.members[0].reason)

    def test_an_ironic_that_is_away_takes_no_step(self):
        self.ironic.failing['states'] = [errors.Unavailable('503')]
        self.assertRaises(errors.Unavailable, self.step, self.convoy())

    def test_looks_become_seldom(self):
        convoy = self.step(self.convoy('a'))
        self.assertEqual(2, self.escort.next_look(convoy))
        self.now += 100
        self.assertEqual(10, self.escort.next_look(convoy))
        self.now += 1000
        self.assertEqual(30, self.escort.next_look(convoy))

    def test_a_node_that_is_there_already_is_not_sent(self):
        convoy = self.step(self.convoy('a', verb='manage'))
        self.assertEqual('done', self.phases(convoy))
        self.assertEqual([], self.ironic.sent)


class MoveTest(testtools.TestCase):
    def test_no_state_means_two_things(self):
        for move in moves.BY_VERB.values():
            self.assertEqual(frozenset(), move.ready & move.moving)
            self.assertEqual(frozenset(), move.there & move.moving)
            self.assertLessEqual(move.stoppable, move.moving)
