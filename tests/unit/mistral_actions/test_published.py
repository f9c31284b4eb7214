# SPDX-License-Identifier: Apache-2.0
"""What holds for each of our actions that Mistral knows."""

from collections import abc
import inspect

from oslo_config import cfg
from oslo_config import fixture as config_fixture
import pytest

from heat_plugins import config
from heat_plugins import errors
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import sessions
from heat_plugins.mistral_actions import software_deployment
from heat_plugins.nodes import node_operations
from heat_plugins.plans import plan_operations
from heat_plugins.validations import validation_operations
from tests.unit.mistral_actions import base

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


@pytest.fixture
def failing(monkeypatch):
    """Let the credentials of any action end in an error; return it run."""
    config.register_opts(cfg.CONF)

    def run(name, error):
        def fail(security):
            raise error

        monkeypatch.setattr(sessions, 'cloud', fail)
        action = ACTIONS[name]
        given = {
            parameter.name: GIVEN.get(parameter.annotation, {})
            for parameter in inspect.signature(action).parameters.values()
            if parameter.default is parameter.empty
        }
        return base.run(action(**given), 'workflow-1').error

    with config_fixture.Config(cfg.CONF) as fixture:
        fixture.config(group='heat_plugins', run_validations=True)
        yield run


@pytest.mark.parametrize('name', ACTIONS)
def test_an_error_is_a_code_and_a_message(failing, name):
    found = failing(name, errors.Denied('no token'))
    assert (found['code'], found['message']) == ('denied', 'no token')


@pytest.mark.parametrize('name', ACTIONS)
def test_what_should_not_happen_is_logged_and_not_told(failing, name, caplog):
    found = failing(name, ValueError('hunter2'))
    assert found['code'] == 'error'
    assert 'ValueError' in found['message']
    assert 'hunter2' not in str(found)
    (logged,) = [one for one in caplog.records if one.name == making.LOG.name]
    assert 'hunter2' in caplog.text
    assert (
        'failed: action execution action-1 of workflow execution workflow-1'
    ) in logged.getMessage()


@pytest.mark.parametrize('name', ACTIONS)
def test_it_calls_the_operation_of_its_name(name):
    words = name.partition('.')[2].split('_')
    assert ''.join(map(str.capitalize, words)) == ACTIONS[name].__name__
