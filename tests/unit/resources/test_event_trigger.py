# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::EventTrigger.

What holds of each object of Mistral's is in test_mistral_named.py.
"""

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
        self.triggers = self.mistral.event_triggers

    def test_what_mistral_can_change_changes_in_place(self):
        other = self.mistral.workflows.add('other')
        workflow = {**self.PROPERTIES['workflow'], 'params': {'env': {'a': 1}}}
        number = self.make(name='mine', workflow=workflow).FnGetRefId()
        row = self.triggers.only()
        made = {'id': number, 'name': 'mine', 'workflow_id': self.tidy}
        assert (made | PLACE).items() <= row.items()
        assert json.loads(row['workflow_input']) == {'what': 'all'}
        assert json.loads(row['workflow_params']) == {'env': {'a': 1}}
        self.update(name='yours', workflow='other')
        assert self.mistral.changes() == ['event_triggers.update']
        row = self.triggers.only()
        changed = {'id': number, 'name': 'yours', 'workflow_id': other}
        assert changed.items() <= row.items()
        assert json.loads(row['workflow_input']) == {}
        # Another event is another trigger.
        self.update(event='compute.instance.delete.end')
        assert self.triggers.only()['id'] != number
        # One that is gone fails a check, and an update makes it.
        self.triggers.rows.clear()
        assert 'no longer in Mistral' in self.check_fails()
        self.update()
        assert self.triggers.only()['workflow_id'] == self.tidy
        # A workflow that goes meanwhile is missed.
        self.mistral.fail('workflows.get', fake_mistral.DOWN)
        reason = self.refused_update(workflow='lost')
        assert 'cannot read the workflow: Mistral' in reason

    def test_nothing_is_made_twice_taken_over_or_wrong(self):
        for properties, said in (
            ({'workflow': ['tidy']}, 'must be a text, or a map'),
            ({'workflow': 'lost'}, 'there is no workflow "lost"'),
            ({'event': None}, 'event'),
            ({'event': ''}, 'event'),
            ({'topic': 'x' * 81}, 'topic'),
        ):
            assert said in self.invalid(**properties)
        assert self.triggers.rows == {}
        values = {'workflow_id': self.tidy, **PLACE, 'workflow_params': {}}
        theirs = {**values, 'name': 'theirs', 'workflow_input': {'what': 1}}
        self.triggers.create(**theirs)
        assert 'Duplicate entry' in self.refused()
        (row,) = self.delete()
        assert row['name'] == 'theirs'
        # A public one of another project is no hindrance.
        row['project_id'] = 'f' * 32
        away = fake_mistral.UNAVAILABLE, fake_mistral.DOWN
        for effect in (False, True):
            self.mistral.fail('event_triggers.create', *away, effect=effect)
            self.mistral.fail('event_triggers.delete', *away)
            self.make()
            assert len(self.triggers.rows) == 2
            assert self.delete() == [row]
            self.mistral.faults.clear()
