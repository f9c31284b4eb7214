# SPDX-License-Identifier: Apache-2.0
"""Processes whose hosts' clocks are wrong."""

import dataclasses
import time

import pytest

from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import orders
from tests.unit.runs.fleet import simulation

#: Seconds by which a host's clock is ahead; a run may take 90.
AHEAD = 600


@pytest.fixture
def world(monkeypatch):
    found = simulation.World(3)
    found.cluster.now = lambda: found.now
    monkeypatch.setattr(time, 'time', lambda: found.now + AHEAD)
    return found


def tools(world):
    """Return those of the host whose clock is ahead."""
    store = world.cluster.store()
    made = fleets.Fleets.with_own_key(world.heat, store, who='ahead')._tools
    return dataclasses.replace(
        made, monotonic=lambda: world.now, sleep=world.sleep
    )


@pytest.mark.parametrize('is_store_s', [True, False])
def test_a_leader_that_is_ahead_ends_no_healthy_run(world, is_store_s):
    order = world.order(timeout=90)
    first = world.begin(order)
    first.step()
    world.sleep(1)
    first.release()
    its = tools(world)
    if not is_store_s:
        # What this is about, by the host's clock.
        its = dataclasses.replace(its, clock=time.time)
    second = advancing.Advancer(its, order, world.seals[order.id])
    found = simulation.run(world, [second])
    expected = operations.Phase.COMPLETE
    if not is_store_s:
        expected = operations.Phase.TIMED_OUT
    assert found.control.phase is expected


def test_an_operation_of_such_a_host_begins_now(world):
    order = world.order()
    made = tools(world)
    _ = made.records.container
    assert abs(made.clock() - world.now) < 3
    assert abs(time.time() - world.now) == AHEAD
    assert order.created_at == int(world.now)


@pytest.mark.parametrize('clock', [None, lambda: time.time()])
def test_a_run_that_such_a_host_settles_goes_on(world, clock):
    def service(clock):
        return run_service.Runs(
            world.heat,
            world.cluster.store(),
            who='x',
            clock=clock,
            monotonic=lambda: world.now,
            sleep=world.sleep,
        )

    right = service(lambda: world.now)
    (target,) = right.find('s0', 'db0')
    run = right.start(
        dataclasses.replace(target, timeout=90),
        orders.RunOrder(action='BACKUP'),
    )
    found = service(clock).show('s0', run.id)
    is_wrong = clock is not None
    assert (found.state is runs.State.TIMED_OUT) == is_wrong


def test_a_clock_that_is_put_back_starts_no_run(world):
    """Between the decision that a run's time is over, and its end."""
    world.silent = {0, 1, 2}
    advancer = world.begin(world.order(timeout=600, delivery_timeout=60))
    advancer.step()
    members = advancer._dispatcher._members
    over = members.over

    def later(operation, member):
        world.now -= 3
        try:
            return over(operation, member)
        finally:
            world.now += 3

    members.over = later
    world.sleep(60)
    advancer.step()
    states = {each.state for each in advancer.operation.attempts}
    assert states == {runs.State.WAITING}
    del members.over
    advancer.step()
    states = {each.state for each in advancer.operation.attempts}
    assert states == {runs.State.TIMED_OUT}
