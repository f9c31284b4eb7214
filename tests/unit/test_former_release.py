# SPDX-License-Identifier: Apache-2.0
"""What automation knows of release 0.1 is all still there.

``former_release.json`` is what `interface` returned in that release (its
commit is that of ``tests/functional/test_release_upgrade.py``). A later
release adds to it, and takes nothing away, but what records of runs in the
object store needed: the actions that led them, and the stack of a run.
"""

import inspect
import json
import pathlib
import types
from unittest import mock

import pytest
import yaml

from heat_plugins.mistral_actions import preinstalled
from heat_plugins.nodes import node_operations
from heat_plugins.osc import common
from heat_plugins.osc.nodes import node_commands
from heat_plugins.osc.plans import plan_common
from heat_plugins.osc.validations import validation_commands
from heat_plugins.plans import plan_operations
from tests.unit import fake_swift
from tests.unit.mistral_actions import base as actions
from tests.unit.nodes import fake_ironic
from tests.unit.nodes import test_operations
from tests.unit.osc import base as commands
from tests.unit.plans import fake_heat
from tests.unit.validations import fakes

FORMER = json.loads(
    pathlib.Path(__file__).with_name('former_release.json').read_text()
)

NAMESPACES = ('nodes', 'plan', 'software_deployment', 'validations')

#: What commands need on their lines before they show anything.
LINES = {
    'capability_list': ['a'],
    'capability_set': ['a', '--enable', 'b'],
    'deploy': ['a', '--no-wait'],
    'diff': ['a'],
    'list': [],
    'node_introspect': ['--all'],
    'node_list': [],
    'node_provide': ['--all'],
    'node_register': ['-'],
    'parameter_set': ['a', 'b=c'],
    'parameter_unset': ['a', 'b'],
    'role_list': ['a'],
    'status': ['a'],
    'validation_list': ['a'],
    'validation_result_list': [],
    'validation_result_show': ['a'],
    'validation_run': ['a'],
    'validation_stop': ['a'],
}


#: A file that names no machine.
NODES = '[{}]'


class Bare(common.Report):
    """A command that takes what all do."""

    def take_action(self, parsed_args):
        raise NotImplementedError


def interface():
    """Return names, inputs and outputs, each as a text."""
    return {
        'workflows': dict(map(workflow, preinstalled.paths())),
        'actions': {
            name: [*map(argument, actions.arguments(action))]
            for namespace in NAMESPACES
            for name, action in actions.published(namespace).items()
        },
        'results': results(),
        'commands': {
            name: options(commands.command(name))
            for name in commands.commands()
            if name.startswith('deployment_plan_')
        },
        'columns': {name: columns(name) for name in LINES},
    }


def workflow(path):
    """Return the name of an installed workflow, and what it takes and has."""
    content = yaml.safe_load(pathlib.Path(path).read_text())
    del content['version']
    ((name, spec),) = content.items()
    return name, [
        *(f'input {json.dumps(entry)}' for entry in spec.get('input', ())),
        *(f'output {key}' for key in spec.get('output', ())),
        *(f'on error {key}' for key in spec.get('output-on-error', ())),
        *(f'tag {tag}' for tag in spec.get('tags', ())),
    ]


def argument(name_and_default):
    name, default = name_and_default
    required = default is inspect.Parameter.empty
    return name if required else f'{name}={json.dumps(default)}'


def options(command):
    """Return what a command takes beside the formats of its output."""
    every = command(None, None).get_parser('openstack')._actions
    bare = Bare(None, None).get_parser('openstack')._actions
    others = {action.dest for action in bare}
    return [option(each) for each in every if each.dest not in others]


def option(action):
    names = '|'.join(action.option_strings) or action.dest
    choices = ''.join(f' {choice}' for choice in action.choices or ())
    return f'{names} {action.nargs} {action.default}{choices}'


def columns(name):
    """Return the columns that a command shows."""
    app = types.SimpleNamespace(client_manager=None)
    command = commands.command(f'deployment_plan_{name}')(app, None)
    command.progress, command.log = mock.MagicMock(), mock.MagicMock()
    parsed = command.get_parser('openstack').parse_args(LINES[name])
    operations = mock.Mock(return_value=nodes())
    with (
        mock.patch.object(validation_commands, 'operations', mock.MagicMock()),
        mock.patch.object(
            validation_commands,
            'services',
            return_value=(None, mock.MagicMock()),
        ),
        mock.patch.object(node_commands, 'operations', operations),
        mock.patch.object(plan_common, 'operations', mock.MagicMock()),
        mock.patch('sys.stdin.read', return_value=NODES),
    ):
        return [*command.take_action(parsed)[0]]


def nodes():
    return node_operations.NodeOperations(
        fake_ironic.Ironic(), fake_swift.Cluster().store()
    )


def results():
    """Return what is in the result of each action that has a map."""
    cloud = fakes.Cloud()
    cloud.heat.answer = fake_heat.answer
    cloud.make()
    plans = plan_operations.PlanOperations(cloud.plans)
    core = nodes()
    found = {
        'plan.list': plans.list(),
        'plan.show': plans.show('plan'),
        'plan.get_capabilities': plans.get_capabilities('plan'),
        'plan.update_capabilities': plans.update_capabilities('plan', {}),
        'plan.get_parameters': plans.get_parameters('plan'),
        'plan.update_parameters': plans.update_parameters('plan', {'who': ''}),
        'plan.preview': plans.preview('plan'),
        'plan.start': plans.start('plan'),
        'plan.look': plans.look('plan-id'),
        'plan.status': plans.status('plan'),
        'plan.cancel': plans.cancel('plan'),
        'nodes.register': core.register(test_operations.nodes(b='nope')),
        'nodes.list': core.list(),
        'nodes.begin': (begun := core.begin('manage', ['a'])),
        'nodes.begin.convoy': begun['convoy'],
        'nodes.begin.convoy.members': begun['convoy']['members'],
        'nodes.step': core.step(begun['convoy']),
        'nodes.abort': core.abort(),
        'nodes.summaries': core.summaries(['a']),
        'validations.list': cloud.validations.list('plan'),
        'validations.required': cloud.validations.required('plan'),
        'validations.run': (run := cloud.validations.run('plan', stack='')),
        'validations.run.outcomes': run['outcomes'],
        'validations.results': cloud.validations.results(),
        'validations.result': cloud.validations.result(run['id']),
        'validations.result.validation': cloud.validations.result(
            run['id'], 'ram'
        ),
    }
    return {
        name: sorted(result[0] if isinstance(result, list | tuple) else result)
        for name, result in found.items()
    }


@pytest.fixture(scope='module')
def present():
    return interface()


@pytest.mark.parametrize(
    ('kind', 'name'),
    [(kind, name) for kind in FORMER for name in FORMER[kind]],
)
def test_nothing_that_has_a_name_has_gone_or_changed(present, kind, name):
    former = FORMER[kind][name]
    assert [
        entry for entry in present[kind][name] if entry in former
    ] == former


def test_what_was_added_to_workflows_and_actions_can_be_left_out(present):
    for name, former in FORMER['workflows'].items():
        for entry in present['workflows'][name]:
            assert entry in former or not entry.startswith('input "'), name
    for name, former in FORMER['actions'].items():
        for entry in present['actions'][name]:
            assert entry in former or '=' in entry, name
