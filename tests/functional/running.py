# SPDX-License-Identifier: Apache-2.0
"""What the tests of runs share: commands, the API, templates, and a gate."""

import collections
from concurrent import futures
import contextlib
import json
import pathlib
import subprocess
from typing import Any

from keystoneauth1 import session as ks_session
from keystoneauth1.identity import v3

from heat_plugins.clients import rest
from heat_plugins.clients import runs
from tests.functional import base
from tests.functional import servers

Template = base.Template

#: Shows that its server has it, and ends when a test says so.
GATED = """\
#!/bin/sh -e
echo "$deploy_resource_name" >> "$journal"
until [ -e "$gate" ]; do sleep 0.2; done
[ "$deploy_resource_name" != "$broken" ]
echo "backed up $deploy_resource_name"
"""

#: The inputs of `GATED`, with their defaults.
GATE = {'journal': '/dev/null', 'gate': '/', 'broken': 'none'}

_LIFE_CYCLE = ('CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME')


class Commands:
    """``openstack software deployment run …`` of a user.

    :ivar said: all that was printed.
    :ivar on: the words that name a stack.
    """

    def __init__(self, cloud, user='demo', stack=None):
        self._env = cloud.env(user)
        self.said = ''
        self.on = ('--stack', stack.name) if stack else ()

    def begin(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ['openstack', 'software', 'deployment', 'run', *words],
            env=self._env,
            # communicate() continues where a read has ended.
            bufsize=0,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, process: subprocess.Popen[bytes]) -> tuple[int, Any]:
        """Return the exit code, and what was shown or said."""
        output, said = process.communicate(timeout=150)
        self.said += output.decode() + said.decode()
        shown = json.loads(output) if output.strip() else said.decode()
        return process.returncode, shown

    def __call__(self, *words: str) -> tuple[int, Any]:
        return self.end(self.begin(*words, '-f', 'json'))

    def start(self, *words: str) -> str:
        """Start a run; return its ID."""
        code, shown = self('start', *words)
        assert code == 0, shown
        return str(shown['id'])

    def logs(self, *words: str) -> tuple[int, bytes, str]:
        process = self.begin('logs', *words)
        output, said = process.communicate(timeout=150)
        return process.returncode, output, said.decode()

    def state(self, run_id: str) -> str:
        return str(self('show', run_id)[1]['state'])


def logged_in(cloud, user='demo', project=None):
    """Return a cloud's services for a user.

    :param project: its name; None for the user's own.
    """
    env = cloud.env(user)
    auth = v3.Password(
        auth_url=env['OS_AUTH_URL'],
        username=env['OS_USERNAME'],
        password=env['OS_PASSWORD'],
        project_name=project or env['OS_PROJECT_NAME'],
        user_domain_name='Default',
        project_domain_name='Default',
    )
    verify = env.get('OS_CACERT') or True
    return rest.Cloud(ks_session.Session(auth=auth, verify=verify))


def client(cloud, user='demo', project=None):
    """Return the client of a user."""
    return runs.Runs(logged_in(cloud, user, project))


def component(scripts, inputs, outputs=()):
    """Return a component.

    :param scripts: by actions, such as ``CREATE UPDATE``.
    :param inputs: their defaults, by name.
    """
    return {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'inputs': [
                {
                    'name': name,
                    'type': 'String' if isinstance(value, str) else 'Number',
                    'default': value,
                }
                for name, value in inputs.items()
            ],
            'outputs': [{'name': name} for name in outputs],
            'configs': [
                {'actions': names.split(), 'tool': 'script', 'config': script}
                for names, script in scripts.items()
            ],
        },
    }


def fleet(count: int, script: str = GATED) -> Template:
    """Return servers, each with a deployment of one component."""
    found: Template = {
        'heat_template_version': '2021-04-16',
        'resources': {
            'config': component(
                {'CREATE': '#!/bin/sh\n', 'BACKUP': script}, GATE
            )
        },
    }
    for n in range(count):
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


def of_fleet(count: int) -> list[str]:
    """Return the names of its servers."""
    return [f'server{n}' for n in range(count)]


@contextlib.contextmanager
def switched_on(cloud, stacks, names, supervised=False):
    """Switch servers of each of some stacks on, several at a time."""
    agents = [
        servers.agent(cloud, stack, name, supervised=supervised)
        for stack in stacks
        for name in names
    ]
    with futures.ThreadPoolExecutor(4) as executor:
        try:
            list(executor.map(lambda agent: agent.start(), agents))
            yield agents
        finally:
            list(executor.map(lambda agent: agent.stop(), agents))


class Journal:
    """What servers have run, and the gate behind which they wait."""

    def __init__(self, folder: pathlib.Path, name: str) -> None:
        self._file = folder / name
        self._file.touch()
        self.gate = folder / f'{name}-gate'

    @property
    def inputs(self) -> dict[str, str]:
        return {'journal': str(self._file), 'gate': str(self.gate)}

    @property
    def options(self) -> list[str]:
        """The same for a command."""
        return [
            word
            for name, value in self.inputs.items()
            for word in ('--input', f'{name}={value}')
        ]

    def ran(self) -> dict[str, int]:
        """Return how often each deployment was run, by its name."""
        return dict(collections.Counter(self._file.read_text().split()))


def configs(stack: base.Stack, server: str = 'server') -> list[Template]:
    """Return the runs' configs that a server is given."""
    return [
        each
        for each in stack.metadata(server)
        if base.value(each, 'deploy_action') not in _LIFE_CYCLE
    ]


def given(stack: base.Stack, server: str = 'server') -> list[str]:
    """Return the names of the runs' configs that a server is given."""
    return [str(each['name']) for each in configs(stack, server)]
