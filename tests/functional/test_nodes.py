# SPDX-License-Identifier: Apache-2.0
"""Nodes: a real Ironic, whose machines this test plays."""

import json

import pytest

from tests.functional import baremetal
from tests.functional import base
from tests.functional import conftest
from tests.functional import flows

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        conftest.PROFILE != 'small',
        reason='Ironic is an addition to the profile small',
    ),
]

#: Nodes, of which as many as a tenth are faulty in each way.
MANY = 60
TENTH = MANY // 10


@pytest.fixture(scope='module')
def ironic_cloud(request):
    """A cloud with Ironic, which nobody else uses."""
    installer = base.minicloud_client.Cloud('nodes')
    done = installer.minicloud('install', '--with', 'baremetal', check=False)
    if done.returncode:
        pytest.skip(f'Ironic cannot be installed: {done.stderr}')
    yield from conftest.clouds(
        request, 'nodes', plugin=base.ROOT, extras=['baremetal']
    )


@pytest.fixture
def machines(ironic_cloud):
    found = baremetal.Machines(ironic_cloud.session('admin'))
    yield found
    found.purge()


@pytest.fixture
def commands(ironic_cloud, tmp_path):
    found = baremetal.Commands(ironic_cloud, tmp_path)
    yield found
    # Whatever was printed, and whatever the services have written down.
    for text in (
        found.said,
        ironic_cloud.log('mistral').read_text(),
        ironic_cloud.log('ironic').read_text(),
    ):
        assert baremetal.PASSWORD not in text


def names(numbers):
    return [baremetal.name(number) for number in numbers]


def states(found, numbers):
    """Return how some nodes of a table of inspections stand."""
    return {
        (found[one]['State'], found[one]['Attempts']) for one in names(numbers)
    }


def fault(number):
    """Return what is wrong with an entry, and what is said of that.

    Half of them are faulty, in each way as many; the others are not.
    """
    faults = (
        ({'pm_type': 'pxe_ssh'}, 'Ironic no longer has driver pxe_ssh'),
        ({'pm_type': 'ipmi'}, 'No valid host was found'),
        ({'mac': ['52:54:00']}, "'52:54:00' is not a MAC address"),
        ({'capabilities': 'uefi'}, 'capabilities must be a map, or a text'),
        (
            {'mac': [baremetal.mac(number + MANY // 2)]},
            f'Its MAC address is that of {baremetal.name(number + MANY // 2)}',
        ),
    )
    return faults[number // TENTH] if number < MANY // 2 else ({}, '')


@pytest.mark.timeout(600)
def test_many_nodes_of_which_many_are_faulty(machines, commands):
    # Of two entries for one machine the first counts.
    order = [*range(MANY // 2, MANY), *range(MANY // 2)]
    file = commands.file(
        baremetal.entry(number, **fault(number)[0]) for number in order
    )

    # It is killed in the middle of its work.
    process = commands.begin('register', file, '--no-manage')
    base.until(lambda: len(machines.nodes()) >= TENTH, pause=0.2)
    process.kill()
    process.wait()
    assert len(machines.nodes()) < MANY // 2, (
        'it was over before it was killed'
    )

    code, found = commands.both('register', file)
    assert code == 3
    for number in range(MANY):
        row, said = found[baremetal.name(number)], fault(number)[1]
        assert (row['Action'] == 'failed') == bool(said), row
        assert said in row['Reason']
    assert machines.states() == dict.fromkeys(
        names(range(MANY // 2, MANY)), 'manageable'
    )

    # Mended, all of them are there, each of them once.
    file = commands.file(baremetal.entry(number) for number in range(MANY))
    code, found = commands.both('register', file)
    assert code == 0
    assert machines.ports() == [baremetal.mac(n) for n in range(MANY)]
    assert set(machines.states().values()) == {'manageable'}
    assert len(machines.nodes()) == MANY
    _, found = commands.both('register', file, '--dry-run')
    assert {row['Action'] for row in found.values()} == {'unchanged'}

    # Some in each way in which an inspection can go wrong.
    failing, once, stopped, silent = (
        range(first, first + TENTH) for first in range(0, 4 * TENTH, TENTH)
    )
    good = range(4 * TENTH, MANY)
    machines.errors = {
        **dict.fromkeys(names(failing), 2),
        **dict.fromkeys(names(once), 1),
    }
    machines.stopped = set(names(stopped))
    machines.silent = set(names(silent))
    others = [one for one in names(range(MANY)) if one not in machines.silent]
    with machines.booting():
        code, found = commands.both(
            'introspect',
            *others,
            '--attempts',
            '2',
            '--timeout',
            '240',
            '--concurrency',
            '12',
        )
    assert code == 3
    assert 0 < machines.most <= 12
    assert states(found, good) == {('done', 1)}
    assert states(found, once) == {('done', 2)}
    assert states(found, failing) == {('failed', 2)}
    assert states(found, stopped) == {('aborted', 1)}
    assert 'disk on fire' in found[baremetal.name(0)]['Reason']
    assert found[baremetal.name(MANY - 1)]['CPUs'] == 8
    code, found = commands.both(
        'introspect', *names(silent), '--timeout', '10'
    )
    assert code == 3
    assert states(found, silent) == {('timed-out', 1)}
    now = machines.states()
    assert {now[one] for one in names(good)} == {'manageable'}
    assert 'manageable' not in {now[one] for one in names(silent)}


@pytest.mark.timeout(300)
def test_workflows_do_the_same(ironic_cloud, machines, commands):
    entries = [baremetal.entry(number) for number in range(3)]
    # There is nobody at this address, so it never becomes manageable.
    dead = baremetal.entry(
        3, pm_type='redfish', pm_addr='https://127.0.0.1:9', pm_system_id='/1'
    )
    body = json.dumps([*entries, dead]).encode()
    session = ironic_cloud.session('admin')
    place = {'container': 'heat-plugins-uploads-test', 'object': 'nodes.json'}
    path = '/{container}'.format(**place)
    assert session.put('object-store', path).ok
    path = '/{container}/{object}'.format(**place)
    assert session.put('object-store', path, body).ok

    mistral = flows.Executions(session)
    ended = mistral.run(
        'nodes.register', nodes={**place, 'bytes': len(body)}, timeout=20
    )
    assert ended['state'] == 'ERROR', ended
    output = ended['output']
    assert {one['action'] for one in output['nodes']} == {'created'}
    reasons = {one['name']: one['reason'] for one in output['moved']}
    assert reasons.pop('node003')
    assert set(reasons.values()) == {''}
    # The passwords have gone from the object store.
    assert session.get('object-store', path).status == 404

    names = ['node000', 'node001', 'node002']
    machines.errors = {'node001': 1}
    with machines.booting():
        ended = mistral.run('nodes.introspect', nodes=names, provide=True)
    assert ended['state'] == 'SUCCESS', ended
    output = ended['output']
    assert {one['cpus'] for one in output['found']} == {8}
    attempts = {one['name']: one['attempts'] for one in output['nodes']}
    assert attempts == {'node000': 1, 'node001': 2, 'node002': 1}
    states = machines.states()
    assert {states[one] for one in names} == {'available'}
    # Executions and all that they were given are seen by the whole project.
    answer = session.get('workflowv2', '/executions?include_output=true')
    assert b'nodes.register' in answer.body
    assert baremetal.PASSWORD.encode() not in answer.body


@pytest.mark.timeout(300)
def test_a_move_outlives_a_mistral_that_is_killed(
    ironic_cloud, machines, commands
):
    file = commands.file(map(baremetal.entry, range(3)))
    commands('register', file, '--no-manage')
    assert set(machines.states().values()) == {'enroll'}
    mistral = flows.Executions(ironic_cloud.session('admin'))
    namespace = mistral.hasten('nodes.move', 'heat_plugins.job', seconds=15)
    with ironic_cloud.frozen('ironic'):
        execution_id = mistral.start('nodes.move', namespace, verb='manage')
        mistral.acts('nodes.work')
        ironic_cloud.crash('mistral')
        ironic_cloud.start('mistral')
    ended = mistral.end(execution_id)
    assert ended['state'] == 'SUCCESS', ended
    assert len(ended['output']['done']) == 3
    assert set(machines.states().values()) == {'manageable'}
