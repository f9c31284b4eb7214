# SPDX-License-Identifier: Apache-2.0
"""How one engine leads runs, and another goes on when it has died."""

import contextlib
import dataclasses
import itertools
from unittest import mock

import hypothesis
from hypothesis import strategies as st
from oslo_config import cfg
import pytest

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.engine import rescue
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import deciding
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from tests.unit import counted
from tests.unit import examples
from tests.unit import heat_fixture
from tests.unit.engine import run_world

OTHER = '20270115T080001Z-0badcafe'
AWAY = errors.Unavailable('503 of the store')


@pytest.fixture(scope='module', autouse=True)
def _heat():
    heat = heat_fixture.Heat({})
    heat.setup()
    cfg.CONF.set_override('rescue_interval', 60, 'heat_plugins')
    yield
    heat.cleanup()


def test_each_server_runs_the_action_once_and_its_outputs_are_kept():
    world = run_world.World()
    world.start()
    world.pass_time()
    assert run_world.RUN not in [*schedule_rows.take_changed()]
    world.finish()
    # The schedule that has started it decides at once.
    assert run_world.RUN in [*schedule_rows.take_changed()]
    run = world.run()
    assert run.control.phase is run_records.Phase.COMPLETE
    assert world.states() == ['complete'] * 3
    assert set(world.ran.values()) == {1}
    assert run.attempts[0].outputs['deploy_status_code'] == 0
    # Nothing is left in Heat, on servers, or in the object store.
    assert world.store.given == {}
    assert not any(world.metadata.values())
    assert world.objects == {}


def test_servers_are_told_together_what_several_steps_give():
    world = run_world.World(1300, max_concurrent=run_records.Share(1300))
    world.answers = lambda server_id: None
    world.start().turn()
    assert world.tellings == [1000, 300]
    assert {*world.states()} == {'waiting'}


def test_a_leader_that_dies_anywhere_is_followed_by_another():
    for crash_at in itertools.count(1):
        world = run_world.World(targets=2)
        world.crash_at = crash_at
        world.start()
        try:
            world.finish()
            break
        except run_world.Crash:
            world.take_over()
        world.finish()
        assert world.states() == ['complete'] * 2, crash_at
        assert set(world.ran.values()) == {1}, crash_at
        assert not any(world.metadata.values()), crash_at
    assert crash_at > 10


def test_one_run_of_an_action_on_a_deployment_at_a_time():
    world = run_world.waiting(targets=2)
    leader = world.start(OTHER, world.leaders[0])
    world.finish(run_id=OTHER)
    assert world.states(OTHER) == ['skipped'] * 2
    assert run_world.RUN in world.run(OTHER).attempts[0].reason
    control = world.run(OTHER).control
    assert control.phase is run_records.Phase.FAILED
    assert control.reason == 'BACKUP already runs on 2'
    assert sum(world.ran.values()) == 2
    world.answers = lambda server_id: 0
    world.finish()
    world.ask(deciding.RETRY, OTHER)
    leader.wake(OTHER)
    world.finish(run_id=OTHER)
    assert world.states(OTHER) == ['complete'] * 2


def test_nothing_is_given_after_the_cut_off_however_long_that_takes():
    world = run_world.World(
        targets=3, max_concurrent=run_records.Share(2), cut_off=20
    )
    world.slowness = 30
    world.start()
    world.finish()
    assert world.states() == [None] * 3
    assert world.run().control.phase is run_records.Phase.TIMED_OUT
    assert world.ran == {}


def test_nothing_is_given_after_a_failure_that_comes_meanwhile():
    world = run_world.World(targets=3, max_concurrent=run_records.Share(2))
    leader = world.start()
    prepare = world.servers.prepare

    def fail_meanwhile(project_id, run, members):
        made = prepare(project_id, run, members)
        if members == (2,):
            leader.settle({run_store.key_of(run, 1): failure})
        return made

    failure = stepping.Answer(
        lost='it is lost', state=run_records.State.FAILED
    )
    world.answers = lambda server_id: 0 if server_id == 'server-0' else None
    world.servers.prepare = fail_meanwhile
    world.finish()
    assert world.states() == ['complete', 'failed', None]


def test_a_run_that_waits_for_another_starts_after_it():
    world = run_world.waiting(targets=2)
    world.limits = {'if_running': run_records.WAIT}
    world.start(OTHER, world.leaders[0])
    world.pass_time(30)
    assert world.states(OTHER) == [None, None]
    assert run_world.RUN in world.run(OTHER).attempts[0].reason
    world.answers = lambda server_id: 0
    world.finish(run_id=OTHER)
    assert world.states(OTHER) == ['complete'] * 2
    assert set(world.ran.values()) == {2}


def test_a_run_that_waits_says_nothing_and_writes_nothing():
    world = run_world.waiting(timeout=7200)
    world.pass_time(60)
    calls = world.calls
    world.pass_time(3600)
    assert world.calls == calls
    assert world.states() == ['waiting'] * 3


def test_a_pause_by_another_engine_is_seen_within_a_second():
    world = run_world.World(targets=4, max_concurrent=run_records.Share(1))
    world.start()
    world.pass_time(2)
    world.ask(deciding.PAUSE)
    given = sum(world.ran.values())
    world.pass_time(60)
    assert sum(world.ran.values()) <= given + 1
    assert world.run().control.phase is run_records.Phase.PAUSED
    world.ask(deciding.RESUME)
    world.finish()
    assert world.states() == ['complete'] * 4


def test_a_cancelled_run_stops_its_servers_and_notes_late_results():
    world = run_world.waiting()
    names = world.names()
    world.store_outage = AWAY
    world.ask(deciding.CANCEL)
    world.pass_time(2)
    assert world.run().control.phase is run_records.Phase.CANCELLED
    assert world.states() == ['cancelled'] * 3
    assert world.stopped == set()
    assert not any(world.metadata.values())
    # They are told as soon as the store is back.
    world.store_outage = None
    world.pass_time(30)
    assert world.stopped == {*names}
    for name in names:
        world.send(name, 1)
    world.pass_time(30)
    assert {each.late.status for each in world.run().attempts} == {'failed'}
    assert world.states() == ['cancelled'] * 3
    assert world.objects == {}


def test_a_result_that_has_come_counts_when_its_time_is_over():
    world = run_world.waiting(timeout=30, unknown_hook='salt')
    names = world.names()
    (leader,) = world.leaders
    world.leaders.clear()
    world.pass_time(5)
    world.send(names[0], 0)
    world.pass_time(40)
    # This one has come after its time.
    world.send(names[1], 0)
    world.leaders.append(leader)
    world.finish()
    assert world.states() == ['complete', 'timed-out', 'timed-out']
    assert world.run().attempts[1].late.status == 'complete'
    reason = world.run().attempts[2].reason
    assert 'no result within 30 s' in reason
    # It may be a hook that the server lacks.
    assert 'salt' in reason


def test_a_result_that_no_listing_shows_counts_when_its_time_is_over():
    world = run_world.waiting(targets=1, timeout=30)
    (name,) = world.names()
    world.send(name, 0)
    world.hidden[name] = float('inf')
    world.pass_time(20)
    assert world.states() == ['waiting']
    world.finish()
    assert world.states() == ['complete']


def test_while_no_object_can_be_read_no_target_is_given_up():
    world = run_world.waiting(targets=2, timeout=30)
    world.store_outage = AWAY
    world.pass_time(10)
    world.send(world.names()[0], 0)
    world.pass_time(60)
    assert world.states() == ['waiting'] * 2
    world.store_outage = None
    world.finish()
    assert world.states() == ['complete', 'timed-out']

    # It is not waited for without an end, and a cancel does not wait.
    world = run_world.waiting(targets=2, timeout=30)
    world.store_outage = AWAY
    world.ask(deciding.CANCEL_RUN, only=world.run().run_id(1))
    world.pass_time(3)
    assert world.states() == ['waiting', 'cancelled']
    world.finish()
    assert world.states() == ['timed-out', 'cancelled']


def test_a_run_that_another_engine_has_ended_keeps_no_others_waiting():
    world = run_world.waiting(targets=1)
    suspended, stacks = world.leaders[0], world.servers.stacks
    world.take_over()
    world.ask(deciding.CANCEL)
    world.pass_time(200)
    world.store.delete(run_world.PROJECT, run_world.RUN)
    world.leaders.append(suspended)
    world.start(OTHER, suspended)
    world.answers = lambda server_id: 0
    world.finish(run_id=OTHER)
    world.pass_time(5)
    assert suspended.turn() is None
    assert all(each.is_idle for each in stacks.values())


def test_a_server_that_does_not_report_its_start_is_given_up():
    world = run_world.waiting(delivery_timeout=20, timeout=300)
    world.reports.add(world.names()[0])
    world.pass_time(30)
    assert world.states() == ['running', 'timed-out', 'timed-out']
    assert 'did not report within 20 s' in world.run().attempts[1].reason


def test_what_heat_refuses_fails_and_what_is_gone_leaves():
    world = run_world.World(max_errors=run_records.Share(3))
    world.refused = {
        0: errors.Refused('it is closed'),
        1: errors.NotFound('it is gone'),
    }
    with counted.Counted() as counts:
        world.start()
        world.finish()
    assert world.states() == ['failed', 'cancelled', 'complete']
    assert world.run().attempts[0].reason == 'it is closed'
    assert world.run().attempts[1].gone
    assert counts.of(metrics.RUNS) == {'failed': 1}
    assert counts.of(metrics.TARGETS) == dict.fromkeys(world.states(), 1)


def test_a_store_that_is_out_of_order_is_waited_for_and_then_given_up():
    for is_back in (True, False):
        world = run_world.World(targets=1)
        world.outage = AWAY
        world.start()
        world.pass_time(60)
        assert world.states() == [None]
        world.outage = None if is_back else AWAY
        world.finish()
        assert world.states() == ['complete' if is_back else 'failed']
    assert world.run().attempts[0].reason == '503 of the store'


def test_a_run_whose_order_cannot_be_read_fails_with_the_reason():
    world = run_world.waiting(targets=2)
    load, why = world.store.load, 'the key has changed'
    world.store.load = lambda *args: dataclasses.replace(
        load(*args), unreadable=why
    )
    world.take_over()
    world.finish()
    assert world.states() == ['failed'] * 2
    assert world.run().attempts[0].reason == why
    assert world.store.given == {}


def test_the_runs_of_a_dead_engine_are_resumed(monkeypatch):
    world = run_world.waiting(targets=2)
    world.leaders.clear()
    other = world.leader('other')
    dead = set()
    monkeypatch.setattr(
        rescue, 'dead_engines', lambda context, engines: dead & engines
    )
    run_scans.take_over(other, world.store)
    world.pass_time(5)
    assert other.turn() is None
    dead.add('engine')
    run_scans.take_over(other, world.store)
    world.answers = lambda server_id: 1
    world.finish()
    assert set(world.ran.values()) == {1}
    # A request that another engine has stored is seen by an idle one.
    world.pass_time(5)
    assert other.turn() is None
    world.ask(deciding.RETRY)
    world.answers = lambda server_id: 0
    run_scans.take_over(other, world.store)
    world.finish()
    assert world.states() == ['complete'] * 2


def test_no_scan_complains_while_there_are_no_tables(monkeypatch):
    pauses = []
    is_ready = mock.Mock(side_effect=[False, OSError(), True])
    monkeypatch.setattr(run_scans.db_api, 'get_engine', lambda: None)
    monkeypatch.setattr(run_scans.run_tables, 'is_ready', is_ready)
    look = run_scans.begin(run_scans.take_over, pauses.append)
    assert pauses == [run_scans.RESCUE] * 2
    look()


def test_runs_share_few_places_and_one_that_waits_has_none():
    world = run_world.World(targets=1)
    world.answers = lambda server_id: None
    places = run_world.Places(1, 1)
    leader = world.leader(places=places)
    ids = [f'20270115T080000Z-{number:08x}' for number in range(9)]
    for each in ids:
        world.start(each, leader, action=f'ACTION-{each}')
    places.take('of another run', run_world.PROJECT)
    leader.turn()
    assert [world.states(each) for each in ids] == [[None]] * 9
    places.leave('of another run')
    leader.turn()
    assert [world.states(each) for each in ids] == [['waiting']] * 9


@pytest.fixture
def installed():
    world = run_world.World(targets=1)
    leading.install(world.leader())
    yield world
    leading.install(None)


def test_an_engine_starts_runs_that_it_leads(installed):
    run = run_records.RunRecord.new(installed.order())
    for _again in range(2):
        made = leading.leader().start(run_world.PROJECT, run)
        assert made.engine_id == 'engine'
    installed.finish()
    assert set(installed.ran.values()) == {1}
    leading.install(None)
    with pytest.raises(errors.Unavailable, match='does not lead runs'):
        leading.leader()


def test_without_tables_no_run_starts_and_the_remedy_is_told(installed):
    missing = mock.Mock(side_effect=errors.ServiceError('run "x"'))
    installed.store.create = missing
    run = run_records.RunRecord.new(installed.order())
    with pytest.raises(errors.Unavailable, match='run "x"'):
        leading.leader().start(run_world.PROJECT, run)


# What a run promises, whatever happens


_EXAMPLES = hypothesis.settings(
    max_examples=examples.number(60), deadline=None, derandomize=True
)

#: What happens to a run, its leaders and their database.
EVENTS = (
    *('aborts', 'silent', 'losing', 'commits shown late', 'store away'),
    *('leader dies', 'leader suspended', 'row deleted', 'stack deleted'),
    *(deciding.PAUSE, deciding.RESUME, deciding.CANCEL, deciding.RETRY),
)


@st.composite
def worlds(draw):
    targets = draw(st.integers(1, 10))
    servers = st.sets(st.integers(0, targets - 1), max_size=4)
    world = run_world.Trouble(
        draw(st.integers(0, 2**16)),
        targets,
        fail=draw(servers),
        silent=draw(st.sets(st.integers(0, targets - 1), max_size=1)),
        max_concurrent=run_records.Share(draw(st.integers(1, 5))),
        max_errors=run_records.Share(draw(st.integers(0, 3))),
        canary=draw(st.integers(0, 2)),
        pause=draw(st.sampled_from([0, 0, 7])),
        timeout=90,
    )
    world.lag = draw(st.sampled_from([0, 5, 200]))
    return world


@_EXAMPLES
@hypothesis.given(
    worlds(),
    st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from(EVENTS)), max_size=12
    ),
)
def test_a_run_keeps_its_limits_whatever_happens(world, events):
    world.start()
    for number, (seconds, event) in enumerate(events):
        pass_time(world, seconds)
        happen(world, event, f'engine-{number}')
    world.store.aborts = world.store.silent = world.store.losing = 0
    world.store.is_late, world.store_outage = False, None
    pass_time(world, 5)
    ask(world, deciding.RESUME)
    for _ in range(200):
        pass_time(world, 10)
        if world.run().ended:
            break
    pass_time(world, 5)
    check(world)


def pass_time(world, seconds):
    for _ in range(seconds):
        try:
            world.pass_time()
        except run_world.Crash:
            follow(world, f'engine-at-{world.now}')


def follow(world, engine_id):
    """Let another engine lead the run; its clock is another."""
    world.crash_at = None
    world.leaders = world.leaders[-1:]
    skew = world.random.choice([0, -30, 30])
    leader = world.leader(engine_id, skew=skew)
    with contextlib.suppress(errors.Unavailable):
        dead = world.store.load(run_world.RUN).engine_id
        leader.wake(*world.store.take_over(dead, engine_id, 100))


def ask(world, what):
    run = world.store.load(run_world.RUN).run
    if not deciding.refusal(run, what):
        with contextlib.suppress(errors.Error, AssertionError):
            world.ask(what)
        for leader in world.leaders:
            leader.wake(run_world.RUN)


def happen(world, event, engine_id):
    store = world.store
    if event in ('aborts', 'silent', 'losing'):
        setattr(store, event, world.random.randint(1, 3))
    elif event == 'commits shown late':
        store.is_late = not store.is_late
    elif event == 'store away':
        world.store_outage = None if world.store_outage else AWAY
    elif event == 'leader dies':
        world.crash_at = world.calls + world.random.randint(1, 8)
    elif event == 'leader suspended':
        follow(world, engine_id)
    elif event == 'row deleted':
        if store.given:
            store.given.popitem()
    elif event == 'stack deleted':
        world.gone = dict.fromkeys(
            range(1, world.targets, 2), 'Stack s1 was deleted'
        )
    else:
        ask(world, event)


def check(world):
    run, limits = world.run(), world.order().limits
    assert run.ended, run.control
    concurrent = limits.concurrent(world.targets)
    assert world.most_at_once <= concurrent
    rounds = run.control.round + 1
    most = limits.max_errors.of(world.targets) + concurrent
    assert world.failures_begun <= rounds * most
    assert set(world.executed.values()) <= {1}
    # Nothing is left.
    assert not run.live
    assert world.store.given == {}
    assert not any(world.metadata.values())
    for n, attempt in enumerate(run.attempts):
        if attempt.state is run_records.State.COMPLETE:
            assert f'server-{n}' not in world.failing
    if not run.control.stopped:
        assert run.pending == []
