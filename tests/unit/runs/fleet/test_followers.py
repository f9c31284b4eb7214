# SPDX-License-Identifier: Apache-2.0
"""What it costs to follow an operation that another process leads."""

import pytest

from heat_plugins import errors
from heat_plugins.objectstore import lease
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import followers
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import layout
from tests.unit.runs.fleet import simulation

MEMBERS = 2 * layout.SHARD


class Pair:
    """One process leads an operation, and another one follows it."""

    def __init__(self, members=MEMBERS, silent=range(MEMBERS)):
        self.world = simulation.World(members, silent=silent)
        order = self.world.order(max_concurrent=operations.Share(members))
        self.leader = self.world.begin(order, 'leader')
        self.lead(5)
        self.follower = self.world.advancer(order, 'follower')
        self.look()

    def lead(self, seconds):
        for _ in range(seconds):
            self.leader.step()
            self.world.sleep(1)

    def look(self):
        """Let the follower poll; return what it has asked for."""
        before = len(self.world.cluster.seen)
        self.follower.step()
        return [
            (each.method, each.where.partition('/operations/')[2])
            for each in self.world.cluster.seen[before:]
        ]

    @property
    def states(self):
        return {each.state for each in self.follower.operation.attempts}


@pytest.fixture
def pair():
    return Pair()


def test_a_poll_is_one_listing_while_nothing_changes(pair):
    assert pair.states == {runs.State.WAITING}
    pair.look()
    for _ in range(10):
        pair.lead(1)
        assert pair.look() == [('GET', '')]
    assert not pair.follower.is_leading


def test_a_poll_reads_what_has_changed(pair):
    pair.look()
    pair.world.now += 1
    epoch, operation = 1, pair.leader.operation
    changed = operation.attempted({MEMBERS - 1: {'reason': 'half of it'}})
    pair.leader._op = changed
    pair.leader._journal.write(changed)
    last = layout.shard(operation.id, epoch, 1).removeprefix('operations/')
    assert pair.look() == [('GET', ''), ('GET', last)]
    assert pair.follower.operation.attempts == changed.attempts
    assert pair.look() == [('GET', '')]


def test_it_shows_the_end_and_all_results():
    pair = Pair(members=60, silent=())
    while not pair.leader.step().ended:
        pair.world.sleep(1)
    while not pair.follower.is_over:
        pair.look()
        pair.world.sleep(1)
    assert pair.states == {runs.State.COMPLETE}
    assert not pair.follower.is_leading


def test_the_end_is_shown_whole_where_a_listing_lags():
    pair = Pair(members=60, silent=())
    pair.look()
    while not pair.leader.step().ended:
        pair.world.sleep(1)
    order = pair.leader.operation.order
    for number in layout.shards(60):
        name = layout.shard(order.id, 1, number)
        pair.world.cluster.lagging.add((simulation.CONTAINER, name))
    pair.look()
    assert pair.follower.operation.ended
    assert pair.states == {runs.State.COMPLETE}


def test_the_lease_of_a_silent_leader_is_read_now_and_then(pair):
    pair.look()
    asked = []
    for _ in range(60):
        pair.lead(1)
        asked += pair.look()
    leads = [where for _, where in asked if where.startswith('leads/')]
    assert len(leads) <= 60 / followers._SILENCE
    assert len(asked) - len(leads) == 60


def test_it_leads_soon_after_its_leader_has_died(pair):
    pair.lead(10)
    died = pair.world.now
    while not pair.follower.is_leading:
        pair.look()
        pair.world.sleep(1)
    assert pair.world.now - died <= lease.EXPIRY + followers._SILENCE + 2


def test_it_leads_soon_after_its_leader_has_released_it(pair):
    pair.look()
    pair.leader.release()
    released = pair.world.now
    while not pair.follower.is_leading:
        pair.look()
        pair.world.sleep(1)
    assert pair.world.now - released <= followers._SILENCE + 2


def test_it_follows_the_next_leader(pair):
    pair.look()
    pair.leader.release()
    pair.leader = pair.world.advancer(pair.leader.operation.order, 'next')
    for _ in range(int(followers._SILENCE) + 2):
        pair.lead(1)
        pair.look()
    assert pair.leader.is_leading
    pair.leader._journal.write(
        pair.leader.operation.attempted({0: {'reason': 'half of it'}})
    )
    pair.look()
    assert pair.follower.operation.attempts[0].reason == 'half of it'


def test_a_listing_that_lags_is_no_news(pair):
    pair.look()
    operation = pair.follower.operation
    for name in (layout.control, lambda *epoch: layout.shard(*epoch, 0)):
        place = simulation.CONTAINER, name(operation.id, 1)
        pair.world.cluster.lagging.add(place)
    assert pair.look() == [('GET', '')]
    pair.world.cluster.lagging.clear()
    assert pair.look() == [('GET', '')]
    assert pair.follower.operation == operation


def test_it_says_that_the_operation_was_deleted(pair):
    pair.look()
    door = fleets.Fleets(pair.world.heat, pair.world.tools())
    door.forget(pair.leader.operation.id)
    pair.world.sleep(followers._SILENCE + 1)
    with pytest.raises(errors.NotFound):
        pair.look()


def test_it_leads_at_once_what_no_process_leads(pair):
    pair.leader.release()
    late = pair.world.advancer(pair.leader.operation.order, 'bob')
    late.step()
    assert late.is_leading
