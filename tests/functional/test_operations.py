# SPDX-License-Identifier: Apache-2.0
"""One action on many servers over stacks, with real agents.

Whoever advances the operation is killed in its middle: the command that has
started it, and the engine that has taken it over.
"""

import collections
from collections.abc import Iterator
import json
import pathlib
import re
import signal
import subprocess
from typing import Any

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

Template = base.Template

STACKS, SERVERS = ('blue', 'green'), 5

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


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_operation_survives_who_advances_it(
    alone: base.minicloud_client.Cloud, tmp_path: pathlib.Path
) -> None:
    journal = tmp_path / 'journal'
    journal.touch()
    stacks = [
        base.Stack(alone.session(), template(), name=name) for name in STACKS
    ]
    for stack in stacks:
        stack.wait('CREATE_COMPLETE')
    agents = [
        servers.agent(alone, stack, f'server{n}')
        for stack in stacks
        for n in range(SERVERS)
    ]
    operation = Operations(alone)
    for agent in agents:
        agent.start()
    try:
        found = _operate(alone, operation, journal)
    finally:
        for agent in agents:
            agent.stop()
    runs = collections.Counter(journal.read_text().split())
    # Both stacks call theirs so; each has run once.
    assert runs == {f'db{n}': len(STACKS) for n in range(SERVERS)}
    assert found['state'] == 'complete', found
    _, shown = operation('show', found['id'], '--targets')
    assert len(shown) == len(agents)
    assert {one['attempt'] for one in shown} == {1}
    assert _most_at_once(shown) <= 3
    _, outputs = operation('output', found['id'])
    assert {one['outputs']['deploy_stdout'] for one in outputs} == {
        f'backed up db{n}\n' for n in range(SERVERS)
    }
    for stack in stacks:
        for n in range(SERVERS):
            names = [one['name'] for one in stack.metadata(f'server{n}')]
            # Nothing is left of the runs.
            assert not [name for name in names if 'BACKUP' in name]


def _operate(
    alone: base.minicloud_client.Cloud,
    operation: Operations,
    journal: pathlib.Path,
) -> Any:
    command = operation.begin(
        *('run', 'BACKUP', '--stack', 'blue', '--stack', 'green'),
        *('--max-concurrent', '3', '--wait'),
        *('--input', f'journal={journal}'),
    )
    begun = _begun(command.stderr.readline())

    def ended(number: int) -> bool:
        return len(journal.read_text().split()) >= number

    base.until(lambda: ended(2))
    command.send_signal(signal.SIGKILL)
    command.communicate()
    # Nobody but an engine advances it now.
    base.until(lambda: ended(5), 150)
    alone.kill('heat')
    alone.start('heat')

    def shown() -> Any:
        _, found = operation('show', begun)
        return found if found['state'] not in ('running',) else None

    return base.until(shown, 200)


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
