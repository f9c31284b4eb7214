# SPDX-License-Identifier: Apache-2.0
"""What is not delivered yet when an operation stops is not delivered."""

import pytest

from heat_plugins.runs.fleet import dispatch
from heat_plugins.runs.fleet import operations
from tests.unit.runs.fleet import simulation

_Phase = operations.Phase
_State = operations.State

CHUNK = dispatch._CHUNK
MEMBERS = 3 * CHUNK


def begin(**limits):
    """Return an operation on all servers at once after its first step."""
    world = simulation.World(MEMBERS, stacks=2)
    order = world.order(max_concurrent=operations.Share(MEMBERS), **limits)
    advancer = world.begin(order)
    advancer.step()
    assert advancer.is_busy
    return world, advancer


def states(operation):
    return [attempt.state for attempt in operation.attempts]


def test_nothing_is_delivered_after_the_cut_off():
    world, advancer = begin(cut_off=60)
    world.now += 60
    found = simulation.run(world, [advancer])
    assert len(world.executed) == CHUNK
    assert found.count(_State.COMPLETE) == CHUNK
    assert found.count(None) == len(found.pending) == MEMBERS - CHUNK
    assert found.control.phase is _Phase.TIMED_OUT
    assert {each.number for each in found.attempts} == {0, 1}


def test_nor_by_a_process_that_takes_over():
    world, advancer = begin(cut_off=60)
    order = advancer.operation.order
    shown = world.tools().records.show(world.seals[order.id])
    assert _State.STARTING in states(shown)
    world.now += 60
    found = simulation.run(world, [world.advancer(order, 'bob')])
    assert len(world.executed) == CHUNK
    assert found.control.phase is _Phase.TIMED_OUT


def test_all_that_were_delivered_in_time_are_no_failure():
    world, advancer = begin(cut_off=60)
    while advancer.is_busy:
        advancer.step()
    # It dies before it has recorded what was delivered last.
    world.now += 60
    order = advancer.operation.order
    found = simulation.run(world, [world.advancer(order, 'bob')])
    assert found.count(_State.COMPLETE) == MEMBERS
    assert found.control.phase is _Phase.COMPLETE


@pytest.mark.parametrize('limits', [{}, {'canary': CHUNK + 1}])
def test_nothing_is_delivered_after_a_failure(limits):
    world = simulation.World(MEMBERS, stacks=2, fail=range(MEMBERS))
    order = world.order(
        max_concurrent=operations.Share(MEMBERS),
        max_errors=operations.Share(100 if limits else 0, bool(limits)),
        **limits,
    )
    advancer = world.begin(order)
    advancer.step()
    assert advancer.is_busy
    world.sleep(30)
    world.sleep(30)
    found = simulation.run(world, [advancer])
    assert len(world.executed) == CHUNK
    assert found.control.phase is _Phase.FAILED


def test_nothing_is_delivered_after_the_deadline():
    world, advancer = begin(deadline=60)
    world.now += 60
    found = simulation.run(world, [advancer])
    assert found.control.phase is _Phase.TIMED_OUT
    assert not any(n >= CHUNK for n in map(member, world.executed))


def member(run_id):
    return int(run_id.rsplit('.', 2)[1])


def test_a_hanging_run_is_withdrawn_at_the_deadline_after_a_cut_off():
    world = simulation.World(2, silent=[0, 1])
    order = world.order(
        max_concurrent=operations.Share(1), cut_off=60, deadline=120
    )
    advancer = world.begin(order)
    begun = world.now
    found = simulation.run(world, [advancer])
    assert 120 <= world.now - begun < 130
    assert states(found) == [_State.CANCELLED, None]
    assert world.given == []
    assert found.control.reason == (
        'No run starts after the cut-off of 60 s; it has not ended within '
        '120 s; 1 not started'
    )
