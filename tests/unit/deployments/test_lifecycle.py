# SPDX-License-Identifier: Apache-2.0
"""An action of a stack goes through its rollouts, and ends or is withdrawn."""

import pytest

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import lifecycle
from tests.unit.deployments import test_rollout


def action_of(group, name, *rollouts, **options):
    return lifecycle.LifecycleAction(name, group.fleet, rollouts, **options)


def deletion(group, name='DELETE'):
    return action_of(group, name, group.undoing())


def go_on(group, action, seconds=100):
    for _ in range(seconds):
        group.clock.now += 1
        group.fleet.work()
        if action.step():
            return True
    return False


def test_rollouts_go_one_after_another_and_then_what_comes_last():
    group = test_rollout.Group('a', 'b')
    group.update('CREATE')
    group.fleet.who = 'moon'
    leaving = {
        number: row
        for number, row in group.fleet.rows.items()
        if row.server_id == 'server-b'
    }
    staying = {
        number: member
        for number, member in group.wanted().items()
        if number not in leaving
    }
    finished = []
    action = action_of(
        group,
        'UPDATE',
        group.rollout('UPDATE', group.updates(staying)),
        group.rollout('DELETE', fleets.to_undo(leaving)),
        finish=lambda outage: finished.append(outage) or True,
    )
    action.begin()
    assert go_on(group, action)
    assert group.fleet.actions() == {
        'a': ['CREATE', 'UPDATE'],
        'b': ['CREATE', 'DELETE'],
    }
    assert finished == [None]


def test_a_stack_that_is_cancelled_ends_it_and_withdraws_it():
    group = test_rollout.Group('a', 'b')
    action = action_of(group, 'CREATE', group.waiting())
    group.fleet.is_stack_cancelled = True
    with pytest.raises(
        deliveries.ActionFailed, match='CREATE was cancelled before 2'
    ):
        action.step()
    action.withdraw()
    reasons = {row.reason for row in group.fleet.rows.values()}
    assert reasons == {'CREATE was cancelled'}


def test_rows_that_an_outage_ends_say_so():
    group = test_rollout.Group('a', budget=30)
    waiting = group.waiting()
    action = action_of(group, 'CREATE', waiting)
    group.send(errors.Unavailable('503 of the store'))
    with pytest.raises(deliveries.ActionFailed, match='503 of the store'):
        go_on(group, action)
    action.withdraw()
    (row,) = group.fleet.rows.values()
    assert '503 of the store' in row.reason
    assert group.fleet.renewed


@pytest.mark.parametrize('seconds', [None, 30])
def test_a_delete_goes_on_without_answer_and_says_so_once(seconds):
    group = test_rollout.Group('a', 'b', budget=60, timeout=seconds)
    group.update('CREATE')
    action = deletion(group)
    group.fleet.broken = errors.Unavailable('503')
    action.begin()
    # There is nothing to do for a while.
    assert action.pause == lifecycle.STORE_DELAY
    assert go_on(group, action)
    (event,) = group.fleet.events
    assert event.startswith('DELETE was not run on 2 servers: ')


def test_servers_that_run_a_delete_are_not_left_alone_for_an_outage():
    group = test_rollout.Group('a', budget=60)
    group.update('CREATE')
    group.fleet.answer = lambda key: None
    action = deletion(group)
    action.begin()
    group.fleet.work()
    group.send(errors.Unavailable('503'))
    with pytest.raises(deliveries.ActionFailed, match='503'):
        go_on(group, action)
    assert not group.fleet.events


def test_an_update_fails_where_its_delete_meets_an_outage():
    group = test_rollout.Group('a', budget=60)
    group.update('CREATE')
    action = deletion(group, 'UPDATE')
    group.fleet.broken = errors.Unavailable('503')
    with pytest.raises(deliveries.NoAnswer, match='503'):
        go_on(group, action)


def test_what_was_left_out_is_told():
    group = test_rollout.Group('a', 'b')
    group.update('CREATE')
    group.fleet.refusals = dict.fromkeys('ab', 'it is gone')
    assert go_on(group, deletion(group))
    assert group.fleet.events == [
        '2 members did not run DELETE. a: it is gone'
    ]
    (number, row), _ = group.fleet.rows.items()
    group.fleet.rows = {number: row}
    assert go_on(group, deletion(group))
    assert group.fleet.events[1:] == ['DELETE was not run: it is gone']


def test_failures_that_are_allowed_are_told():
    group = test_rollout.Group('a', 'b', allowed=1)
    group.fleet.refusals['a'] = 'its policy forbids it'
    action = action_of(group, 'CREATE', group.begun())
    assert go_on(group, action)
    assert group.fleet.events == [
        '1 of 2 members failed. a: its policy forbids it'
    ]


def test_it_blocks_for_as_long_as_heats_loop_lets_it():
    group = test_rollout.Group('a')
    asked = []

    def ask():
        asked.append(group.clock.now)
        group.send(b'{}')

    action = action_of(group, 'CREATE', group.waiting())
    # Not once the time of the stack is up.
    assert not action.step(lifecycle.Loop(0, lambda: 1 / 0))
    assert action.step(lifecycle.Loop(60, ask))
    assert asked


def test_without_rollouts_there_is_nothing_to_withdraw():
    group = test_rollout.Group('a')
    action = action_of(group, 'DELETE', finish=lambda outage: False)
    action.begin()
    assert not action.step()
    assert action.pause == lifecycle.STORE_DELAY
    action.withdraw()
