# SPDX-License-Identifier: Apache-2.0
"""What an operation asks of the object store."""

import json

import pytest

from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import layout
from heat_plugins.runs.fleet import limits as limit_values
from tests.unit.runs.fleet import simulation


def operate(members, concurrent):
    """Run an operation to its end; return its world and the seconds."""
    world = simulation.World(members, stacks=min(20, members))
    order = world.order(max_concurrent=limit_values.Share(concurrent))
    first = world.advancer(order)
    begun = world.now
    first.begin()
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
    # However many stacks it is over.
    assert len(listings) <= seconds + 4
    assert (len(requests) - len(listings)) / members <= 3


def test_a_list_reads_one_object_for_each_operation():
    world = simulation.World(1)
    book = world.tools().book
    order = world.order()
    world.advancer(order).begin()
    container = world.cluster.container(simulation.CONTAINER)
    head = json.loads(container.objects[layout.head(order.id)])
    head['targets'] = 1000
    for n in range(100):
        head['id'] = f'20270114T08{n // 60:02}{n % 60:02}Z-00c0ffee'
        book.write_head(head['id'], head)
    before = len(ours(world))
    door = fleets.Fleets(world.heat, world.tools())
    assert len(door.history(fleets.Filter(limit=100))) == 100
    # And two listings: of the containers, and of the operations.
    assert len(ours(world)) - before <= 102
