# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Environment and OS::Mistral::Action."""

import json

from heat.common import exception
import yaml

from heat_plugins.resources import action
from heat_plugins.resources import environment
from tests.unit.resources import fake_mistral


class NamedTest(fake_mistral.MistralTestCase):
    TYPES = {
        'OS::Mistral::Environment': environment.Environment,
        'OS::Mistral::Action': action.Action,
    }

    @property
    def manager(self):
        return getattr(self.mistral, self.NAME)

    def made(self):
        """Return what is there, by name."""
        rows = {row['name']: row for row in self.manager.rows.values()}
        rows.pop('std.echo', None)
        return rows


class _Common:
    """What holds for both."""

    def gone(self):
        """Delete the stack; say whether all has gone."""
        self.heat.delete(self.stack)
        return self.made() == {}

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
        assert name.startswith('stack-it-')
        assert self.it.FnGetRefId() == name
        assert self.gone()

    def test_a_name_that_is_taken_is_left_alone(self):
        self.add('mine')
        assert '"mine" already' in self.refused()
        self.heat.delete(self.stack)
        assert list(self.made()) == ['mine']

    def test_one_that_somebody_deleted_is_made_again(self):
        self.make()
        self.manager.remove('mine')
        self.check_fails()
        self.update()
        assert list(self.made()) == ['mine']
        self.heat.run(self.stack, self.stack.CHECK)

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
            assert self.gone()
            self.mistral.faults.clear()

    def test_what_mistral_refuses_leaves_nothing_and_is_mended(self):
        refused = fake_mistral.refused(400, 'not so')
        self.mistral.fail(f'{self.NAME}.create', refused)
        assert 'not so' in self.refused()
        assert self.made() == {}
        self.update()
        assert list(self.made()) == ['mine']
        assert self.gone()
        # One made behind an outage goes with the stack.
        self.no_patience()
        away = fake_mistral.UNAVAILABLE
        self.mistral.fail(f'{self.NAME}.create', away, effect=True)
        self.refused()
        assert list(self.made()) == ['mine']
        assert self.gone()


class EnvironmentTest(_Common, NamedTest):
    TYPE = 'OS::Mistral::Environment'
    NAME = 'environments'
    PROPERTIES = {'name': 'mine', 'variables': {'a': {'b': 1}}}
    CHANGED = {'variables': {'a': 2}, 'description': 'new'}

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

    def add(self, name):
        self.manager.add(f"version: '2.0'\n{name}: {{base: std.echo}}\n")

    def invalid(self, **properties):
        given = {**dict.fromkeys(self.PROPERTIES), **properties}
        return super().invalid(**given)

    def test_the_properties_make_a_definition(self):
        # As a template's json parameter is that is got in two places;
        # Mistral knows no anchors.
        shared = {'region': 'north'}
        output = {'who': '<% $.who %>', 'two': [shared, shared]}
        self.make(base_input={'output': output})
        text = self.made()['mine']['definition']
        assert text.startswith("version: '2.0'\n")
        assert text.count('region: north') == 2
        assert yaml.safe_load(text)['mine'] == {
            'base': 'std.echo',
            'base-input': {'output': output},
            'input': ['who', {'times': 1}],
        }
        assert 'who' in self.attribute('input')

    def test_a_definition_gets_the_name(self):
        self.make(**dict.fromkeys(self.PROPERTIES), definition=self.DEFINITION)
        ((name, row),) = self.made().items()
        assert name.startswith('stack-it-')
        definition = {'base': 'std.echo', 'base-input': {'output': 'hi'}}
        assert yaml.safe_load(row['definition'])[name] == definition

    def test_a_template_of_the_type_can_be_had(self):
        found = action.Action.resource_to_template(self.TYPE, 'hot')
        assert 'output' in found['parameters']

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
