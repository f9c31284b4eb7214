# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger.

What holds of each object of Mistral's is in test_mistral_named.py.
"""

import itertools
import json

from heat.common import exception
from heat.engine.resources.openstack.mistral import cron_trigger as heats_own

from heat_plugins.resources import cron_trigger
from tests.unit.resources import fake_mistral

REFUSED = fake_mistral.refused(400, 'Some reason')
HOURLY, LATER = '0 * * * *', '5 * * * *'


def test_it_has_heats_properties_and_attributes():
    ours, own = cron_trigger.CronTrigger, heats_own.CronTrigger
    # A resource adds those that all types have to its class's own.
    named = own.attributes_schema.keys() - own.base_attributes_schema
    assert named <= ours.attributes_schema.keys()
    assert own.properties_schema.keys() == ours.properties_schema.keys()


class Crash(BaseException):
    """The engine is gone: nothing after this runs."""


class CronTriggerTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::CronTrigger'
    ERRORS = (exception.PropertyUnspecifiedError,)
    TYPES = {TYPE: cron_trigger.CronTrigger}
    PROPERTIES = {
        'name': 'nightly',
        'pattern': HOURLY,
        'workflow': {'name': 'tidy', 'input': {'what': 'all'}},
    }

    def setUp(self):
        super().setUp()
        self.mistral.workflows.add('tidy', 'what', {'where': 'here'})
        self.triggers = self.mistral.cron_triggers

    def assert_row(self, **expected):
        row = self.triggers.only()
        assert expected.items() <= row.items()

    def assert_shows(self, *values):
        names = 'remaining', 'upcoming'
        found = [self.attribute(f'{name}_executions') for name in names]
        assert (*found, self.attribute('next_execution_time')) == values

    def test_it_is_made_as_heats_own_and_shows_what_is_to_come(self):
        trigger = self.make(count=2)
        assert trigger.FnGetRefId() == 'nightly'
        self.assert_row(
            name='nightly',
            workflow_name='tidy',
            pattern=HOURLY,
            remaining_executions=2,
            workflow_input='{"what": "all"}',
        )
        self.triggers.fire('nightly')
        self.assert_shows(1, ['2030-01-01 14:00 UTC'], '2030-01-01 14:00:00')
        # After the last run it is gone, and complete.
        self.triggers.fire('nightly')
        assert self.triggers.rows == {}
        self.assert_shows(0, [], None)
        self.heat.run(self.stack, self.stack.CHECK)
        self.update(count=2, pattern=LATER)
        self.assert_row(remaining_executions=2)
        self.triggers.fire('nightly', 2)
        assert self.delete() == []
        # The workflow may be a text, and a past first time is left out.
        self.mistral.workflows.add('simple')
        self.make(workflow='simple', first_time='2020-01-01 00:00')
        self.assert_row(workflow_name='simple', first_execution_time=None)
        self.triggers.rows.clear()
        assert 'is no longer in Mistral' in self.check_fails()
        later = '2030-01-02 00:00'
        self.update(pattern=None, workflow='simple', first_time=later)
        self.assert_row(remaining_executions=1)

    def test_what_cannot_be_is_refused(self):
        for properties, said in (
            ({'pattern': '0 25 * * *'}, 'it.properties.pattern: '),
            ({'pattern': None}, 'pattern'),
            ({'count': 0}, 'count'),
            ({'workflow': 'gone'}, 'there is no workflow "gone"'),
            ({'workflow': ['tidy']}, 'must be a text, or a map'),
        ):
            assert said in self.invalid(**properties)
        # Nothing is because Mistral is away. It has its own words.
        for properties, said in (
            ({'workflow': 'tidy'}, "missing=['what']"),
            ({'first_time': '2030-01-01 12:01'}, 'at least 1 minute in'),
            (
                {'pattern': None, 'first_time': '2020-01-01 00:00'},
                'at least 1 minute in',
            ),
        ):
            self.mistral.fail('workflows.get', fake_mistral.DOWN)
            reason = self.refused(**properties)
            assert 'cannot create the cron trigger: Mistral' in reason
            assert said in reason
            assert self.delete() == []
        # A name that is taken is left alone.
        self.triggers.create('nightly', 'tidy', {'what': 1}, pattern=LATER)
        assert 'another cron trigger "nightly"' in self.refused()
        (theirs,) = self.delete()
        assert theirs['pattern'] == LATER

    def test_any_change_leaves_one_trigger(self):
        given = {'count': 5, 'first_time': '2030-01-01 18:00'}
        before = self.make(**given).id
        self.triggers.fire('nightly', 2)
        other, due = {'name': 'tidy', 'input': {'what': 1}}, '2030-02-01 00:00'
        three = {'remaining_executions': 3}
        for changed, expected in (
            # A first time that has passed is left out, and the count goes on.
            ({'pattern': LATER}, {'first_execution_time': None, **three}),
            ({'workflow': other}, {'workflow_input': '{"what": 1}', **three}),
            ({'count': 7}, {'remaining_executions': 7}),
            ({'first_time': due}, {'first_execution_time': f'{due}:00'}),
        ):
            given |= changed
            self.update(**given)
            self.assert_row(name='nightly', **expected)
            assert self.it.id == before
        # No change of it leaves it alone.
        same = self.template(**given)
        same['resources']['it']['metadata'] = {'a': 1}
        self.heat.update(self.stack, same)
        both = ['cron_triggers.delete', 'cron_triggers.create']
        assert self.mistral.changes() == both * 4
        assert self.delete() == []
        # Without a name the new one comes first.
        self.make(name=None)
        former = self.triggers.only()['name']
        assert former.startswith('stack-it-')
        self.update(name=None, pattern=LATER)
        assert self.triggers.only()['name'] != former
        self.update(name='daily', pattern=LATER)
        self.assert_row(name='daily')
        assert self.mistral.changes() == both[::-1] * 2

    def test_the_former_trigger_comes_back_when_the_new_one_is_refused(self):
        # Its past first time does not keep it from that.
        given = {'count': 5, 'first_time': '2030-01-01 18:00'}
        self.make(**given)
        self.triggers.fire('nightly', 2)
        self.mistral.fail('cron_triggers.create', REFUSED)
        reason = self.refused_update(**given, pattern=LATER)
        assert (
            'cannot create the cron trigger: Mistral answers 400: Some '
            'reason The former trigger has been created again.'
        ) in reason
        former = {'workflow_input': '{"what": "all"}'}
        self.assert_row(pattern=HOURLY, remaining_executions=3, **former)
        # The next update creates what could not come back.
        self.mistral.fail('cron_triggers.create', REFUSED, REFUSED)
        reason = self.refused_update(pattern=LATER)
        assert 'The former trigger is deleted, and' in reason
        assert self.triggers.rows == {}
        self.update(pattern=LATER)
        self.assert_row(pattern=LATER, remaining_executions=None)

    def crash(self, call, effect, action='CREATE', **changed):
        """Let the engine die in a call; the next one has the stack."""
        self.mistral.fail(call, Crash(), effect=effect)
        template = self.template(**changed)
        runner = self.heat.begin(self.stack, action, template)
        self.assertRaises(Crash, lambda: [*iter(runner.step, True)])
        self.stack = self.heat.load(self.stack)

    def fail(self, error, effect):
        """Let each call fail twice, once after it has had its effect."""
        self.mistral.faults.clear()
        self.mistral.fail('cron_triggers.get', error)
        for call in ('cron_triggers.delete', 'cron_triggers.create'):
            self.mistral.fail(call, error, effect=effect)
            self.mistral.fail(call, error)

    def test_neither_a_crash_nor_an_outage_leaves_or_loses_a_trigger(self):
        for call, effect in itertools.product(
            ('cron_triggers.delete', 'cron_triggers.create'), (False, True)
        ):
            self.make()
            self.crash(call, effect, 'UPDATE', pattern=LATER)
            self.update(pattern='6 * * * *')
            self.assert_row(pattern='6 * * * *')
            assert self.delete() == []
            self.stack = self.heat.stack(self.template())
            self.crash('cron_triggers.create', effect)
            assert self.delete() == []
            error = fake_mistral.DOWN if effect else fake_mistral.UNAVAILABLE
            self.fail(error, effect)
            self.make(count=5)
            # What the former release kept, beside the same trigger.
            order = {'name': 'nightly', 'count': 5}
            self.it.data_set('trigger', json.dumps({'order': order}))
            self.triggers.fire('nightly', 2)
            self.fail(error, effect)
            self.update(count=5, pattern=LATER)
            self.assert_row(pattern=LATER, remaining_executions=3)
            self.fail(error, effect)
            assert self.delete() == []
            self.mistral.faults.clear()
