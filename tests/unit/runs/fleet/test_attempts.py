# SPDX-License-Identifier: Apache-2.0
"""Every attempt is kept, and so is who asked for what."""

import dataclasses
import json

import pytest

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import layout
from tests.unit.runs.fleet import simulation


@pytest.fixture
def world():
    return simulation.World(4, stacks=1, fail=[2], silent=[3])


def ended(world, **more):
    """Return an operation that failed on one target and timed out on one."""
    order = world.order(max_errors=operations.Share(4), timeout=30, **more)
    return simulation.run(world, [world.begin(order)])


def retried(world, found, only=None):
    door = fleets.Fleets(world.heat, world.tools())
    advancer = door.request(found.id, 'retry', only)
    return simulation.run(world, [advancer])


def states(found):
    return [one.state and one.state.value for one in found.attempts]


def test_a_retry_keeps_the_failure(world):
    found = ended(world)
    assert states(found) == ['complete', 'complete', 'failed', 'timed-out']
    world.fail, world.silent = set(), set()
    found = retried(world, found)
    assert states(found) == ['complete'] * 4
    shown = overview.target(found, 2)
    assert [(one['attempt'], one['state']) for one in shown['attempts']] == [
        (1, 'failed'),
        (2, 'complete'),
    ]
    assert len(overview.target(found, 0)['attempts']) == 1


def test_each_attempt_is_a_run_of_its_own_id(world):
    found = ended(world)
    world.fail = set()
    found = retried(world, found)
    service = world.service()
    first = service.show('s0', f'{found.id}.2.1')
    assert first.state.value == 'failed'
    assert first.outputs['deploy_stdout'] == 'n2'
    assert service.show('s0', f'{found.id}.2.2').state.value == 'complete'
    with pytest.raises(errors.NotFound):
        service.show('s0', f'{found.id}.2.3')
    listed = service.history('s0', run_service.Filter())
    assert {one.id for one in listed} >= {first.id, f'{found.id}.2.2'}
    failed = service.history('s0', run_service.Filter(failed=True))
    assert first.id in {one.id for one in failed}


def test_long_outputs_of_each_attempt_can_be_read(world):
    world.stdout = 'x' * 10_000
    found = ended(world)
    world.fail, world.stdout = set(), 'y' * 10_000
    found = retried(world, found)
    service = world.service()
    for number, letter in (1, 'x'), (2, 'y'):
        run = service.show('s0', f'{found.id}.2.{number}')
        assert set(service.outputs(run)['deploy_stdout']) == {letter}


def test_long_outputs_of_former_attempts_are_cut(world):
    found = ended(world)
    outputs = {f'o{n}': 'x' * 4096 for n in range(6)}
    found = found.attempted({2: {'outputs': outputs, 'cut': {'o0': 5000}}})
    for _ in range(6):
        found = deciding.retry(found, world.now, 'ann').attempted(
            {2: {'state': runs.State.FAILED, 'outputs': outputs}}
        )
    former = found.attempts[2].every[-2]
    assert former.outputs.keys() == {'o0', 'o1', 'o2'}
    assert former.cut.keys() == {'o3', 'o4', 'o5'}
    assert former.cut['o5'] == 4096
    assert len(json.dumps(found.attempts[2].former)) < 6 * 16 * 1024


def test_it_is_kept_who_cancelled_an_attempt(world):
    found = ended(world)
    found = found.attempted({3: {'state': runs.State.CANCELLED}})
    found = found.changed(stopped_by='bob')
    found = deciding.retry(found, world.now, 'ann')
    found = found.attempted({3: {'state': runs.State.COMPLETE}})
    attempts = overview.every_run(found)[-2:]
    assert [one.cancelled_by for one in attempts] == ['bob', None]


def test_the_last_attempts_are_kept(world):
    found = ended(world)
    for _ in range(8):
        found = retried(world, found, 'failed')
    numbers = [one.number for one in found.attempts[2].every]
    assert numbers == [4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ('only', 'again'),
    [
        ('failed', [2]),
        ('timed-out', [3]),
        ('db2', [2]),
        ('server3', [3]),
        ('s0 db3', [3]),
        (None, [2, 3]),
    ],
)
def test_a_retry_runs_again_what_is_named(world, only, again):
    found = retried(world, ended(world), only)
    numbers = [one.number for one in found.attempts]
    assert numbers == [2 if n in again else 1 for n in range(4)]


def test_a_retry_of_what_has_not_started(world):
    order = world.order(
        max_concurrent=operations.Share(1), canary=3, timeout=30
    )
    found = simulation.run(world, [world.begin(order)])
    assert states(found)[2:] == ['failed', None]
    found = retried(world, found, 'not-started')
    assert [one.number for one in found.attempts] == [1, 1, 1, 1]


def test_a_retry_of_some_starts_nothing_else(world):
    order = world.order(max_concurrent=operations.Share(1), timeout=30)
    world.fail = {1}
    found = simulation.run(world, [world.begin(order)])
    assert states(found) == ['complete', 'failed', None, None]
    world.fail, world.silent = set(), set()
    found = retried(world, found, 'failed')
    assert states(found) == ['complete', 'complete', None, None]
    assert found.control.phase.value == 'failed'
    assert found.control.reason == '2 not started'
    assert overview.counts(found) == {'complete': 2, 'not-started': 2}
    found = retried(world, found)
    assert [one.number for one in found.attempts] == [1, 2, 1, 1]
    assert found.control.reason == 'All 4 succeeded'


def test_what_a_retry_leaves_alone_is_not_pending(world):
    order = world.order(max_concurrent=operations.Share(1), timeout=30)
    world.fail = {1}
    found = simulation.run(world, [world.begin(order)])
    found = deciding.retry(found, world.now, 'ann', 'db1')
    assert found.pending == [1]
    assert overview.counts(found) == {
        'complete': 1,
        'pending': 1,
        'not-started': 2,
    }


@pytest.mark.parametrize('only', ['complete', 'db0', 'no-such', ''])
def test_a_retry_of_nothing_is_refused(world, only):
    with pytest.raises(errors.Refused):
        retried(world, ended(world), only)


def test_it_is_known_who_has_asked_for_what(world):
    order = world.order(canary=1, approve_after_canary=True)
    advancer = world.begin(order)
    door = fleets.Fleets(world.heat, world.tools('bob'))
    while advancer.operation.control.phase.value != 'waiting-for-approval':
        advancer.step()
        world.sleep(1)
    advancer.release()
    door.request(order.id, 'resume').release()
    found = door.request(order.id, 'cancel').operation
    shown = overview.of(found, world.now)['requests']
    assert [(one['do'], one['who']) for one in shown] == [
        ('resume', 'bob'),
        ('cancel', 'bob'),
    ]
    assert shown[0]['at'].startswith('2027-')


def test_the_script_is_shown_without_its_secrets(world):
    order = dataclasses.replace(
        world.order(),
        config={
            **{'id': '', 'name': None, 'group': 'script', 'options': {}},
            **{'inputs': [], 'outputs': []},
            'config': '#!/bin/sh\n\nmysql --password open-sesame x\nexit 1\n',
        },
        inputs={'password': 'open-sesame', 'level': '1'},
    )
    found = world.begin(order).operation
    shown = overview.of(found, world.now)
    lines = shown['script'].splitlines()
    assert lines[2] == f'mysql --password {masking.MASK} x'
    assert lines[3] == 'exit 1'
    assert overview.head(found).script.startswith('mysql --password')
    assert 'open-sesame' not in overview.head(found).script
    # Colleagues who may only read do not see what was run.
    assert 'mysql' not in str(fleets.results(found, world.now))


def test_an_action_of_the_stacks_has_no_script(world):
    found = world.begin(world.order()).operation
    assert overview.of(found, world.now)['script'] == ''


@pytest.mark.parametrize(
    'forged', [{'former': [{'number': 'x'}]}, {'former': [[]]}]
)
def test_former_attempts_that_cannot_be_read_are_told(world, forged):
    order = world.order()
    advancer = world.begin(order)
    book, seal = world.tools().records, world.seals[order.id]
    name = layout.shard(order.id, 1, 0)
    book._write(seal, name, [forged, {}, {}, {}])
    with pytest.raises(errors.Unreadable):
        book.show(seal)
    del advancer


def test_the_last_attempt_is_what_trigger_shows(world):
    found = ended(world)
    world.fail = set()
    found = retried(world, found, 'failed')
    assert len(overview.runs_of(found)) == 4
    assert len(overview.every_run(found)) == 5


def test_the_request_of_another_user_deletes_no_run_of_this_one(world):
    operation = ended(world)
    run_id = f'{operation.id}.0.1'
    leader = world.advancer(operation.order, 'bob')
    leader._is_asked = lambda: True
    assert leader.lead()
    sleep = world.sleep

    def slept(seconds):
        sleep(seconds)
        # The leader follows what others ask for, and never this.
        name = layout.new_request(operation.id, world.now)
        leader._op = fleet_requests.remember(leader._op, name)
        leader._lease.check()
        leader._journal.record(leader._op)

    world.sleep = slept
    service = world.service()
    with pytest.raises(errors.Unavailable, match='Delete the run again'):
        service.delete('s0', run_id)
    assert service.show('s0', run_id).ended


def test_a_request_is_awaited_until_it_is_followed(world):
    operation = ended(world)
    leader = world.advancer(operation.order, 'bob')
    leader._is_asked = lambda: True
    assert leader.lead()
    sleep, slept = world.sleep, []

    def wait(seconds):
        sleep(seconds)
        slept.append(seconds)
        name = layout.new_request(operation.id, world.now - 100)
        leader._op = fleet_requests.remember(leader._op, name)
        leader._journal.record(leader._op)
        if len(slept) == 4:
            leader.step()

    world.sleep = wait
    run_id = f'{operation.id}.0.1'
    assert world.service().delete('s0', run_id).id == run_id
    with pytest.raises(errors.NotFound):
        world.service().show('s0', run_id)
