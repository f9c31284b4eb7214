# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Environment and OS::Mistral::Action."""

import json

from heat.common import exception
from oslo_config import cfg
import yaml

from heat_plugins.resources import action
from heat_plugins.resources import environment
from tests.unit.resources import fake_mistral


class NamedTest(fake_mistral.MistralTestCase):
    TYPES = {
        'OS::Mistral::Environment': environment.Environment,
        'OS::Mistral::Action': action.Action,
    }

    def made(self):
        """Return what is there, by name."""
        return {
            row['name']: row
            for row in self.manager.rows.values()
            if row['name'] != 'std.echo'
        }


class _Common:
    """What holds for both."""

    def test_a_change_is_an_update_and_another_name_another_one(self):
        found = self.make()
        before = self.made()['mine']['id']
        # Data of the former release is no hindrance.
        found.data_set('id', before)
        self.update(**self.CHANGED)
        assert self.mistral.changes() == [f'{self.NAME}.update']
        assert self.made()['mine']['id'] == before
        self.update(name='other')
        assert list(self.made()) == ['other']
        # Without a name it gets one of its own.
        self.update(name=None)
        (name,) = self.made()
        self.assertRegex(name, '^stack-it-')
        assert self.it.FnGetRefId() == name
        self.heat.delete(self.stack)
        assert self.made() == {}

    def test_a_name_that_is_taken_is_left_alone(self):
        self.add('mine')
        assert '"mine" already' in self.refused()
        self.heat.delete(self.stack)
        assert list(self.made()) == ['mine']

    def test_one_that_somebody_deleted_is_made_again(self):
        self.make()
        self.manager.remove('mine')
        self.assertRaises(
            AssertionError, self.heat.run, self.stack, self.stack.CHECK
        )
        self.update()
        assert list(self.made()) == ['mine']
        self.heat.run(self.stack, self.stack.CHECK)

    def test_one_made_behind_an_outage_goes_with_the_stack(self):
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        self.addCleanup(
            cfg.CONF.clear_override, 'mistral_error_budget', 'heat_plugins'
        )
        self.mistral.fail(
            f'{self.NAME}.create', fake_mistral.UNAVAILABLE, effect=True
        )
        self.refused()
        assert list(self.made()) == ['mine']
        self.heat.delete(self.stack)
        assert self.made() == {}

    def test_passing_errors_are_ridden_out(self):
        for effect, error in (
            (False, fake_mistral.DOWN),
            (True, fake_mistral.UNAVAILABLE),
        ):
            self.mistral.fail(f'{self.NAME}.get', error, error)
            for call in ('create', 'update', 'delete'):
                name = f'{self.NAME}.{call}'
                self.mistral.fail(name, error, error, effect=effect)
            self.make()
            self.update(**self.CHANGED)
            assert list(self.made()) == ['mine']
            self.heat.delete(self.stack)
            assert self.made() == {}
            self.mistral.faults.clear()

    def test_what_mistral_refuses_leaves_nothing_and_is_mended(self):
        self.mistral.fail(
            f'{self.NAME}.create', fake_mistral.refused(400, 'not so')
        )
        assert 'not so' in self.refused()
        assert self.made() == {}
        self.update()
        assert list(self.made()) == ['mine']
        self.heat.delete(self.stack)
        assert self.made() == {}


class EnvironmentTest(_Common, NamedTest):
    TYPE = 'OS::Mistral::Environment'
    NAME = 'environments'
    PROPERTIES = {'name': 'mine', 'variables': {'a': {'b': 1}}}
    CHANGED = {'variables': {'a': 2}, 'description': 'new'}

    def setUp(self):
        super().setUp()
        self.manager = self.mistral.environments

    def add(self, name):
        self.manager.add({'name': name, 'variables': '{}'})

    def test_the_variables(self):
        self.make()
        row = self.made()['mine']
        assert json.loads(row['variables']) == {'a': {'b': 1}}
        self.update(variables={})
        assert json.loads(self.made()['mine']['variables']) == {}
        self.made()['mine']['variables'] = '{"x": 7}'
        assert self.attribute('variables') == {'x': 7}


class ActionTest(_Common, NamedTest):
    TYPE = 'OS::Mistral::Action'
    ERRORS = (
        exception.ResourcePropertyConflict,
        exception.PropertyUnspecifiedError,
    )
    NAME = 'actions'
    PROPERTIES = {
        'name': 'mine',
        'base': 'std.echo',
        'base_input': {'output': '<% $.who %>'},
        'input': ['who', {'times': 1}],
    }
    CHANGED = {'base_input': {'output': 'hello <% $.who %>'}}
    DEFINITION = 'greet:\n  base: std.echo\n  base-input: {output: hi}\n'

    def setUp(self):
        super().setUp()
        self.manager = self.mistral.actions

    def add(self, name):
        self.manager.add(f"version: '2.0'\n{name}: {{base: std.echo}}\n")

    def invalid(self, **properties):
        return super().invalid(
            **{**dict.fromkeys(self.PROPERTIES), **properties}
        )

    def test_the_properties_make_a_definition(self):
        self.make()
        text = self.made()['mine']['definition']
        assert yaml.safe_load(text) == {
            'version': '2.0',
            'mine': {
                'base': 'std.echo',
                'base-input': {'output': '<% $.who %>'},
                'input': ['who', {'times': 1}],
            },
        }
        assert 'who' in self.attribute('input')

    def test_a_definition_gets_the_name(self):
        self.make(**dict.fromkeys(self.PROPERTIES), definition=self.DEFINITION)
        ((name, row),) = self.made().items()
        self.assertRegex(name, '^stack-it-')
        assert yaml.safe_load(row['definition'])[name] == {
            'base': 'std.echo',
            'base-input': {'output': 'hi'},
        }

    def test_a_template_of_the_type_can_be_had(self):
        found = action.Action.resource_to_template(self.TYPE, 'hot')
        assert 'output' in found['parameters']

    def test_a_value_that_comes_twice_is_written_twice(self):
        # As a template's json parameter is that is got in two places;
        # Mistral knows no anchors.
        shared = {'region': 'north'}
        self.make(base_input={'output': [shared, shared]})
        text = self.made()['mine']['definition']
        assert text.count('region: north') == 2
        assert text.startswith("version: '2.0'\n")

    def test_what_is_no_action_is_refused(self):
        for properties, said in (
            ({'input': ['a']}, 'definition'),
            ({'definition': 'a: {base: b}', 'base': 'c'}, 'definition'),
            ({'definition': 'a: {base: b}\nc: {base: d}'}, 'has 2 actions'),
            ({'definition': 'a: ['}, 'not YAML'),
            ({'definition': 'a: {input: [c]}'}, "'base' is required"),
            ({'base': 'b', 'base_input': {'c': '<% $. '}}, 'Parse error'),
        ):
            assert said in self.invalid(**properties)
