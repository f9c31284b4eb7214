# SPDX-License-Identifier: Apache-2.0
"""Many nodes on one way: how many at a time, how often, and how long."""

import dataclasses
import json

import testtools

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.nodes import moves
from heat_plugins.nodes import moving
from tests.unit.nodes import fake_ironic

NAMES = ('a', 'b', 'c')


class MovingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.ironic = fake_ironic.Ironic()
        for name in NAMES:
            self.ironic.add(
                f'id-{name}', name=name, provision_state='manageable'
            )

    def move(self, *names, verb='inspect', **options):
        return moving.NodeMove(
            verb=verb,
            members=tuple(
                moving.NodeMember(uuid=f'id-{name}', name=name)
                for name in names or NAMES
            ),
            **options,
        )

    def step(self, move):
        """Take a step, with the move as JSON has it in between."""
        text = json.dumps(
            dataclasses.asdict(moving.advance(self.ironic, move, self.now))
        )
        return stored.read(moving.NodeMove, json.loads(text))

    def phases(self, move):
        return ' '.join(one.phase for one in move.members)

    def finish(self, *names, error=None):
        for name in names:
            self.ironic.finish(name, error)

    def test_only_so_many_are_on_their_way_at_a_time(self):
        move = self.step(self.move(concurrency=2))
        self.assertEqual('moving moving waiting', self.phases(move))
        move = self.step(move)
        self.assertEqual('moving moving waiting', self.phases(move))
        self.finish('b')
        move = self.step(move)
        self.assertEqual('moving done moving', self.phases(move))

    def test_what_fails_is_sent_again_unless_somebody_has_stopped_it(self):
        for error, phase in (
            ('disk on fire', 'moving'),
            ('Inspection was aborted by request.', 'aborted'),
        ):
            self.ironic.row('a')['provision_state'] = 'manageable'
            move = self.step(self.move('a'))
            self.finish('a', error=error)
            move = self.step(move)
            self.assertEqual(phase, self.phases(move))
            self.assertEqual(error, move.members[0].reason)
            if phase == 'moving':
                self.finish('a')
                move = self.step(move)
                self.assertEqual('done', self.phases(move))
                self.assertEqual('', move.members[0].reason)

    def test_a_node_that_takes_too_long_has_failed_and_is_stopped(self):
        move = self.step(self.move('a', timeout=60))
        self.ironic.row('a')['provision_state'] = 'inspect wait'
        self.now += 59
        move = self.step(move)
        self.assertEqual('moving', self.phases(move))
        self.now += 1
        move = self.step(move)
        self.assertEqual('timed-out', self.phases(move))
        self.assertIn('inspect wait after 60 s', move.members[0].reason)
        self.assertEqual(
            'inspect failed', self.ironic.row('a')['provision_state']
        )

    def test_the_limit_is_for_all_attempts_together(self):
        move = self.step(self.move('a', timeout=60, attempts=9))
        self.now += 60
        self.finish('a', error='disk on fire')
        move = self.step(move)
        self.assertEqual('timed-out', self.phases(move))
        self.assertEqual('disk on fire', move.members[0].reason)

    def test_what_is_on_its_way_already_is_waited_for(self):
        self.ironic.row('a')['provision_state'] = 'inspecting'
        move = self.step(self.move('a'))
        self.assertEqual('moving', self.phases(move))
        self.assertEqual([], self.ironic.sent)

    def test_from_elsewhere_or_nowhere_there_is_no_way(self):
        self.ironic.row('a')['provision_state'] = 'active'
        move = self.step(self.move('a', 'b', 'x'))
        self.assertEqual('failed moving failed', self.phases(move))
        self.assertEqual(
            'It is active: only a manageable node is inspected',
            move.members[0].reason,
        )

    def test_a_locked_node_is_sent_later_until_its_time_is_over(self):
        self.ironic.failing['set_state'] = [errors.NodeLocked('locked')] * 2
        first = self.step(self.move('a', timeout=60))
        self.assertEqual('waiting', self.phases(first))
        self.now += 60
        self.assertEqual('timed-out', self.phases(self.step(first)))
        self.now -= 60
        self.ironic.failing.clear()
        move = self.step(first)
        self.assertEqual('moving', self.phases(move))
        self.assertEqual(1, move.members[0].attempts)

    def test_what_ironic_refuses_has_failed(self):
        self.ironic.failing['set_state'] = [errors.Refused('no boot image')]
        move = self.step(self.move('a', 'b'))
        self.assertEqual('failed moving', self.phases(move))
        self.assertEqual('no boot image', move.members[0].reason)

    def test_an_ironic_that_is_away_takes_no_step(self):
        self.ironic.failing['states'] = [errors.Unavailable('503')]
        self.assertRaises(errors.Unavailable, self.step, self.move())

    def test_a_node_that_is_there_already_is_not_sent(self):
        move = self.step(self.move('a', verb='manage'))
        self.assertEqual('done', self.phases(move))
        self.assertEqual([], self.ironic.sent)


class MoveTest(testtools.TestCase):
    def test_no_state_means_two_things(self):
        for move in moves.BY_VERB.values():
            self.assertEqual(frozenset(), move.ready & move.moving)
            self.assertEqual(frozenset(), move.there & move.moving)
            self.assertLessEqual(move.stoppable, move.moving)
