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

Template = base.Template

_MAP = {
    'topics': [
        {
            'title': 'Shop',
            'environment_groups': [
                {
                    'title': 'Region',
                    'mutually_exclusive': True,
                    'environments': [
                        {'file': 'environments/north.yaml', 'title': 'North'},
                        {'file': 'environments/south.yaml', 'title': 'South'},
                    ],
                }
            ],
        }
    ]
}


def root() -> Template:
    """Return a template with a server that greets, in a nested template."""
    return {
        'heat_template_version': '2021-04-16',
        'parameters': {
            'who': {'type': 'string', 'default': 'world'},
            'region': {'type': 'string', 'default': 'nowhere'},
            'Size': {
                'type': 'number',
                'default': 1,
                'constraints': [{'range': {'min': 1, 'max': 3}}],
            },
            'Password': {'type': 'string', 'hidden': True},
            'Other': {
                'type': 'string',
                'hidden': True,
                'default': 'x',
                'constraints': [{'allowed_pattern': '[a-z-]+'}],
            },
        },
        'resources': {
            'tier': {
                'type': 'Shop::Tier',
                'properties': {'greeted': {'get_param': 'who'}},
            },
            'size': {
                'type': 'OS::Heat::Value',
                'properties': {'value': {'get_param': 'Size'}},
            },
        },
        'outputs': {
            'greeting': {'value': {'get_attr': ['tier', 'greeting']}},
            'region': {'value': {'get_param': 'region'}},
        },
    }


def tier() -> Template:
    found = base.software()
    found['parameters'] = {'greeted': {'type': 'string'}}
    properties = found['resources']['deployment']['properties']
    properties['input_values'] = {'who': {'get_param': 'greeted'}}
    config = found['resources']['config']['properties']
    config['config'] = {'get_file': '../scripts/greet.sh'}
    found['outputs'] = {
        'greeting': {'value': {'get_attr': ['deployment', 'greeting']}}
    }
    return found


def empty() -> Template:
    """Return a nested template that is complete at once."""
    return {
        'heat_template_version': '2021-04-16',
        'parameters': {'greeted': {'type': 'string'}},
        'resources': {
            'value': {
                'type': 'OS::Heat::TestResource',
                'properties': {'value': {'get_param': 'greeted'}},
            }
        },
        'outputs': {'greeting': {'value': 'none'}},
    }


def files(nested, steps=None):
    """Return the files of a plan, with what is to run after it."""
    return {
        'shop.yaml': root(),
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
            'post_deployment': steps or [],
        },
    }


def forget_validations(session: Any) -> None:
    """Delete the results of all validations of a project."""
    prefix = 'heat-plugins-validations'
    listed = session.get('object-store', f'?format=json&prefix={prefix}')
    for each in listed.json():
        base.delete_container(session, each['name'])


class Plan:
    """A plan, as ``openstack deployment plan …`` works on it."""

    def __init__(self, cloud, folder, name):
        self._cloud = cloud
        self._env = cloud.env()
        # Finds the real program, whose process is that of the command.
        self._path = base.minicloud_client.Cloud.env(cloud)['PATH']
        self.name = name
        self.folder = folder / name
        #: All that was printed.
        self.said = ''

    def write(self, content: dict[str, Any]) -> None:
        for path, value in content.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            text = value if isinstance(value, str) else yaml.safe_dump(value)
            file.write_text(text)

    def begin(self, command: str, *arguments: str) -> Any:
        """Begin one in a process of its own."""
        return subprocess.Popen(
            ['openstack', *self._arguments(command, arguments)],
            env={**self._env, 'PATH': self._path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, process: Any) -> tuple[int, Any]:
        output, errors = process.communicate(timeout=110)
        self.said += output + errors
        return process.returncode, json.loads(output or 'null') or errors

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

    def __call__(self, command: str, *arguments: str, said: str = '') -> Any:
        """Run one that succeeds; return what it printed."""
        code, output, errors = self.run(command, *arguments, said=said)
        assert code == 0, (command, code, errors)
        return json.loads(output or 'null')

    def fails(self, command: str, *arguments: str) -> tuple[int, str]:
        """Run one that does not succeed; its exit code and what it said."""
        code, output, errors = self.run(command, *arguments)
        assert code, output
        return code, output + errors

    def make(self, content: dict[str, Any], *options: str) -> Any:
        self.write(content)
        return self('create', '--from', str(self.folder), *options)

    def session(self) -> Any:
        return self._cloud.session()

    def stack(self) -> Template:
        """Return its stack."""
        return dict(self._heat().json()['stack'])

    def held(self, what: str) -> Any:
        """Return the template, environment or files of its stack."""
        return self._heat(f'/{self.stack()["id"]}/{what}').json()

    def _heat(self, place: str = '') -> Any:
        path = f'/stacks/{self.name}{place}'
        return self._cloud.session().get('orchestration', path)

    @property
    def outputs(self) -> Template:
        return {
            one['output_key']: one.get('output_value')
            for one in self.stack()['outputs']
        }

    def tier(self) -> str:
        """Wait for the nested stack that has the server; return its id."""

        def made() -> str | None:
            answer = self._heat('/resources')
            found = answer.json()['resources'] if answer.ok else []
            ids = {
                e['resource_name']: e['physical_resource_id'] for e in found
            }
            return ids.get('tier')

        return str(base.until(made))

    def agent(self) -> base.minicloud_client.Agent:
        """Return the agent of its server, switched off."""
        return self._cloud.agent(
            f'{self.name}-server', stack=self.tier(), resource='server'
        )

    def release(self) -> None:
        """Delete the lock of a process that has died with it."""
        place = f'/environments/plan-lock:{self.name}'
        self._cloud.session().delete('workflowv2', place)

    def purge(self) -> None:
        """Delete its stack, and then the plan."""
        answer = self._heat()
        if answer.ok:
            place = f'/{answer.json()["stack"]["id"]}'
            path = f'/stacks/{self.name}{place}'
            self._cloud.session().delete('orchestration', path)
            base.until(lambda: self._is_gone(place))
        code, _, errors = self.run('delete')
        assert code == 0 or 'no plan' in errors, errors

    def _is_gone(self, place: str) -> bool:
        answer = self._heat(place)
        return (
            answer.status == 404
            or answer.json()['stack']['stack_status'] == 'DELETE_COMPLETE'
        )

    def _arguments(self, command, arguments):
        name = ['deployment', 'plan', *command.split(), self.name]
        return [*name, *arguments, '-f', 'json']
