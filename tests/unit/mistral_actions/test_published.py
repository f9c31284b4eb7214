# SPDX-License-Identifier: Apache-2.0
"""What holds for each of our actions that Mistral knows."""

from collections import abc
import inspect
from unittest import mock

from oslo_config import cfg
from oslo_config import fixture as config_fixture
import pytest

from heat_plugins import config
from heat_plugins import errors
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
