# SPDX-License-Identifier: Apache-2.0
"""What an operation promises, whatever happens to who advances it."""

import contextlib

import hypothesis
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import limits as limit_values
from heat_plugins.runs.fleet import operation as operations
from tests.unit.runs.fleet import simulation

_EXAMPLES = hypothesis.settings(
    max_examples=25, deadline=None, derandomize=True
)

_State = operations.State


@st.composite
def worlds(draw):
    members = draw(st.integers(1, 12))
    servers = st.sets(st.integers(0, members - 1), max_size=4)
    world = simulation.World(
        members,
        seed=draw(st.integers(0, 2**16)),
        stacks=draw(st.integers(1, 3)),
        fail=draw(servers),
        silent=draw(st.sets(st.integers(0, members - 1), max_size=1)),
    )
    limits = {
        'max_concurrent': limit_values.Share(draw(st.integers(1, 6))),
        'max_errors': limit_values.Share(draw(st.integers(0, 3))),
        'canary': draw(st.integers(0, 2)),
        'pause': draw(st.sampled_from([0, 0, 7])),
        'timeout': 90,
    }
    return world, world.order(**limits)


def check(world, order, found):
    """Check the promises against what the servers have seen."""
    limits, total = order.limits, len(order.members)
    concurrent = limits.concurrent(total)
    assert found.ended, found.control
    assert world.most_at_once <= concurrent
    assert world.failures_begun <= limits.errors(total) + concurrent
    assert all(times == 1 for times in world.executed.values())
    # Every run that was started is accounted for, and nothing is left.
    for run in world.executed:
        _, member, number = run.rsplit('.', 2)
        attempt = found.attempts[int(member)]
        assert attempt.number == int(number)
        assert attempt.state is not None and attempt.state.ended
    assert not found.live
    assert world.given == []
    for n, one in enumerate(found.attempts):
        if one.state is _State.COMPLETE:
            assert n not in world.fail | world.silent
            assert one.outputs['deploy_stdout'] == f'n{n}'
    if not found.control.stopped:
        assert found.pending == []


def begin(world, order):
    first = world.advancer(order)
    with contextlib.suppress(errors.Unavailable, simulation.Killed):
        first.begin()
    return first


@_EXAMPLES
@hypothesis.given(worlds())
def test_an_operation_keeps_its_limits(drawn):
    world, order = drawn
    first = begin(world, order)
    found = simulation.run(world, [first])
    check(world, order, found)
    # Nothing of the runs is left in Heat.
    assert set(world.heat.configs) == world.configs


@_EXAMPLES
@hypothesis.given(worlds(), st.lists(st.integers(1, 150), max_size=4))
def test_the_same_after_processes_are_killed(drawn, kills):
    world, order = drawn
    one = begin(world, order)
    for kill in kills:
        world.kill_at = world.requests + kill
        with contextlib.suppress(simulation.Killed):
            simulation.run(world, [one])
        world.kill_at = None
        # What a process knew is gone, and its lease expires.
        world.sleep(world.random.choice([1, 60]))
        one = world.advancer(order)
    check(world, order, simulation.run(world, [one]))


@_EXAMPLES
@hypothesis.given(worlds(), st.integers(1, 100))
def test_the_same_while_services_are_out_of_order(drawn, outage):
    world, order = drawn
    one = begin(world, order)
    world.outage = outage
    check(world, order, simulation.run(world, [one]))


@_EXAMPLES
@hypothesis.given(worlds(), st.integers(1, 40))
def test_the_same_while_listings_lag(drawn, lag):
    world, order = drawn
    one = begin(world, order)
    world.lag = float(lag)
    check(world, order, simulation.run(world, [one]))


@_EXAMPLES
@hypothesis.given(worlds(), st.integers(2, 4), st.integers(0, 60))
def test_several_that_advance_it_do_not_disturb_each_other(
    drawn, processes, outage
):
    world, order = drawn
    first = begin(world, order)
    others = [world.advancer(order, f'p{n}') for n in range(processes - 1)]
    world.outage = outage
    world.lag = 5.0
    found = simulation.run(world, [first, *others])
    check(world, order, found)


@_EXAMPLES
@hypothesis.given(worlds(), st.integers(1, 200), st.integers(1, 120))
def test_a_process_that_stands_still_does_nothing_twice(drawn, at, seconds):
    world, order = drawn
    first = begin(world, order)
    other = world.advancer(order, 'other')
    asked, count = 0, world._count
    in_the_window = False

    def stall(kind):
        nonlocal asked, in_the_window
        count(kind)
        asked += world.stepping is first
        if asked != at or world.stepping is not first:
            return
        # A request that is under way for longer than the lease lasts.
        in_the_window = world.asking == 'create_deployment'
        world.stepping = other
        for _ in range(seconds):
            world.sleep(1)
            other.step()
        world.stepping = first

    world._count = stall
    found = simulation.run(world, [first, other])
    if seconds < advancing.leases.EXPIRY - advancing.leases.SAFE:
        in_the_window = False
    if not in_the_window:
        check(world, order, found)
