# SPDX-License-Identifier: Apache-2.0
"""Nodes: a real Ironic, whose machines this test plays."""

from concurrent import futures
import contextlib
import json
import threading

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import flows
from tests.functional import planning

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        conftest.PROFILE != 'small',
        reason='Ironic is an addition to the profile small',
    ),
]

PASSWORD = 'hunter22-of-a-bmc'

#: Nodes, of which as many as a tenth are faulty in each way.
MANY = 40
TENTH = MANY // 10


def names(numbers):
    return [f'node{number:03}' for number in numbers]


def mac(number):
    return f'52:54:00:00:00:{number:02x}'


def entry(number, **more):
    """Return an entry of a file, as instackenv.json has them."""
    return {
        'name': f'node{number:03}',
        'pm_type': 'fake-hardware',
        'pm_addr': f'192.0.2.{number}',
        'pm_user': 'root',
        'pm_password': PASSWORD,
        'mac': [mac(number).upper()],
        'cpu': '4',
        'memory': '8192',
        'disk': '40',
        'arch': 'x86_64',
        'capabilities': 'boot_mode:uefi',
        **more,
    }


class Commands(planning.Plan):
    """``openstack deployment plan node …``, as the administrator."""

    def __init__(self, cloud, folder):
        super().__init__(cloud, folder, 'nodes')
        self._env = cloud.env('admin')

    def file(self, entries):
        """Write a file of nodes; return its path."""
        self.write({'instackenv.json': json.dumps({'nodes': [*entries]})})
        return str(self.folder / 'instackenv.json')

    def both(self, command, *arguments):
        """Run one; return its exit code and what it printed."""
        code, output, errors = self.run(command, *arguments)
        assert output, errors
        return code, {one['Name']: one for one in json.loads(output)}

    def _arguments(self, command, arguments):
        return ['deployment', 'plan', 'node', command, *arguments, '-fjson']


class Machines:
    """The machines of an Ironic, which do as they are told.

    :ivar errors: by the name of a machine, how often its ramdisk fails.
    :ivar silent: machines whose ramdisk never says anything.
    :ivar stopped: machines whose inspection is stopped.
    :ivar most: how many were inspected at a time.
    """

    def __init__(self, session):
        self._session = session
        self.errors = {}
        self.silent = ()
        self.stopped = ()
        self.most = 0
        self._booted = set()

    def ask(self, method, path, body=None):
        # The first that takes what a ramdisk sends in full.
        headers = {'X-OpenStack-Ironic-API-Version': '1.84'}
        return self._session.request(
            method, 'baremetal', f'/v1/{path}', body, headers=headers
        )

    def nodes(self):
        """Return what Ironic says of all nodes, by their names."""
        fields = 'name,provision_state,inspection_started_at'
        answer = self.ask('GET', f'nodes?fields={fields}')
        return {one['name']: one for one in answer.json()['nodes']}

    def states(self):
        return {n: one['provision_state'] for n, one in self.nodes().items()}

    @contextlib.contextmanager
    def booting(self):
        """Let the ramdisks of nodes that are inspected boot, and report."""
        ended = threading.Event()

        def play():
            # To list a hundred nodes is work for Ironic.
            while not ended.wait(1):
                # Ironic may be too busy to answer in time.
                with contextlib.suppress(OSError):
                    self._play()

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def purge(self):
        """Delete all nodes, whatever they do."""

        def delete(name):
            self._move(name, 'abort')
            if not self.ask('DELETE', f'nodes/{name}').ok:
                self._move(name, 'manage')

        def gone():
            with futures.ThreadPoolExecutor(4) as executor:
                list(executor.map(delete, self.nodes()))
            return not self.nodes()

        base.until(gone, 100)

    def _play(self):
        inspected = {
            name: one
            for name, one in self.nodes().items()
            if one['provision_state'] in ('inspecting', 'inspect wait')
        }
        self.most = max(self.most, len(inspected))
        # Each boots once for each inspection.
        booting = {
            (name, one['inspection_started_at'])
            for name, one in inspected.items()
            if one['provision_state'] == 'inspect wait'
            and name not in self.silent
        }
        with futures.ThreadPoolExecutor(4) as executor:
            list(executor.map(self._boot, booting - self._booted))

    def _boot(self, booting):
        name, _ = booting
        body = {
            'inventory': {
                'interfaces': [
                    {'name': 'eth0', 'mac_address': mac(int(name[4:]))}
                ],
                'cpu': {'count': 8, 'architecture': 'x86_64'},
                'memory': {'physical_mb': 16384},
                'disks': [{'name': '/dev/sda', 'size': 100 << 30}],
                'boot': {'current_boot_mode': 'uefi'},
                'system_vendor': {'product_name': 'Make-believe'},
            }
        }
        fails = bool(self.errors.get(name))
        if fails:
            body['error'] = 'disk on fire'
        if name in self.stopped:
            done = self._move(name, 'abort')
        else:
            done = self.ask('POST', 'continue_inspection', body).ok
        # Else Ironic had it locked, or was too busy.
        if done:
            self._booted.add(booting)
            self.errors[name] = self.errors.get(name, 0) - fails

    def _move(self, name, verb):
        path = f'nodes/{name}/states/provision'
        return self.ask('PUT', path, {'target': verb}).ok


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
    found = Machines(ironic_cloud.session('admin'))
    yield found
    found.purge()


@pytest.fixture
def commands(ironic_cloud, tmp_path):
    found = Commands(ironic_cloud, tmp_path)
    yield found
    # Whatever was printed, and whatever the services have written down.
    logs = (ironic_cloud.log(n).read_text() for n in ('mistral', 'ironic'))
    for text in (found.said, *logs):
        assert PASSWORD not in text


def fault(number):
    """Return what is wrong with an entry, and what is said of that.

    Half of them are faulty, in each way as many; the others are not.
    """
    other = number + MANY // 2
    faults = (
        ({'pm_type': 'pxe_ssh'}, 'Ironic no longer has driver pxe_ssh'),
        ({'pm_type': 'ipmi'}, 'No valid host was found'),
        ({'mac': ['52:54:00']}, "'52:54:00' is not a MAC address"),
        ({'mac': [mac(other)]}, f'Its MAC address is that of node{other:03}'),
    )
    return faults[number % 4] if number < MANY // 2 else ({}, '')


def test_many_nodes_of_which_many_are_faulty(machines, commands):
    # Of two entries for one machine the first counts.
    order = [*range(MANY // 2, MANY), *range(MANY // 2)]
    file = commands.file(entry(number, **fault(number)[0]) for number in order)

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
    for number, name in enumerate(names(range(MANY))):
        row, said = found[name], fault(number)[1]
        assert (row['Action'] == 'failed') == bool(said), row
        assert said in row['Reason']
    good = names(range(MANY // 2, MANY))
    assert machines.states() == dict.fromkeys(good, 'manageable')

    # Mended, all of them are there, each of them once.
    file = commands.file(map(entry, range(MANY)))
    code, found = commands.both('register', file)
    assert code == 0
    ports = machines.ask('GET', 'ports').json()['ports']
    assert sorted(p['address'] for p in ports) == [*map(mac, range(MANY))]
    every = names(range(MANY))
    assert machines.states() == dict.fromkeys(every, 'manageable')
    _, found = commands.both('register', file, '--dry-run')
    assert {row['Action'] for row in found.values()} == {'unchanged'}

    # Some in each way in which an inspection can go wrong.
    failing, once, stopped, silent = (
        names(range(first, first + TENTH))
        for first in range(0, 4 * TENTH, TENTH)
    )
    good = names(range(4 * TENTH, MANY))
    machines.errors = {**dict.fromkeys(failing, 2), **dict.fromkeys(once, 1)}
    machines.stopped, machines.silent = stopped, silent
    options = '--attempts=2', '--timeout=240', '--concurrency=8'
    with machines.booting():
        code, found = commands.both(
            'introspect', *sorted({*every} - {*silent}), *options
        )
    assert code == 3
    assert 0 < machines.most <= 8
    for group, ending in (
        (good, ('done', 1)),
        (once, ('done', 2)),
        (failing, ('failed', 2)),
        (stopped, ('aborted', 1)),
    ):
        for name in group:
            assert (found[name]['State'], found[name]['Attempts']) == ending
    assert 'disk on fire' in found[failing[0]]['Reason']
    assert found[good[0]]['CPUs'] == 8
    code, found = commands.both('introspect', *silent, '--timeout=10')
    assert code == 3
    assert {found[name]['State'] for name in silent} == {'timed-out'}
    now = machines.states()
    assert {now[name] for name in good} == {'manageable'}
    assert 'manageable' not in {now[name] for name in silent}


def test_workflows_do_the_same(ironic_cloud, machines, commands):
    # There is nobody at this address, so it never becomes manageable.
    dead = entry(
        3, pm_type='redfish', pm_addr='https://127.0.0.1:9', pm_system_id='/1'
    )
    body = json.dumps([*map(entry, range(3)), dead]).encode()
    session = ironic_cloud.session('admin')
    place = {'container': 'heat-plugins-uploads-test', 'object': 'nodes.json'}
    path = '/heat-plugins-uploads-test'
    assert session.put('object-store', path).ok
    assert session.put('object-store', f'{path}/nodes.json', body).ok

    mistral = flows.Mistral(session)
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
    answer = session.get('object-store', f'{path}/nodes.json')
    assert answer.status == 404

    machines.errors = {'node001': 1}
    with machines.booting():
        ended = mistral.run(
            'nodes.introspect', nodes=names(range(3)), provide=True
        )
    assert ended['state'] == 'SUCCESS', ended
    output = ended['output']
    assert {one['cpus'] for one in output['found']} == {8}
    attempts = {one['name']: one['attempts'] for one in output['nodes']}
    assert attempts == {'node000': 1, 'node001': 2, 'node002': 1}
    states = machines.states()
    assert {states[name] for name in attempts} == {'available'}
    # Executions and all that they were given are seen by the whole project.
    seen = planning.shown_by_mistral(session)
    assert 'nodes.register' in seen
    assert PASSWORD not in seen
