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
    controls = [where for _, where in asked if where.endswith('/control')]
    assert len(controls) == len(leads) <= 60 / followers._SILENCE
    assert len(asked) - len(leads) - len(controls) == 60


def paused_by_a_user(pair):
    """Let a user pause it; say whether its follower knows of that soon."""
    order = pair.leader.operation.order
    tools, seal = pair.world.tools(), pair.world.seals[order.id]
    tools.records.request(seal, pair.world.now, do='pause', who='ann')
    for _ in range(3 * round(followers._SILENCE)):
        pair.lead(1)
        pair.look()
    assert pair.leader.operation.control.paused_by
    return pair.follower.operation.control.paused_by == 'ann'


def test_a_listing_that_lags_hides_nothing_for_long(pair):
    pair.look()
    name = layout.control(pair.leader.operation.id, 1)
    pair.world.cluster.lagging.add((simulation.CONTAINER, name))
    assert paused_by_a_user(pair)


def test_what_a_user_has_put_there_hides_nothing_for_long(pair):
    pair.look()
    folder = layout.states(pair.leader.operation.id, 1)
    objects = pair.world.cluster.container(simulation.CONTAINER).objects
    objects |= {f'{folder}!{n}': b'x' for n in range(2000)}
    assert paused_by_a_user(pair)


def test_what_a_user_writes_does_not_pass_for_its_leader(pair):
    pair.look()
    name = layout.states(pair.leader.operation.id, 1) + 'another'
    objects = pair.world.cluster.container(simulation.CONTAINER).objects
    died = pair.world.now
    while not pair.follower.is_leading:
        pair.world.sleep(1)
        objects[name] = str(pair.world.now).encode()
        pair.look()
    assert pair.world.now - died <= lease.EXPIRY + followers._SILENCE + 2


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
