# SPDX-License-Identifier: Apache-2.0
"""The workflows that Mistral installs, and how actions are made for it."""

from collections import abc
from importlib import metadata
import inspect
import pathlib
import re
import sys
from typing import Any
from unittest import mock

from mistral_lib import actions
from mistral_lib.utils import inspect_utils
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import pytest
import testtools
import yaml

from heat_plugins import config
from heat_plugins import errors
from heat_plugins.mistral import definitions
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import preinstalled
from heat_plugins.mistral_actions import sessions
from heat_plugins.mistral_actions import software_deployment
from heat_plugins.nodes import node_operations
from heat_plugins.plans import plan_operations
from heat_plugins.validations import validation_operations
from tests.unit.mistral_actions import base

_OURS = 'software_deployment.'


def workflows():
    """Return the installed workflows by name, as an entry point gives them."""
    (point,) = metadata.entry_points(
        group='mistral.preinstalled_workflows', name='heat_plugins'
    )
    paths = map(pathlib.Path, point.load()())
    return {path.stem: path.read_text() for path in paths}


def specs():
    return {k: yaml.safe_load(text)[k] for k, text in workflows().items()}


class PreinstalledTest(testtools.TestCase):
    def test_each_file_is_installed_and_holds_the_workflow_of_its_name(self):
        found = workflows()
        folder = pathlib.Path(preinstalled.__file__).parent / 'workflows'
        assert {path.stem for path in folder.iterdir()} == set(found)
        assert 'software_deployment.trigger' in found
        for name, text in found.items():
            assert list(definitions.read(text)) == [name]

    def test_what_fails_is_handled_by_on_error_alone(self):
        """What on-complete handles fails the workflow in the end."""
        for name, spec in specs().items():
            for task in spec['tasks'].values():
                assert 'on-complete' not in task, name

    def test_each_short_task_of_a_loop_has_a_time_limit(self):
        """What a time limit continues has the user's token."""
        for name in ('heat_plugins.job', 'plan.configure'):
            for task, spec in specs()[name]['tasks'].items():
                if 'workflow' not in spec and task != 'run_action':
                    assert {'timeout', 'on-error'} <= spec.keys(), task

    def given(self, task_input, inputs):
        """Return the arguments of an action; inputs are its workflow's."""
        if not isinstance(task_input, str):
            return task_input
        if 'execution().input' not in task_input or 'given =>' in task_input:
            # <% dict(name => ..., name => ...) %>
            return dict.fromkeys(re.findall(r'(\w+) =>', task_input))
        names = {n if isinstance(n, str) else next(iter(n)) for n in inputs}
        deleted = re.findall(r'delete\((\w+)\)', task_input)
        return dict.fromkeys(names - {*deleted})

    def test_the_actions_they_call_take_what_they_are_given(self):
        actions = {
            point.name: point
            for point in metadata.entry_points(group='mistral.actions')
            # Mistral's own cannot be loaded without the rest of it.
            if point.value.startswith('heat_plugins.')
        }
        called = set()
        for workflow in specs().values():
            for task in workflow['tasks'].values():
                if task.get('workflow') == 'heat_plugins.job':
                    task = task['input']
                if point := actions.get(task.get('action')):
                    called.add(point.name)
                    given = self.given(task['input'], workflow['input'])
                    inspect.signature(point.load()).bind(**given)
        ours = {name for name in actions if name.startswith(_OURS)}
        assert ours - called == set()


#: By namespace: the operations, and which of them are no actions, since
#: whoever waits calls them by hand.
OPERATIONS = {
    'nodes': (
        node_operations.NodeOperations,
        {'inventory', 'gather', 'advance', 'registered', 'forget'},
    ),
    'plan': (plan_operations.PlanOperations, set()),
    'software_deployment': (software_deployment.RunActions, set()),
    'validations': (validation_operations.ValidationOperations, set()),
}

#: What is given for a required argument; a map for others.
GIVEN = {str: 'x', abc.Collection[str]: ['x']}

ACTIONS = {
    name: action
    for namespace in OPERATIONS
    for name, action in base.published(namespace).items()
}


@pytest.mark.parametrize('namespace', OPERATIONS)
def test_there_is_one_for_each_operation_with_its_arguments(namespace):
    operations, by_hand = OPERATIONS[namespace]
    wanted = {
        f'{namespace}.{name}': base.arguments(method)
        for name, method in vars(operations).items()
        if not name.startswith('_') and name not in by_hand
    }
    assert wanted == {
        name: base.arguments(action)
        for name, action in base.published(namespace).items()
    }


@pytest.mark.parametrize('name', ACTIONS)
def test_it_calls_the_operation_of_its_name(name, monkeypatch):
    config.register_opts(cfg.CONF)
    words = name.partition('.')[2].split('_')
    assert ''.join(map(str.capitalize, words)) == ACTIONS[name].__name__
    # With the credentials of its context; without, it ends in an error.
    refused = mock.Mock(side_effect=errors.Denied('no token'))
    monkeypatch.setattr(sessions, 'cloud', refused)
    given = {
        parameter.name: GIVEN.get(parameter.annotation, {})
        for parameter in inspect.signature(ACTIONS[name]).parameters.values()
        if parameter.default is parameter.empty
    }
    with config_fixture.Config(cfg.CONF) as fixture:
        fixture.config(group='heat_plugins', run_validations=True)
        found = base.run(ACTIONS[name](**given), 'workflow-1').error
    assert (found['code'], found['message']) == ('denied', 'no token')


def cut_down(self, tree, tools=('axe',), depth=1, *, tell=print):
    """Cut a tree down.

    :param tree: which.
    :raises errors.Refused: it is too hard for the tools
        that there are.
    :returns: what is left.
    """


def plant(
    self,
    tree: str,
    count: int = 1,
    weight: float | None = None,
    marks: abc.Mapping[str, bool] | None = None,
    roots: abc.Collection[str] = (),
    more: Any = None,
):
    """Plant a tree."""


def _call(context, operation, arguments):
    if arguments['tree'] == 'oak':
        raise errors.Refused('too hard')
    if arguments['tree'] == 'yew':
        raise ValueError('hunter2')
    return operation, arguments


CutDown = making.ActionMaker(__name__, _call)(cut_down)
Plant = making.ActionMaker(__name__, _call)(plant)


class MakingTest(testtools.TestCase):
    def test_mistral_reads_its_arguments_and_what_it_is_for(self):
        init = CutDown.__init__
        arguments = inspect_utils.get_arg_list_as_str(init)
        assert arguments == 'tree, tools=["axe"], depth=1'
        assert inspect_utils.get_arg_list(init) == ['tree', 'tools', 'depth']
        assert inspect_utils.get_docstring(CutDown) == (
            'Cut a tree down.\n\n:param tree: which.\n:returns: what is left.'
        )
        # Its arguments are its attributes, and nothing else is.
        wanted = {'tree': 'ash', 'tools': ('axe',), 'depth': 2}
        assert vars(CutDown('ash', depth=2)) == wanted
        assert inspect_utils.get_public_fields(CutDown) == {}
        self.assertRaises(TypeError, CutDown)
        self.assertRaises(TypeError, CutDown, tree='ash', tell=print)
        # Mistral imports it by its path.
        assert sys.modules[CutDown.__module__].CutDown is CutDown

    def test_an_error_is_a_result(self):
        found = base.run(CutDown(tree='oak'))
        assert isinstance(found, actions.Result)
        assert found.error == {'code': 'refused', 'message': 'too hard'}
        # What should not happen is logged and not told.
        with self.assertLogs(making.LOG.name) as logs:
            error = base.run(CutDown(tree='yew'), 'workflow-1').error
        assert error['code'] == 'error'
        assert 'ValueError' in error['message']
        assert 'hunter2' not in str(error)
        (logged,) = logs.records
        assert 'hunter2' in logs.output[0]
        place = 'action execution action-1 of workflow execution workflow-1'
        assert f'failed: {place}' in logged.getMessage()

    def test_an_input_of_another_type_is_an_error(self):
        for name, value, wanted in (
            ('tree', {'a': 1}, 'str'),
            ('tree', None, 'str'),
            ('count', '3.5', 'int'),
            ('count', True, 'int'),
            ('weight', 'x', 'float | None'),
            ('marks', {'a': 'yes'}, 'Mapping[str, bool] | None'),
            ('roots', {'a': 'b'}, 'Collection[str]'),
            ('roots', [['a']], 'Collection[str]'),
        ):
            found = base.run(Plant(**{'tree': 'ash', name: value}))
            message = f'plant: {name} must be of type {wanted}'
            assert found.error == {'code': 'invalid', 'message': message}

    def test_inputs_are_converted(self):
        defaults = {
            **{'tree': 'ash', 'count': 1, 'weight': None, 'marks': None},
            **{'roots': [], 'more': None},
        }
        typed = {'count': 2, 'weight': 3, 'marks': {'a': True}, 'more': [1]}
        for given, expected in (
            (typed, typed),
            # YAML and YAQL may have texts for numbers and lists.
            (
                {'tree': 7, 'count': '2', 'weight': '3', 'roots': 'a'},
                {'tree': '7', 'count': 2, 'weight': 3, 'roots': ['a']},
            ),
            ({'count': None, 'roots': None}, {'roots': ()}),
        ):
            action = Plant(**{'tree': 'ash', **given})
            assert base.run(action) == ('plant', {**defaults, **expected})
