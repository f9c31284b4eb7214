# SPDX-License-Identifier: Apache-2.0
"""Many nodes in one transition: how many at a time, how often, how long."""

import dataclasses
import json

import pytest

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.nodes import moves
from heat_plugins.nodes import moving
from tests.unit.nodes import fake_ironic

ABORTED = 'Inspection was aborted by request.'


@pytest.fixture
def ironic():
    made = fake_ironic.Ironic()
    made.populate(a='manageable', b='manageable', c='manageable')
    return made


def plan(names='a', verb='inspect', **options):
    members = (moving.NodeMember(uuid=f'id-{n}', name=n) for n in names)
    return moving.NodeMove(verb=verb, members=tuple(members), **options)


def step(ironic, move, phases, reason=None, now=1000.0):
    """Take a step, with the move as JSON has it in between."""
    move = moving.advance(ironic, move, now)
    text = json.dumps(dataclasses.asdict(move))
    move = stored.read(moving.NodeMove, json.loads(text))
    assert ' '.join(one.phase for one in move.members) == phases
    assert reason in (None, move.members[0].reason)
    return move


def test_only_so_many_are_in_transition_at_a_time(ironic):
    move = step(ironic, plan('abc', concurrency=2), 'moving moving waiting')
    move = step(ironic, move, 'moving moving waiting')
    ironic.finish('b')
    step(ironic, move, 'moving done moving')


def test_a_failed_node_is_sent_again_and_an_aborted_one_is_not(ironic):
    move = step(ironic, plan(), 'moving')
    ironic.finish('a', 'disk on fire')
    move = step(ironic, move, 'moving', 'disk on fire')
    ironic.finish('a')
    step(ironic, move, 'done', '')
    for error, phase in ('disk on fire', 'failed'), (ABORTED, 'aborted'):
        ironic.row('a')['provision_state'] = 'manageable'
        attempts = 1 if phase == 'failed' else 3
        move = step(ironic, plan(attempts=attempts), 'moving')
        ironic.finish('a', error)
        step(ironic, move, phase, error)


def test_all_attempts_together_have_a_time_limit(ironic):
    first = step(ironic, plan(timeout=60, attempts=9), 'moving')
    row = ironic.row('a')
    row['provision_state'] = 'inspect wait'
    step(ironic, first, 'moving', now=1059)
    said = 'It was still inspect wait after 60 s'
    step(ironic, first, 'timed-out', said, now=1060)
    # It was aborted.
    assert row['provision_state'] == 'inspect failed'
    row['last_error'] = 'disk on fire'
    step(ironic, first, 'timed-out', 'disk on fire', now=1060)


def test_a_node_in_another_state_is_not_sent(ironic):
    ironic.row('a')['provision_state'] = 'inspecting'
    step(ironic, plan(), 'moving')
    step(ironic, plan('b', verb='manage'), 'done')
    assert ironic.sent == []
    ironic.row('a')['provision_state'] = 'active'
    said = 'It is active: only a manageable node is inspected'
    step(ironic, plan('abx'), 'failed moving failed', said)


def test_a_locked_node_is_sent_later_until_its_time_is_over(ironic):
    ironic.failing['set_state'] = [errors.NodeLocked('locked')] * 2
    first = step(ironic, plan(timeout=60), 'waiting')
    step(ironic, first, 'timed-out', now=1060)
    ironic.failing.clear()
    move = step(ironic, first, 'moving')
    assert move.members[0].attempts == 1


def test_errors_of_ironic(ironic):
    ironic.failing['set_state'] = [errors.Refused('no boot image')]
    step(ironic, plan('ab'), 'failed moving', 'no boot image')
    ironic.failing['nodes'] = [errors.Unavailable('503')]
    with pytest.raises(errors.Unavailable):
        step(ironic, plan(), '')


def test_no_state_means_two_things():
    for move in moves.BY_VERB.values():
        assert move.ready & move.moving == frozenset()
        assert move.there & move.moving == frozenset()
        assert move.stoppable <= move.moving
