# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::EventTrigger."""

import json

from heat_plugins.resources import event_trigger
from tests.unit.resources import fake_mistral

PLACE = {
    'exchange': 'nova',
    'topic': 'notifications',
    'event': 'compute.instance.create.end',
}


class EventTriggerTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::EventTrigger'
    TYPES = {TYPE: event_trigger.EventTrigger}
    PROPERTIES = {
        'workflow': {'name': 'tidy', 'input': {'what': 'all'}},
        **PLACE,
    }

    def setUp(self):
        super().setUp()
        self.tidy = self.mistral.workflows.add('tidy', 'what', {'where': 1})
        self.other = self.mistral.workflows.add('other')
        self.triggers = self.mistral.event_triggers

    def other_trigger(self, **values):
        """Make a trigger that is somebody else's."""
        others = {'name': 'theirs', 'workflow_id': self.tidy, **PLACE}
        given = {'workflow_input': {'what': 1}, 'workflow_params': {}}
        return self.triggers.add(**others, **given, **values)

    def test_it_is_made_as_the_template_says(self):
        params = {'env': {'a': 1}}
        resource = self.make(
            name='mine',
            workflow={**self.PROPERTIES['workflow'], 'params': params},
        )
        row = self.triggers.only()
        assert resource.FnGetRefId() == row['id']
        expected = {'name': 'mine', 'workflow_id': self.tidy, **PLACE}
        assert expected.items() <= row.items()
        assert json.loads(row['workflow_input']) == {'what': 'all'}
        assert json.loads(row['workflow_params']) == params

    def test_what_mistral_can_change_changes_in_place(self):
        before = self.make(name='mine').resource_id
        self.update(name='yours', workflow='other')
        assert self.mistral.changes() == ['event_triggers.update']
        row = self.triggers.only()
        expected = {'id': before, 'name': 'yours', 'workflow_id': self.other}
        assert expected.items() <= row.items()
        assert json.loads(row['workflow_input']) == {}
        # Another event is another trigger.
        self.update(event='compute.instance.delete.end')
        row = self.triggers.only()
        assert row['id'] != before
        assert row['event'] == 'compute.instance.delete.end'
        assert self.mistral.trusts == 1

    def test_what_cannot_be_is_refused_before_anything_is_made(self):
        for properties, said in (
            ({'workflow': ['tidy']}, 'must be a text, or a map'),
            ({'workflow': 'lost'}, 'there is no workflow "lost"'),
            ({'event': None}, 'event'),
            ({'event': ''}, 'event'),
            ({'topic': 'x' * 81}, 'topic'),
        ):
            assert said in self.invalid(**properties)
        assert self.triggers.rows == {}

    def test_a_trigger_of_somebody_else_is_not_taken_over(self):
        self.other_trigger()
        assert 'Duplicate entry' in self.refused()
        self.heat.delete(self.heat.load(self.stack))
        assert self.triggers.only()['name'] == 'theirs'
        # A public one of another project is no hindrance.
        self.triggers.rows.clear()
        self.other_trigger(project_id='f' * 32, scope='public')
        self.make()
        assert len(self.triggers.rows) == 2

    def test_passing_errors_are_ridden_out_and_make_nothing_twice(self):
        for effect in (False, True):
            self.mistral.fail(
                'event_triggers.create',
                fake_mistral.UNAVAILABLE,
                fake_mistral.DOWN,
                effect=effect,
            )
            self.make()
            self.triggers.only()
            self.heat.delete(self.heat.load(self.stack))
            assert self.triggers.rows == {}
            self.mistral.faults.clear()
        self.mistral.fail('event_triggers.delete', fake_mistral.DOWN)
        self.make()
        self.heat.delete(self.heat.load(self.stack))
        assert (self.triggers.rows, self.mistral.trusts) == ({}, 0)

    def test_a_workflow_that_goes_meanwhile_is_missed(self):
        self.mistral.fail('workflows.get', fake_mistral.DOWN)
        assert 'lost not found' in self.refused(workflow='lost')
        self.make()
        self.mistral.fail('workflows.get', fake_mistral.DOWN)
        reason = self.refused_update(workflow='lost')
        assert 'cannot read the workflow: Mistral' in reason

    def test_one_that_is_gone_fails_a_check_and_is_made_by_an_update(self):
        self.make()
        self.triggers.rows.clear()
        assert 'no longer in Mistral' in self.check_fails()
        self.update()
        assert self.triggers.only()['workflow_id'] == self.tidy
