# SPDX-License-Identifier: Apache-2.0
"""Plans for tests, and the commands that work on them."""

import contextlib
import io
import json
import os
import subprocess
import sys
from typing import Any
from unittest import mock

from openstackclient import shell
import yaml

from tests.functional import base

#: A root template, whose server greets in a nested template.
ROOT = """\
heat_template_version: 2021-04-16
parameters:
  who: {type: string, default: world}
  region: {type: string, default: nowhere}
  Size: {type: number, default: 1, constraints: [{range: {min: 1, max: 3}}]}
  Password: {type: string, hidden: true}
  Other:
    type: string
    hidden: true
    default: x
    constraints: [{allowed_pattern: '[a-z-]+'}]
resources:
  tier: {type: Shop::Tier, properties: {greeted: {get_param: who}}}
  size: {type: OS::Heat::Value, properties: {value: {get_param: Size}}}
outputs:
  greeting: {value: {get_attr: [tier, greeting]}}
  region: {value: {get_param: region}}
"""

#: A nested template that is complete at once.
EMPTY = """\
heat_template_version: 2021-04-16
parameters: {greeted: {type: string}}
resources: {value: {type: OS::Heat::TestResource}}
outputs: {greeting: {value: none}}
"""

_MAP = """\
topics:
  - title: Shop
    environment_groups:
      - title: Region
        mutually_exclusive: true
        environments:
          - {file: environments/north.yaml, title: North}
          - {file: environments/south.yaml, title: South}
"""


def tier() -> base.Template:
    """Return a nested template with a server."""
    found = base.software()
    found['parameters'] = {'greeted': {'type': 'string'}}
    properties = found['resources']['deployment']['properties']
    properties['input_values'] = {'who': {'get_param': 'greeted'}}
    config = found['resources']['config']['properties']
    config['config'] = {'get_file': '../scripts/greet.sh'}
    greeting = {'get_attr': ['deployment', 'greeting']}
    found['outputs'] = {'greeting': {'value': greeting}}
    return found


def files(nested=EMPTY, **sections):
    """Return the files of a plan, with sections of its environment."""
    return {
        'shop.yaml': ROOT,
        'tiers/tier.yaml': nested,
        'scripts/greet.sh': base.SCRIPT,
        'environments/base.yaml': {
            'resource_registry': {'Shop::Tier': '../tiers/tier.yaml'}
        },
        'environments/north.yaml': {'parameter_defaults': {'region': 'north'}},
        'environments/south.yaml': {'parameter_defaults': {'region': 'south'}},
        'capabilities-map.yaml': _MAP,
        'plan-environment.yaml': {
            'template': 'shop.yaml',
            'environments': [{'path': 'environments/base.yaml'}],
            **sections,
        },
    }


def forget_validations(session):
    """Delete the results of all validations of a project."""
    prefix = 'heat-plugins-validations'
    listed = session.get('object-store', f'?format=json&prefix={prefix}')
    for each in listed.json():
        base.delete_container(session, each['name'])


def shown_by_mistral(session):
    """Return what a project sees of all executions."""
    return ''.join(
        session.get('workflowv2', path).body.decode()
        for path in (
            '/executions?include_output=true',
            '/tasks?include_result=true',
            '/action_executions?include_output=true',
        )
    )


class Plan:
    """A plan, as ``openstack deployment plan …`` works on it.

    :ivar said: all that was printed.
    """

    def __init__(self, cloud, folder, name):
        self._cloud = cloud
        self._env = cloud.env()
        # Finds the real program, whose process is that of the command.
        self._path = base.minicloud_client.Cloud.env(cloud)['PATH']
        self.name = name
        self.folder = folder / name
        self.said = ''

    def write(self, content):
        for path, value in content.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            text = value if isinstance(value, str) else yaml.safe_dump(value)
            file.write_text(text)

    def begin(self, command, *arguments):
        """Begin one in a process of its own."""
        return subprocess.Popen(
            ['openstack', *self._arguments(command, arguments)],
            env={**self._env, 'PATH': self._path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, command, *arguments, said=''):
        """Run one in this process, which costs less than in its own.

        :param said: what it reads from its standard input.
        :return: its exit code, and what it printed to its two streams.
        """
        output, errors = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self._env, clear=True),
            mock.patch.object(sys, 'stdin', io.StringIO(said)),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            code = shell.main(self._arguments(command, arguments))
        self.said += output.getvalue() + errors.getvalue()
        return code, output.getvalue(), errors.getvalue()

    def __call__(self, command, *arguments, said=''):
        """Run one that succeeds; return what it printed."""
        code, output, errors = self.run(command, *arguments, said=said)
        assert code == 0, (command, code, errors)
        return json.loads(output or 'null')

    def fails(self, expected, command, *arguments, said=''):
        """Run one that fails with an exit code; return what it said."""
        code, output, errors = self.run(command, *arguments, said=said)
        assert code == expected, output + errors
        return output + errors

    def make(self, content):
        self.write(content)
        return self('create', '--from', str(self.folder))

    def stack(self) -> dict[str, Any]:
        """Return its stack."""
        return dict(self._heat().json()['stack'])

    @property
    def outputs(self):
        return {
            one['output_key']: one.get('output_value')
            for one in self.stack()['outputs']
        }

    def tier(self):
        """Wait for the nested stack that has the server; return its id."""

        def made():
            answer = self._heat('/resources')
            for one in answer.json()['resources'] if answer.ok else ():
                if one['resource_name'] == 'tier':
                    return one['physical_resource_id']
            return None

        return base.until(made)

    def agent(self):
        """Return the agent of its server, switched off."""
        return self._cloud.agent(
            f'{self.name}-server', stack=self.tier(), resource='server'
        )

    def purge(self):
        """Delete its stack, and then the plan."""
        if self._heat().ok:
            place = f'/{self.stack()["id"]}'
            path = f'/stacks/{self.name}{place}'
            self._cloud.session().delete('orchestration', path)
            base.until(lambda: self._is_gone(place))
        code, _, errors = self.run('delete')
        assert code == 0 or 'no plan' in errors, errors

    def _is_gone(self, place):
        answer = self._heat(place)
        return (
            answer.status == 404
            or answer.json()['stack']['stack_status'] == 'DELETE_COMPLETE'
        )

    def _heat(self, place=''):
        path = f'/stacks/{self.name}{place}'
        return self._cloud.session().get('orchestration', path)

    def _arguments(self, command, arguments):
        name = ['deployment', 'plan', *command.split(), self.name]
        return [*name, *arguments, '-f', 'json']
