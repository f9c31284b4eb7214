# SPDX-License-Identifier: Apache-2.0
"""What an operation promises, whatever happens to who advances it."""

import contextlib

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import operations
from tests.unit import examples
from tests.unit.runs.fleet import simulation

_EXAMPLES = hypothesis.settings(
    max_examples=examples.number(25), deadline=None, derandomize=True
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
        engines=draw(
            st.sampled_from(
                [simulation.nobody, simulation.everybody, simulation.others]
            )
        ),
    )
    limits = {
        'max_concurrent': operations.Share(draw(st.integers(1, 6))),
        'max_errors': operations.Share(draw(st.integers(0, 3))),
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
    # Those of each round.
    rounds = found.control.round + 1
    most = limits.errors(total) + concurrent
    assert world.failures_begun <= rounds * most
    assert all(times == 1 for times in world.executed.values())
    # Every run that was started is accounted for, and nothing is left.
    for run in world.executed:
        _, member, number = run.rsplit('.', 2)
        attempt = found.attempts[int(member)]
        assert int(number) <= attempt.number
        if found.control.round == 0:
            assert int(number) == attempt.number
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
        first.begin(world.registered[order.id])
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


@pytest.mark.parametrize(
    'engines', [simulation.nobody, simulation.everybody, simulation.others]
)
@pytest.mark.parametrize('seconds', [1, 60])
def test_the_same_after_a_kill_at_any_request(engines, seconds):
    def world():
        return simulation.World(
            5, seed=3, stacks=2, fail=[1], silent=[3], engines=engines
        )

    limits = {
        'max_concurrent': operations.Share(2),
        'max_errors': operations.Share(1),
        'timeout': 30,
    }
    whole = world()
    order = whole.order(**limits)
    check(whole, order, simulation.run(whole, [begin(whole, order)]))
    assert whole.requests > 50
    for at in range(1, whole.requests + 1, examples.STEP):
        one = world()
        order = one.order(**limits)
        one.kill_at = at
        with contextlib.suppress(simulation.Killed):
            simulation.run(one, [begin(one, order)])
        one.kill_at = None
        one.sleep(seconds)
        after = one.advancer(order, 'another')
        try:
            found = simulation.run(one, [after])
        except errors.NotFound:
            # It was killed before there was an operation.
            assert one.executed == {}
            continue
        check(one, order, found)
        assert set(one.heat.configs) == one.configs, at
        # Its lists say so, too.
        assert one.tools().records.heads.read(order.id).ended, at


@_EXAMPLES
@hypothesis.given(worlds(), st.integers(1, 100), st.integers(0, 50))
def test_the_same_while_services_are_out_of_order(drawn, outage, lost):
    world, order = drawn
    one = begin(world, order)
    world.outage, world.lost = outage, lost
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


#: What happens to an operation, and to those who advance it.
_EVENTS = (
    'kill',
    'outage',
    'another process',
    'pause',
    'resume',
    'cancel',
    'retry',
    'stack deleted',
)


@_EXAMPLES
@hypothesis.given(
    worlds(),
    st.lists(
        st.tuples(st.integers(1, 30), st.sampled_from(_EVENTS)), max_size=8
    ),
    st.integers(0, 30),
    st.integers(0, 15),
)
def test_the_same_whatever_happens(drawn, events, trouble, lag):
    world, order = drawn
    advancers = [begin(world, order)]
    world.outage = world.lost = trouble
    world.lag = float(lag)
    for steps, event in events:
        _advance(world, order, advancers, steps)
        _happen(world, order, advancers, event)
    _advance(world, order, advancers, 1)
    world.outage = world.lost = 0
    world.kill_at, world.dark_until = None, 0.0
    _ask(world, order, 'resume')
    found = simulation.run(world, [world.advancer(order, 'the last')])
    check(world, order, found)


def _advance(world, order, advancers, steps):
    """Let processes step in turn; one that is killed is replaced."""
    for turn in range(steps):
        one = advancers[turn % len(advancers)]
        try:
            one.step()
        except errors.Unavailable:
            pass
        except simulation.Killed:
            world.kill_at = None
            advancers.remove(one)
            advancers.append(_another(world, order, f'after {turn}'))
        world.sleep(1)


def _happen(world, order, advancers, event):
    if event == 'kill':
        world.kill_at = world.requests + world.random.randint(1, 20)
    elif event == 'outage':
        world.dark_until = world.now + world.random.choice([5, 50, 400])
    elif event == 'another process':
        advancers.append(_another(world, order, f'p{len(advancers)}'))
    elif event != 'stack deleted':
        _ask(world, order, event)
    elif len(world.heat.stacks) > 1:
        world.heat.delete_stack(world.stacks[0])
        world.stacks.pop(0)


def _another(world, order, who):
    """Return another process; one that cannot begin tries again later."""
    while True:
        try:
            return world.advancer(order, who)
        except errors.Unavailable:
            world.sleep(1)
        except simulation.Killed:
            world.kill_at = None


def _ask(world, order, what):
    """Ask for something, as a command does; it may come to nothing."""
    with contextlib.suppress(errors.Unavailable, simulation.Killed):
        world.tools('bob').records.request(
            world.seals[order.id], world.now, do=what, who='bob'
        )


@_EXAMPLES
@hypothesis.given(worlds(), st.integers(1, 200), st.integers(1, 120))
def test_a_process_that_stands_still_does_nothing_twice(drawn, at, seconds):
    world, order = drawn
    first = begin(world, order)
    other = world.advancer(order, 'other')
    asked, count = 0, world._count
    in_the_window = by_engines = False

    def stall(kind):
        nonlocal asked, in_the_window, by_engines
        count(kind)
        asked += world.stepping is first
        if asked != at or world.stepping is not first:
            return
        # A request that is under way for longer than the lease lasts.
        in_the_window = world.asking in ('create_deployment', 'deliver')
        by_engines = world.asking == 'deliver'
        world.stepping = other
        for _ in range(seconds):
            world.sleep(1)
            other.step()
        world.stepping = first

    world._count = stall
    found = simulation.run(world, [first, other])
    if seconds < advancing.lease.EXPIRY - advancing.lease.SAFE:
        in_the_window = False
    if not in_the_window:
        check(world, order, found)
    elif by_engines:
        # Then it knows the config.
        assert all(times == 1 for times in world.executed.values())
