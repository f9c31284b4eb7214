# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Environment and OS::Mistral::Action.

The first shows what holds for each type that is an object of Mistral's.
"""

import json

from heat.common import exception
import yaml

from heat_plugins.resources import action
from heat_plugins.resources import environment
from tests.unit.resources import fake_mistral

REFUSED = fake_mistral.refused(400, 'not so')


class EnvironmentTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::Environment'
    TYPES = {TYPE: environment.Environment}
    PROPERTIES = {'name': 'mine', 'variables': {'a': {'b': 1}}}
    CHANGED = {'variables': {}, 'description': 'new'}

    def setUp(self):
        super().setUp()
        self.environments = self.mistral.environments

    def names(self):
        return [row['name'] for row in self.environments.rows.values()]

    def test_a_change_is_an_update_and_another_name_another_one(self):
        found = self.make()
        row = self.environments.only()
        assert json.loads(row['variables']) == {'a': {'b': 1}}
        # Data of the former release is no hindrance.
        found.data_set('id', row['id'])
        self.update(**self.CHANGED)
        assert self.mistral.changes() == ['environments.update']
        assert self.environments.only() is row
        assert json.loads(row['variables']) == {}
        row['variables'] = '{"x": 7}'
        assert self.attribute('variables') == {'x': 7}
        # Nothing of it is known while Mistral is away.
        self.mistral.fail('environments.get', fake_mistral.DOWN)
        assert self.attribute('variables') is None
        # One that somebody deleted is made again.
        self.environments.rows.clear()
        assert 'the environment is no longer in Mistral' in self.check_fails()
        self.update()
        self.heat.run(self.stack, self.stack.CHECK)
        self.update(name='other')
        assert self.names() == ['other']
        # Without a name it gets one of its own.
        self.update(name=None)
        (name,) = self.names()
        assert name.startswith('stack-it-')
        assert self.it.FnGetRefId() == name
        assert self.delete() == []

    def test_what_mistral_refuses_leaves_nothing_and_is_mended(self):
        self.environments.create(name='mine')
        assert '"mine" already' in self.refused()
        self.delete()
        assert self.names() == ['mine']
        self.environments.rows.clear()
        self.mistral.fail('environments.create', REFUSED)
        assert 'cannot create the environment: Mistral' in self.refused()
        assert self.names() == []
        self.update()
        assert self.names() == ['mine']
        assert self.delete() == []
        # One made behind an outage goes with the stack.
        self.no_patience()
        away = fake_mistral.UNAVAILABLE
        self.mistral.fail('environments.create', away, effect=True)
        assert 'Mistral answers 503: no reason given' in self.refused()
        assert self.names() == ['mine']
        assert self.delete() == []

    def test_passing_errors_are_ridden_out(self):
        away = fake_mistral.UNAVAILABLE
        for effect, error in ((False, fake_mistral.DOWN), (True, away)):
            for call in ('get', 'create', 'update', 'delete'):
                self.mistral.fail(
                    f'environments.{call}', error, error, effect=effect
                )
            self.make()
            self.update(**self.CHANGED)
            assert self.names() == ['mine']
            assert self.delete() == []
            self.mistral.faults.clear()


class ActionTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::Action'
    TYPES = {TYPE: action.Action}
    ERRORS = (
        exception.ResourcePropertyConflict,
        exception.PropertyUnspecifiedError,
    )
    PROPERTIES = {
        'name': 'mine',
        'base': 'std.echo',
        'base_input': {'output': '<% $.who %>'},
        'input': ['who', {'times': 1}],
    }

    def content(self):
        row = self.mistral.actions.only()
        text = row['definition']
        assert text.startswith("version: '2.0'\n")
        return row['name'], yaml.safe_load(text)[row['name']]

    def test_the_properties_or_a_definition_make_an_action(self):
        # As a template's json parameter is that is got in two places;
        # Mistral knows no anchors.
        shared = {'region': 'north'}
        output = {'who': '<% $.who %>', 'two': [shared, shared]}
        self.make(base_input={'output': output})
        text = self.mistral.actions.only()['definition']
        assert text.count('region: north') == 2
        expected = {
            'base': 'std.echo',
            'base-input': {'output': output},
            'input': ['who', {'times': 1}],
        }
        assert self.content() == ('mine', expected)
        assert 'who' in self.attribute('input')
        self.update(base_input=None)
        assert self.mistral.changes() == ['actions.update']
        del expected['base-input']
        assert self.content() == ('mine', expected)
        # A definition gets the name.
        definition = 'greet:\n  base: std.echo\n  base-input: {output: hi}\n'
        none = dict.fromkeys(self.PROPERTIES)
        self.update(**none, definition=definition)
        name, content = self.content()
        assert name.startswith('stack-it-')
        assert content == {'base': 'std.echo', 'base-input': {'output': 'hi'}}
        assert self.delete() == []

    def test_what_is_no_action_is_refused(self):
        for properties, said in (
            ({'input': ['a']}, 'definition'),
            ({'definition': 'a: {base: b}', 'base': 'c'}, 'definition'),
            ({'definition': 'a: {base: b}\nc: {base: d}'}, 'has 2 actions'),
            ({'definition': 'a: ['}, 'not YAML'),
            ({'definition': 'a: {input: [c]}'}, "'base' is required"),
        ):
            given = {**dict.fromkeys(self.PROPERTIES), **properties}
            assert said in self.invalid(**given)
        found = action.Action.resource_to_template(self.TYPE, 'hot')
        assert 'output' in found['parameters']
