# SPDX-License-Identifier: Apache-2.0
"""One action on many servers over stacks, with real agents.

The process that advances an operation is killed in its middle: the command or
Mistral, which started it, and the engine that took it over.
``FUNCTIONAL_FLEET`` says how many agents there are.
"""

import collections
from collections.abc import Iterator
from concurrent import futures
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
from typing import Any

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import executions

Template = base.Template

STACKS = ('blue', 'green')
TARGETS = int(os.environ.get('FUNCTIONAL_FLEET', '10'))
#: In each stack.
SERVERS = TARGETS // len(STACKS)
#: At a time.
MOST = max(3, TARGETS // 5)
#: Seconds in which the servers have done a part of their work.
PATIENCE = 150 + 8 * TARGETS

_BACKUP = """\
#!/bin/sh -e
echo "$deploy_resource_name" >> "$journal"
sleep 2
[ "$deploy_resource_name" != "$broken" ]
echo "backed up $deploy_resource_name"
"""

#: It ends when a test says so.
_GATED = """\
#!/bin/sh -e
echo "$deploy_resource_name" >> "$journal"
until [ -e "$gate" ]; do sleep 0.2; done
"""


def template() -> Template:
    """Return some servers, each with a deployment of one component."""
    found: Template = {
        'heat_template_version': '2021-04-16',
        'resources': {
            'config': {
                'type': 'OS::Heat::SoftwareComponent',
                'properties': {
                    'inputs': [
                        {'name': 'journal', 'default': '/dev/null'},
                        {'name': 'broken', 'default': 'none'},
                    ],
                    'configs': [
                        {
                            'actions': ['CREATE'],
                            'tool': 'script',
                            'config': '#!/bin/sh\n',
                        },
                        {
                            'actions': ['BACKUP'],
                            'tool': 'script',
                            'config': _BACKUP,
                        },
                    ],
                },
            }
        },
    }
    for n in range(SERVERS):
        found['resources'][f'server{n}'] = {
            'type': 'OS::Heat::DeployedServer',
            'properties': {},
        }
        found['resources'][f'db{n}'] = {
            'type': 'OS::Heat::SoftwareDeployment',
            'properties': {
                'server': {'get_resource': f'server{n}'},
                'config': {'get_resource': 'config'},
                'signal_transport': 'NO_SIGNAL',
            },
        }
    return found


class Operations:
    """``openstack software deployment operation …``."""

    def __init__(self, cloud: base.minicloud_client.Cloud) -> None:
        self._env = cloud.env('demo')

    def begin(self, *arguments: str) -> Any:
        command = ('openstack', 'software', 'deployment', 'operation')
        return subprocess.Popen(
            [*command, *arguments, '-f', 'json'],
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str) -> tuple[int, Any]:
        process = self.begin(*arguments)
        output, said = process.communicate(timeout=200)
        shown = json.loads(output) if output.strip() else said
        return process.returncode, shown


@contextlib.contextmanager
def _switched_on(
    cloud: base.minicloud_client.Cloud, stacks: list[base.Stack]
) -> Iterator[None]:
    """Switch the servers of stacks on, several at a time."""
    agents = [
        cloud.agent(
            f'{stack.name}-server{n}',
            stack=stack.name,
            resource=f'server{n}',
            # What polls for its work is most of what the cloud does. It polls
            # each second again when it is given some.
            interval=max(5.0, TARGETS / 10),
        )
        for stack in stacks
        for n in range(SERVERS)
    ]
    with futures.ThreadPoolExecutor(4) as executor:
        try:
            list(executor.map(lambda agent: agent.start(), agents))
            yield
        finally:
            list(executor.map(lambda agent: agent.stop(), agents))


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.long
@pytest.mark.timeout(300 + 60 * TARGETS)
def test_an_operation_survives_who_advances_it(
    alone: base.minicloud_client.Cloud, tmp_path: pathlib.Path
) -> None:
    stacks = [
        base.Stack(alone.session(), template(), name=name) for name in STACKS
    ]
    for stack in stacks:
        stack.wait('CREATE_COMPLETE', PATIENCE)
    with _switched_on(alone, stacks):
        for begin in _by_command, _by_mistral:
            journal = tmp_path / begin.__name__
            journal.touch()
            found = begin(alone, journal)
            runs = collections.Counter(journal.read_text().split())
            # Both stacks call theirs so; each has run once.
            assert runs == {f'db{n}': len(STACKS) for n in range(SERVERS)}
            _check_records(alone, found)
        _attack(alone, tmp_path)
        for stack in stacks:
            for n in range(SERVERS):
                names = [one['name'] for one in stack.metadata(f'server{n}')]
                # Nothing is left of the runs.
                assert not [name for name in names if 'BACKUP' in name]


@pytest.mark.long
def test_one_run_of_an_action_goes_on_whoever_starts_it(
    cloud: base.minicloud_client.Cloud, stacks: Any, tmp_path: pathlib.Path
) -> None:
    gate, journal = tmp_path / 'gate', tmp_path / 'journal'
    source = template()
    config = source['resources']['config']['properties']
    config['inputs'].append({'name': 'gate', 'default': str(gate)})
    config['configs'][1]['config'] = _GATED
    stack = stacks(source)
    stack.wait('CREATE_COMPLETE', PATIENCE)
    operation = Operations(cloud)
    order = ('run', 'BACKUP', '--stack', stack.name, '--resource', 'db[01]')
    inputs = ('--input', f'journal={journal}')
    with contextlib.ExitStack() as agents:
        for n in range(2):
            agents.enter_context(
                cloud.agent(
                    f'{stack.name}-server{n}',
                    stack=stack.name,
                    resource=f'server{n}',
                )
            )
        single = _trigger(cloud, stack.name, 'db0', *inputs)
        assert single.returncode == 0, single.stderr
        run = json.loads(single.stdout)[0]['id']
        base.until(journal.exists, PATIENCE)
        # Another command, and a signal, meet it and the operation of others.
        first = operation.begin(*order, *inputs, '--wait')
        begun = _begun(first.stderr.readline())
        base.until(lambda: len(journal.read_text().split()) == 2, PATIENCE)
        refused = _trigger(cloud, stack.name, 'db1', *inputs)
        assert refused.returncode == 1
        assert f'{begun}.1.1' in refused.stderr
        code, second = operation(*order, *inputs, '--wait')
        _, met = operation('show', second['id'], '--targets')
        assert [one['state'] for one in met] == ['skipped', 'skipped']
        assert met[0]['reason'] == f'BACKUP already runs: {run}'
        assert met[1]['reason'] == f'BACKUP already runs: {begun}.1.1'
        # Nothing ran.
        assert (code, second['state']) == (3, 'failed')
        third = operation.begin(
            *order, *inputs, '--if-running', 'wait', '--wait'
        )
        waiting = _begun(third.stderr.readline())
        base.until(
            lambda: all(
                'already runs' in one['reason']
                for one in operation('show', waiting, '--targets')[1]
            ),
            PATIENCE,
        )
        assert len(journal.read_text().split()) == 2
        gate.touch()
        for process in first, third:
            process.communicate(timeout=PATIENCE)
            assert process.returncode == 0
        _, ended = operation('show', begun, '--targets')
        assert [one['state'] for one in ended] == ['skipped', 'complete']
        _, ended = operation('show', waiting, '--targets')
        assert [one['state'] for one in ended] == ['complete', 'complete']
        runs = collections.Counter(journal.read_text().split())
        assert runs == {'db0': 2, 'db1': 2}
    for each in begun, second['id'], waiting:
        code, said = operation('delete', each)
        assert code == 0, said


def _trigger(
    cloud: base.minicloud_client.Cloud, *arguments: str
) -> subprocess.CompletedProcess[str]:
    stack, resource, *options = arguments
    return subprocess.run(
        [
            *('openstack', 'software', 'deployment', 'trigger'),
            *(stack, resource, 'BACKUP', *options, '-f', 'json'),
        ],
        env=cloud.env('demo'),
        capture_output=True,
        text=True,
        check=False,
    )


def _attack(cloud: base.minicloud_client.Cloud, folder: pathlib.Path) -> None:
    """Hold that write access to the container gives no rights in Heat."""
    journal, pwned = folder / 'approved', folder / 'pwned'
    journal.touch()
    operation = Operations(cloud)
    _, found = operation(
        *('run', 'BACKUP', '--stack', 'blue', '--yes', '--canary', '1'),
        *('--approve-after-canary', '--input', f'journal={journal}'),
    )
    begun = found['id']
    _until_state(operation, begun, 'waiting-for-approval')
    cloud.kill('heat')
    demo, other = cloud.session(), cloud.session('other')
    container = f'/heat-plugins-operations-{demo.project_id}'
    write = {'X-Container-Write': f'{other.project_id}:*'}
    assert demo.post('object-store', container, headers=write).ok
    account = f'{demo.endpoint("object-store")}{container}/operations'
    order = demo.get(
        'object-store', f'{container}/operations/orders/{begun}'
    ).body
    forged = json.loads(order)
    forged['config'] = _script(f'#!/bin/sh\necho "$(id -u)" >> {pwned}\n')

    def put(name: str, body: Any) -> None:
        answer = base.rest.send(
            'PUT', f'{account}/{name}', token=other.token, body=body
        )
        assert answer.status == 201, answer

    put(f'orders/{begun}', forged)
    put(
        f'arrivals/{begun}/requests/{time.time():017.6f}-0badcafe',
        {'do': 'resume', 'who': 'demo'},
    )
    # Nor does the operation rest until the dead engine's lease expires.
    leads = demo.get(
        'object-store', f'{container}?prefix=operations/leads/{begun}/'
    )
    last = leads.body.decode().split()[-1]
    put(last.removeprefix('operations/'), {})
    cloud.start('heat')
    name = f'Object operations/orders/{begun}'
    heat = demo.endpoint('orchestration')
    for path in 'stacks', 'software_configs', 'software_deployments':
        answer = base.rest.send('GET', f'{heat}/{path}', token=other.token)
        assert answer.status == 403, answer
    base.until(lambda: _warnings(cloud, name), 90)
    # Several scans later.
    time.sleep(10)
    assert len(_warnings(cloud, name)) == 1
    for command in 'show', 'resume':
        code, said = operation(command, begun)
        assert code == 1
        assert f'{name} of operation {begun}' in said
        assert 'Check the access control list' in said
    # With the true order the operation goes on, but for its own users alone.
    put(f'orders/{begun}', order)
    assert operation('show', begun)[1]['state'] == 'waiting-for-approval'
    assert len(journal.read_text().split()) == 1
    code, said = operation('resume', begun)
    assert code == 0, said
    assert operation('wait', begun)[1]['state'] == 'complete'
    assert len(journal.read_text().split()) == SERVERS
    assert not pwned.exists()


def _warnings(cloud: base.minicloud_client.Cloud, text: str) -> list[str]:
    lines = cloud.log('heat').read_text().splitlines()
    return [one for one in lines if text in one and ' WARNING ' in one]


def _script(text: str) -> dict[str, Any]:
    """Return a config of a user's own, as an order has it."""
    return {
        **{'id': 'x', 'name': 'x', 'group': 'script', 'config': text},
        **{'inputs': [], 'outputs': [], 'options': {}},
    }


def _until_state(operation: Operations, begun: str, state: str) -> None:
    base.until(
        lambda: operation('show', begun)[1]['state'] == state,
        PATIENCE,
        pause=3,
    )


def _check_records(cloud: base.minicloud_client.Cloud, found: Any) -> None:
    """Hold that an operation has kept its promises, by its records."""
    operation = Operations(cloud)
    _, shown = operation('show', found['id'], '--targets')
    assert len(shown) == TARGETS
    assert {one['attempt'] for one in shown} == {1}
    assert _most_at_once(shown) <= MOST
    failed = [one for one in shown if one['state'] != 'complete']
    # Those that were told to, and no other.
    told = {'db1': len(STACKS)} if found['state'] == 'failed' else {}
    assert found['state'] == ('failed' if told else 'complete'), found
    assert collections.Counter(one['resource'] for one in failed) == told
    _, outputs = operation('output', found['id'])
    assert {
        one['resource']: one['outputs']['deploy_stdout']
        for one in outputs
        if one not in failed
    } == {
        f'db{n}': f'backed up db{n}\n'
        for n in range(SERVERS)
        if f'db{n}' not in told
    }


def _by_command(
    alone: base.minicloud_client.Cloud, journal: pathlib.Path
) -> Any:
    """Start an operation by a command; see it to its end without that."""
    command = Operations(alone).begin(
        *('run', 'BACKUP', '--stack', 'blue', '--stack', 'green', '--yes'),
        *('--max-concurrent', str(MOST), '--wait'),
        *('--input', f'journal={journal}'),
    )
    begun = _begun(command.stderr.readline())
    _wait_for(journal, 0.2)
    command.send_signal(signal.SIGKILL)
    command.communicate()
    # Only an engine advances it now, which dies, too.
    _wait_for(journal, 0.5)
    alone.kill('heat')
    alone.start('heat')
    return _end(alone, begun)


def _by_mistral(
    alone: base.minicloud_client.Cloud, journal: pathlib.Path
) -> Any:
    """Start one with failures by a workflow; an engine ends it."""
    before = {one['id'] for one in Operations(alone)('list')[1]}
    executions.Mistral(alone.session()).start(
        'software_deployment.operate',
        action='BACKUP',
        stacks=list(STACKS),
        input_values={'journal': str(journal), 'broken': 'db1'},
        max_concurrent=str(MOST),
        max_errors=str(len(STACKS)),
    )
    _wait_for(journal, 0.2)
    alone.kill('mistral')
    after = {one['id'] for one in Operations(alone)('list')[1]}
    (begun,) = after - before
    found = _end(alone, begun)
    alone.start('mistral')
    return found


def _end(cloud: base.minicloud_client.Cloud, begun: str) -> Any:
    """Wait for the end of an operation; return how it is shown."""

    def ended() -> Any:
        _, found = Operations(cloud)('show', begun)
        return found if found['state'] != 'running' else None

    return base.until(ended, PATIENCE, pause=5)


def _wait_for(journal: pathlib.Path, part: float) -> None:
    """Wait until a part of the servers has begun."""

    def begun() -> bool:
        return len(journal.read_text().split()) >= part * TARGETS

    base.until(begun, PATIENCE)


def _begun(said: str) -> str:
    match = re.search(r'[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}', said)
    assert match, said
    return match[0]


def _most_at_once(shown: list[dict[str, Any]]) -> int:
    """Return how many runs went on at a time, by the records."""
    # Times are in whole seconds: a run ends before another one starts.
    moments = sorted(
        (time, change)
        for one in shown
        for time, change in (
            (one['started_at'], 1),
            (one['ended_at'], -1),
        )
    )
    now = most = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most
