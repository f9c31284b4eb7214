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

#: An engine looks often, and is known to be dead soon.
CONF = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 3
"""

_BACKUP = """\
#!/bin/sh -e
echo "$deploy_resource_name" >> "$journal"
sleep 2
[ "$deploy_resource_name" != "$broken" ]
echo "backed up $deploy_resource_name"
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


@pytest.fixture
def alone(
    request: pytest.FixtureRequest, tmp_path: pathlib.Path
) -> Iterator[base.minicloud_client.Cloud]:
    """A cloud whose engine is one process."""
    conf = tmp_path / 'heat.conf'
    conf.write_text(CONF)
    yield from conftest.clouds(
        request, 'operations', plugin=base.ROOT, conf=[conf]
    )


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
            # What polls for its work is most of what the cloud does.
            interval=max(2.0, TARGETS / 10),
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
        for stack in stacks:
            for n in range(SERVERS):
                names = [one['name'] for one in stack.metadata(f'server{n}')]
                # Nothing is left of the runs.
                assert not [name for name in names if 'BACKUP' in name]


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
