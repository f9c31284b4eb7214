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

import yaml

from heat_plugins.mistral_actions import preinstalled
from heat_plugins.osc import common
from tests.unit.mistral_actions import base as actions
from tests.unit.osc import base as commands

FORMER = json.loads(
    pathlib.Path(__file__).with_name('former_release.json').read_text()
)

NAMESPACES = ('nodes', 'plan', 'software_deployment', 'validations')


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
        'commands': {
            name: options(commands.command(name))
            for name in commands.commands()
            if name.startswith('deployment_plan_')
        },
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


def test_nothing_has_gone_or_changed_and_what_was_added_can_be_left_out():
    present = interface()
    for kind, entries in FORMER.items():
        for name, former in entries.items():
            found = present[kind][name]
            assert [one for one in found if one in former] == former, name
            added = [one for one in found if one not in former]
            if kind == 'workflows':
                assert not [x for x in added if x.startswith('input "')], name
            elif kind == 'actions':
                assert [one for one in added if '=' not in one] == [], name
