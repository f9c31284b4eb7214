# SPDX-License-Identifier: Apache-2.0
"""Many nodes in one transition: how many at a time, how often, how long."""

import dataclasses
import json

import testtools

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.nodes import moves
from heat_plugins.nodes import moving
from tests.unit.nodes import fake_ironic

ABORTED = 'Inspection was aborted by request.'


class MovingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.ironic = fake_ironic.Ironic()
        for name in 'abc':
            self.ironic.add(
                f'id-{name}', name=name, provision_state='manageable'
            )

    def move(self, names='a', verb='inspect', **options):
        members = (moving.NodeMember(uuid=f'id-{n}', name=n) for n in names)
        return moving.NodeMove(verb=verb, members=tuple(members), **options)

    def step(self, move, phases, reason=None):
        """Take a step, with the move as JSON has it in between."""
        move = moving.advance(self.ironic, move, self.now)
        text = json.dumps(dataclasses.asdict(move))
        move = stored.read(moving.NodeMove, json.loads(text))
        assert ' '.join(one.phase for one in move.members) == phases
        if reason is not None:
            assert move.members[0].reason == reason
        return move

    def test_only_so_many_are_in_transition_at_a_time(self):
        move = self.step(
            self.move('abc', concurrency=2), 'moving moving waiting'
        )
        move = self.step(move, 'moving moving waiting')
        self.ironic.finish('b')
        self.step(move, 'moving done moving')

    def test_a_failed_node_is_sent_again_and_an_aborted_one_is_not(self):
        move = self.step(self.move(), 'moving')
        self.ironic.finish('a', 'disk on fire')
        move = self.step(move, 'moving', 'disk on fire')
        self.ironic.finish('a')
        self.step(move, 'done', '')
        move = self.step(self.move(attempts=1), 'moving')
        self.ironic.finish('a', 'disk on fire')
        self.step(move, 'failed', 'disk on fire')
        self.ironic.row('a')['provision_state'] = 'manageable'
        move = self.step(self.move(), 'moving')
        self.ironic.finish('a', ABORTED)
        self.step(move, 'aborted', ABORTED)

    def test_a_node_that_takes_too_long_is_aborted(self):
        move = self.step(self.move(timeout=60), 'moving')
        row = self.ironic.row('a')
        row['provision_state'] = 'inspect wait'
        self.now += 59
        move = self.step(move, 'moving')
        self.now += 1
        self.step(move, 'timed-out', 'It was still inspect wait after 60 s')
        assert row['provision_state'] == 'inspect failed'

    def test_the_limit_is_for_all_attempts_together(self):
        move = self.step(self.move(timeout=60, attempts=9), 'moving')
        self.now += 60
        self.ironic.finish('a', 'disk on fire')
        self.step(move, 'timed-out', 'disk on fire')

    def test_a_node_that_moves_or_has_arrived_is_not_sent(self):
        self.ironic.row('a')['provision_state'] = 'inspecting'
        self.step(self.move(), 'moving')
        self.step(self.move('b', verb='manage'), 'done')
        assert self.ironic.sent == []

    def test_some_states_lead_nowhere(self):
        self.ironic.row('a')['provision_state'] = 'active'
        self.step(
            self.move('abx'),
            'failed moving failed',
            'It is active: only a manageable node is inspected',
        )

    def test_a_locked_node_is_sent_later_until_its_time_is_over(self):
        self.ironic.failing['set_state'] = [errors.NodeLocked('locked')] * 2
        first = self.step(self.move(timeout=60), 'waiting')
        self.now += 60
        self.step(first, 'timed-out')
        self.now -= 60
        self.ironic.failing.clear()
        move = self.step(first, 'moving')
        assert move.members[0].attempts == 1

    def test_errors_of_ironic(self):
        self.ironic.failing['set_state'] = [errors.Refused('no boot image')]
        self.step(self.move('ab'), 'failed moving', 'no boot image')
        self.ironic.failing['states'] = [errors.Unavailable('503')]
        self.assertRaises(errors.Unavailable, self.step, self.move(), '')

    def test_no_state_means_two_things(self):
        for move in moves.BY_VERB.values():
            assert move.ready & move.moving == frozenset()
            assert move.there & move.moving == frozenset()
            assert move.stoppable <= move.moving
