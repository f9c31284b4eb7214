# SPDX-License-Identifier: Apache-2.0
"""What an operation asks of the object store."""

import dataclasses
from unittest import mock

import pytest

from heat_plugins import errors
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import dispatch
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import layout
from tests.unit.runs.fleet import simulation


def operate(members, concurrent):
    """Run an operation to its end; return its world and the seconds."""
    world = simulation.World(members, stacks=min(20, members))
    order = world.order(max_concurrent=operations.Share(concurrent))
    begun = world.now
    first = world.begin(order)
    found = simulation.run(world, [first])
    assert found.control.phase.value == 'complete'
    return world, world.now - begun


def ours(world):
    """Return the requests that servers have not made."""
    return [one for one in world.cluster.seen if not one.signed]


@pytest.mark.parametrize(
    ('members', 'concurrent'), [(100, 10), (200, 50), (200, 200)]
)
def test_a_run_costs_at_most_three_requests(members, concurrent):
    world, seconds = operate(members, concurrent)
    requests = ours(world)
    listings = [one for one in requests if 'prefix' in one.query]
    # However many stacks it is over; but what runs in each is listed once,
    # and other operations are.
    once = [one for one in listings if one.query['prefix'] == 'runs/open/']
    assert len(once) == min(20, members)
    assert len(listings) - len(once) <= seconds + 5
    assert (len(requests) - len(listings)) / members <= 3


def test_that_all_have_started_is_recorded_soon():
    world = simulation.World(100, stacks=2)
    order = world.order(max_concurrent=operations.Share(100))
    advancer = world.begin(order)
    while advancer.step() and advancer.is_busy:
        pass
    advancer.step()
    shown = world.tools().records.show(world.seals[order.id])
    assert {each.state for each in shown.attempts} == {runs.State.WAITING}


def test_results_that_came_together_are_read_without_a_pause():
    members = 3 * dispatch._CHUNK
    world, advancer = answered(members, stacks=2)
    begun, listed = world.now, len(listings(world))
    steps = 0
    while not advancer.step().ended:
        steps += 1
        world.sleep(advancer.pause)
    assert steps == members // dispatch._CHUNK - 1
    assert world.now == begun
    assert len(listings(world)) - listed == 2


def answered(members, stacks=1):
    """Return a world whose servers have all answered, and who leads there."""
    world = simulation.World(members, stacks=stacks)
    answering_at_once(world)
    advancer = world.begin(
        world.order(max_concurrent=operations.Share(members))
    )
    while advancer.step() and advancer.is_busy:
        pass
    world.sleep(2)
    world.sleep(2)
    return world, advancer


def answering_at_once(world):
    """Let servers begin with a run within a second, and take one for it."""
    world.random.random = lambda: 0.9
    world.random.uniform = lambda least, most: 1


def listings(world):
    return [
        one
        for one in ours(world)
        if one.query.get('prefix', '').startswith('operations/arrivals/')
    ]


def test_results_that_cannot_be_read_are_not_asked_for_at_once():
    members = 2 * dispatch._CHUNK
    world, advancer = answered(members)
    world.heat.failing = {'delete_deployment': errors.Unavailable('503')}
    advancer.step()
    assert advancer.pause >= 1


def test_results_that_cannot_be_read_keep_no_others_from_being_read():
    members = 2 * dispatch._CHUNK
    world, advancer = answered(members)
    failing = set()
    answered_run = attempts.Attempts.answered

    def fail_first(self, run):
        _, member, _ = layout.attempt_of(run.id)
        # Whichever come first never succeed.
        if len(failing) < dispatch._CHUNK:
            failing.add(member)
        if member in failing:
            raise errors.Unavailable('503')
        return answered_run(self, run)

    with mock.patch.object(attempts.Attempts, 'answered', fail_first):
        for _step in range(2):
            advancer.step()
            world.sleep(2)
    running = {*advancer.operation.live}
    assert running == failing
    assert len(running) < members


def test_who_no_longer_leads_does_not_ask_without_a_pause():
    members = 3 * dispatch._CHUNK
    world, first = answered(members)
    first.step()
    assert first.pause == 0
    # Its host sleeps, and another process takes over.
    world.now += 120
    second = world.advancer(first.operation.order, 'bob')
    second.step()
    assert second.is_leading
    first.step()
    assert not first.is_leading
    assert first.pause >= 1


def operated(number=100):
    """Return a world in which operations have ended, and the door to them."""
    world = simulation.World(1)
    heads = world.tools().records.heads
    order = world.order()
    world.begin(order)
    container = world.cluster.container(simulation.CONTAINER)
    head = heads.read(order.id)
    del container.objects[layout.head(order.id)]
    for n in range(number):
        heads.write(
            dataclasses.replace(
                head,
                id=f'20270114T08{n // 60:02}{n % 60:02}Z-00c0ffee',
                state=operations.Phase.COMPLETE,
                targets=1000,
                ended_at=head.created_at + 60,
            )
        )
    return world, fleets.Fleets(world.heat, world.tools())


def listed(world, door):
    """Return what a list has, and what it has asked for."""
    before = len(ours(world))
    found = door.history(fleets.Filter(limit=100))
    return found, ours(world)[before:]


def test_a_list_reads_each_operation_once():
    world, door = operated()
    first, requests = listed(world, door)
    # And two listings, of the containers and of the operations.
    assert len(first) == 100
    assert len(requests) <= 102


def test_a_list_shows_what_has_changed_since():
    world, door = operated()
    first, _ = listed(world, door)
    changed = dataclasses.replace(
        first[40], state=operations.Phase.RUNNING, ended_at=None
    )
    heads = world.tools().records.heads
    heads.write(changed)
    assert listed(world, door)[0] == [*first[:40], changed, *first[41:]]
    door.delete(first[99].id, force=True)
    assert len(listed(world, door)[0]) == 99
