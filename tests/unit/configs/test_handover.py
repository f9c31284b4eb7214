# SPDX-License-Identifier: Apache-2.0
"""The form in which configs reach the agents."""

import copy

import pytest

from heat_plugins.configs import actions

COMPONENT = {
    'configs': [
        {'actions': ['CREATE'], 'tool': 'script', 'config': 'a'},
        {'actions': ['BACKUP', 'CREATE'], 'tool': 'ansible'},
        {'actions': ['DELETE']},
    ]
}


@pytest.mark.parametrize(
    ('group', 'config', 'action', 'tool'),
    [
        ('puppet', 'code', 'CREATE', 'puppet'),
        (None, 'code', 'CREATE', None),
        # A component runs with the tool of the action.
        ('component', COMPONENT, 'CREATE', 'script'),
        ('component', COMPONENT, 'BACKUP', 'ansible'),
        # Nothing would run.
        ('component', COMPONENT, 'DELETE', None),
        ('component', COMPONENT, 'UPDATE', None),
        ('component', None, 'CREATE', None),
        ('component', 'text', 'CREATE', None),
    ],
)
def test_a_config_runs_with_a_hook(group, config, action, tool):
    assert actions.hook_for(group, config, action) == tool


TEXT = {'name': 'x', 'type': 'String'}
NUMBER = {'name': 'x', 'type': 'Number', 'default': 7}
JSON = {'name': 'x', 'type': 'Json'}


@pytest.mark.parametrize(
    ('given', 'hooks', 'handed'),
    [
        *(
            (none, ('script', 'ansible', None), {**TEXT, 'value': ''})
            for none in (TEXT, {**TEXT, 'value': None})
        ),
        # A script gets numbers and booleans as text.
        *(
            ({**NUMBER, 'value': value}, ('script',), {**TEXT, 'value': text})
            for value, text in (
                (5, '5'),
                (0, '0'),
                (-1.5, '-1.5'),
                (True, 'True'),
                (False, 'False'),
            )
        ),
        *(
            ({**NUMBER, 'value': value}, ('ansible', 'puppet', None), None)
            for value in (5, 0, -1.5, True, False)
        ),
        *(
            ({**JSON, 'value': value}, ('script', 'ansible'), None)
            for value in ('', ' a\n', {'a': None}, {}, [1, None], [])
        ),
    ],
)
def test_an_input_reaches_a_hook_as_that_can_use_it(given, hooks, handed):
    for hook in hooks:
        (found,) = actions.agent_inputs([given], hook)
        assert found == (handed or given)
        assert type(found['value']) is type((handed or given)['value'])


def test_inputs_keep_their_order_and_what_else_they_say():
    declared = [
        {'name': 'b', 'value': 1, 'description': 'about b'},
        {'name': 'a', 'value': None, 'replace_on_change': True},
    ]
    before = copy.deepcopy(declared)
    b, a = actions.agent_inputs(declared, 'script')
    assert (b['name'], b['description']) == ('b', 'about b')
    assert (a['name'], a['replace_on_change']) == ('a', True)
    assert declared == before
