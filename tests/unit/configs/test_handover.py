# SPDX-License-Identifier: Apache-2.0
"""The form in which configs reach the agents."""

import copy

import testtools

from heat_plugins.configs import actions


def one(value, hook='script', **more):
    """Return a single input as an agent gets it."""
    (result,) = actions.agent_inputs(
        [{'name': 'x', 'value': value, **more}], hook
    )
    return result


class ToolTest(testtools.TestCase):
    COMPONENT = {
        'configs': [
            {'actions': ['CREATE'], 'tool': 'script', 'config': 'a'},
            {'actions': ['BACKUP', 'CREATE'], 'tool': 'ansible'},
            {'actions': ['DELETE']},
        ]
    }

    def test_a_config_runs_with_the_hook_of_its_group(self):
        assert actions.hook_for('puppet', 'code', 'CREATE') == 'puppet'
        assert actions.hook_for(None, 'code', 'CREATE') is None

    def test_a_component_runs_with_the_tool_of_the_action(self):
        for action, tool in (('CREATE', 'script'), ('BACKUP', 'ansible')):
            assert (
                actions.hook_for('component', self.COMPONENT, action) == tool
            )

    def test_where_nothing_would_run_there_is_no_tool(self):
        for config, action in (
            (self.COMPONENT, 'DELETE'),
            (self.COMPONENT, 'UPDATE'),
            (None, 'CREATE'),
            ('text', 'CREATE'),
        ):
            assert actions.hook_for('component', config, action) is None


class InputsTest(testtools.TestCase):
    def test_a_null_becomes_an_empty_text_for_every_hook(self):
        for hook in ('script', 'ansible', None):
            assert one(None, hook)['value'] == ''

    def test_an_input_without_a_value_is_given_an_empty_one(self):
        assert actions.agent_inputs(
            [{'name': 'x', 'type': 'String'}], 'script'
        ) == [{'name': 'x', 'type': 'String', 'value': ''}]

    def test_a_script_gets_numbers_and_booleans_as_text(self):
        for value, text in (
            (5, '5'),
            (0, '0'),
            (-1.5, '-1.5'),
            (True, 'True'),
            (False, 'False'),
        ):
            assert one(value, type='Number', default=7) == {
                'name': 'x',
                'type': 'String',
                'value': text,
            }

    def test_other_hooks_get_them_as_they_are(self):
        for value in (5, 0, -1.5, True, False):
            for hook in ('ansible', 'puppet', None):
                result = one(value, hook, type='Number', default=7)
                assert result['value'] is value
                assert result['type'] == 'Number'
                assert result['default'] == 7

    def test_texts_maps_and_lists_stay_as_they_are(self):
        for value in ('', ' a\n', {'a': None}, {}, [1, None], []):
            for hook in ('script', 'ansible'):
                assert one(value, hook, type='Json') == {
                    'name': 'x',
                    'type': 'Json',
                    'value': value,
                }

    def test_inputs_keep_their_order_and_what_else_they_say(self):
        declared = [
            {'name': 'b', 'value': 1, 'description': 'about b'},
            {'name': 'a', 'value': None, 'replace_on_change': True},
        ]
        before = copy.deepcopy(declared)
        result = actions.agent_inputs(declared, 'script')
        assert [each['name'] for each in result] == ['b', 'a']
        assert result[0]['description'] == 'about b'
        assert result[1]['replace_on_change']
        assert declared == before
