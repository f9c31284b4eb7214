# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger."""

import itertools
import json

from heat.common import exception
from heat.engine.resources.openstack.mistral import cron_trigger as heats_own

from heat_plugins.resources import cron_trigger
from tests.unit.resources import fake_mistral

REFUSED = fake_mistral.refused(400, 'Some reason')
HOURLY, LATER = '0 * * * *', '5 * * * *'


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


class MakingTest(CronTriggerTest):
    def test_a_template_of_heats_own_class_makes_the_same_trigger(self):
        ours, own = cron_trigger.CronTrigger, heats_own.CronTrigger
        assert own.attributes_schema.keys() <= ours.attributes_schema.keys()
        assert own.properties_schema.keys() == ours.properties_schema.keys()
        trigger = self.make(count=3)
        assert trigger.FnGetRefId() == 'nightly'
        expected = {'name': 'nightly', 'workflow_name': 'tidy'}
        expected |= {'pattern': HOURLY, 'remaining_executions': 3}
        row = self.triggers.only()
        assert expected.items() <= row.items()
        assert json.loads(row['workflow_input']) == {'what': 'all'}
        # Its attributes follow it, and are null while Mistral is away.
        self.triggers.fire('nightly')
        self.mistral.fail('cron_triggers.get', fake_mistral.DOWN)
        assert self.attribute('remaining_executions') is None
        for name, value in (
            ('remaining_executions', 2),
            ('next_execution_time', '2030-01-01 14:00:00'),
            (
                'upcoming_executions',
                ['2030-01-01 14:00 UTC', '2030-01-01 15:00 UTC'],
            ),
        ):
            assert self.attribute(name) == value

    def test_the_workflow_may_be_a_text_and_a_first_time_alone_runs_once(self):
        self.mistral.workflows.add('simple')
        # A past first time is left out.
        self.make(workflow='simple', first_time='2020-01-01 00:00')
        row = self.triggers.only()
        assert row['workflow_name'] == 'simple'
        assert row['first_execution_time'] is None
        later = '2030-01-02 00:00'
        self.update(pattern=None, workflow='simple', first_time=later)
        assert self.triggers.only()['remaining_executions'] == 1

    def test_what_cannot_be_is_refused_before_anything_is_made(self):
        for properties, said in (
            ({'pattern': '0 25 * * *'}, 'it.properties.pattern: '),
            ({'pattern': '0 25 * * *'}, 'CRON expression'),
            ({'pattern': None}, 'pattern'),
            ({'count': 0}, 'count'),
            ({'workflow': 'gone'}, 'there is no workflow "gone"'),
            ({'workflow': ['tidy']}, 'must be a text, or a map'),
        ):
            assert said in self.invalid(**properties)
        # Nothing is because Mistral is away.
        self.mistral.fail('workflows.get', fake_mistral.DOWN)
        self.make()
        assert self.triggers.only()['name'] == 'nightly'

    def test_what_mistral_refuses_is_told_in_its_words(self):
        for properties, said in (
            ({'workflow': 'tidy'}, "missing=['what']"),
            ({'first_time': '2030-01-01 12:01'}, 'at least 1 minute in'),
            (
                {'pattern': None, 'first_time': '2020-01-01 00:00'},
                'at least 1 minute in',
            ),
        ):
            reason = self.refused(**properties)
            assert 'cannot create the cron trigger: Mistral' in reason
            assert said in reason
            self.heat.delete(self.stack)
            assert self.triggers.rows == {}

    def test_a_name_that_is_taken_is_left_alone(self):
        theirs = {'pattern': '1 1 * * *', 'workflow_input': {'what': 1}}
        self.triggers.add('nightly', 'tidy', theirs)
        reason = self.refused()
        assert 'another cron trigger "nightly"' in reason
        self.heat.delete(self.stack)
        assert self.triggers.only()['pattern'] == '1 1 * * *'


class UpdatingTest(CronTriggerTest):
    def test_any_change_leaves_one_trigger_of_its_name(self):
        self.make()
        for changed in (
            {'pattern': LATER},
            {'workflow': {'name': 'tidy', 'input': {'what': 'little'}}},
            {'count': 7},
            {'first_time': '2030-02-01 00:00'},
        ):
            before = self.it.id
            self.update(**changed)
            assert self.triggers.only()['name'] == 'nightly'
            assert self.mistral.trusts == 1
            assert self.it.id == before
        # No change of it leaves it alone.
        same = self.template(**changed)
        same['resources']['it']['metadata'] = {'a': 1}
        self.heat.update(self.stack, same)
        assert (
            self.mistral.changes()
            == ['cron_triggers.delete', 'cron_triggers.create'] * 4
        )

    def test_without_a_name_the_new_one_comes_first(self):
        self.make(name=None)
        former = self.triggers.only()['name']
        assert former.startswith('stack-it-')
        self.update(name=None, pattern=LATER)
        assert self.triggers.only()['name'] != former
        self.update(name='daily', pattern=LATER)
        assert self.triggers.only()['name'] == 'daily'
        both = ['cron_triggers.create', 'cron_triggers.delete']
        assert self.mistral.changes() == both * 2

    def test_a_first_time_that_has_passed_since_is_left_out(self):
        self.make(first_time='2030-01-01 18:00')
        self.triggers.fire('nightly', 2)
        self.update(first_time='2030-01-01 18:00', pattern=LATER)
        row = self.triggers.only()
        assert row['first_execution_time'] is None
        assert row['next_execution_time'] == '2030-01-01 19:05:00'

    def test_an_unchanged_count_goes_on_with_what_remains(self):
        self.make(count=5)
        for times, pattern, remaining in ((2, LATER, 3), (1, '6 * * * *', 2)):
            self.triggers.fire('nightly', times)
            self.update(count=5, pattern=pattern)
            assert self.triggers.only()['remaining_executions'] == remaining

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
        row = self.triggers.only()
        assert row['pattern'] == HOURLY
        assert row['remaining_executions'] == 3
        assert json.loads(row['workflow_input']) == {'what': 'all'}
        assert self.mistral.trusts == 1

    def test_the_next_update_creates_what_could_not_come_back(self):
        self.make()
        self.mistral.fail('cron_triggers.create', REFUSED, REFUSED)
        reason = self.refused_update(pattern=LATER)
        assert 'The former trigger is deleted, and' in reason
        assert self.triggers.rows == {}
        self.check_fails()
        self.update(pattern=LATER)
        assert self.triggers.only()['pattern'] == LATER


class FormerReleaseTest(CronTriggerTest):
    """Triggers of Heat's own class, and of the release before this one."""

    #: What the former release kept: a record and, after a crash, a note.
    RECORD = {
        'trigger': json.dumps(
            {
                'id': 'some',
                'made': '2030-01-01T12:00:30',
                'order': {'name': 'nightly', 'count': 5},
                'wanted': {'name': 'nightly', 'count': 5},
            }
        ),
        'trigger_note': json.dumps({'order': {'name': 'nightly'}}),
    }

    def test_they_go_on(self):
        for data in ({}, self.RECORD):
            self.make(count=5)
            for key, value in data.items():
                self.it.data_set(key, value, redact=True)
            self.triggers.fire('nightly', 2)
            assert self.attribute('remaining_executions') == 3
            self.heat.run(self.stack, self.stack.CHECK)
            self.update(count=5, pattern=LATER)
            row = self.triggers.only()
            assert row['pattern'] == LATER
            assert row['remaining_executions'] == 3
            self.heat.delete(self.stack)
            assert self.triggers.rows == {}


class CrashTest(CronTriggerTest):
    """An engine that dies in an update, and another one that goes on."""

    class Crash(BaseException):
        """The engine is gone: nothing after this runs."""

    def crash(self, call, effect, action='CREATE', **changed):
        self.mistral.fail(call, self.Crash(), effect=effect)
        template = self.template(**changed)
        runner = self.heat.begin(self.stack, action, template)
        self.assertRaises(self.Crash, lambda: [*iter(runner.step, True)])
        self.stack = self.heat.load(self.stack)

    def test_the_next_update_leaves_one_trigger(self):
        for call, effect in itertools.product(
            ('cron_triggers.delete', 'cron_triggers.create'), (False, True)
        ):
            self.make()
            self.crash(call, effect, 'UPDATE', pattern=LATER)
            self.update(pattern='6 * * * *')
            assert self.triggers.only()['pattern'] == '6 * * * *'
            self.heat.delete(self.stack)
            assert (self.triggers.rows, self.mistral.trusts) == ({}, 0)

    def test_a_create_that_crashed_leaves_nothing_when_deleted(self):
        for effect in (False, True):
            self.stack = self.heat.stack(self.template())
            self.crash('cron_triggers.create', effect)
            self.heat.delete(self.stack)
            assert self.triggers.rows == {}


class GoneTest(CronTriggerTest):
    def test_one_that_has_run_out_is_created_by_an_update(self):
        self.make(count=2)
        self.triggers.fire('nightly', 2)
        assert self.triggers.rows == {}
        assert self.attribute('remaining_executions') == 0
        assert self.attribute('next_execution_time') is None
        assert self.attribute('upcoming_executions') == []
        self.update(count=2, pattern=LATER)
        assert self.triggers.only()['remaining_executions'] == 2
        self.triggers.fire('nightly', 2)
        self.heat.delete(self.stack)

    def test_one_that_others_deleted_fails_a_check_until_an_update(self):
        self.make()
        self.triggers.remove('nightly')
        assert 'is no longer in Mistral' in self.check_fails()
        before = self.it.id
        self.update()
        assert self.triggers.only()['name'] == 'nightly'
        assert self.it.id == before


class OutageTest(CronTriggerTest):
    """A Mistral that is down, or answers 503, during each of its calls."""

    def fail(self, error, effect):
        """Let each call fail twice, once after it has had its effect."""
        self.mistral.faults.clear()
        for call in ('workflows.get', 'cron_triggers.get'):
            self.mistral.fail(call, error)
        for call in ('cron_triggers.delete', 'cron_triggers.create'):
            self.mistral.fail(call, error, effect=effect)
            self.mistral.fail(call, error)

    def test_passing_errors_are_ridden_out(self):
        errors = (fake_mistral.DOWN, fake_mistral.UNAVAILABLE)
        for given in itertools.product(errors, (False, True)):
            self.fail(*given)
            self.make(count=5)
            self.triggers.fire('nightly', 2)
            self.fail(*given)
            self.update(count=5, pattern=LATER)
            row = self.triggers.only()
            assert row['pattern'] == LATER
            assert row['remaining_executions'] == 3
            self.fail(*given)
            self.heat.run(self.stack, self.stack.CHECK)
            self.heat.delete(self.stack)
            self.mistral.faults.clear()
            assert (self.triggers.rows, self.mistral.trusts) == ({}, 0)

    def test_a_mistral_that_stays_away_is_named_in_the_reason(self):
        self.no_patience()
        away = fake_mistral.UNAVAILABLE
        self.mistral.fail('cron_triggers.create', away)
        assert 'Mistral answers 503: no reason given' in self.refused()
        self.heat.delete(self.stack)
        self.make()
        self.mistral.fail('cron_triggers.create', away, away)
        self.refused_update(pattern=LATER)
        assert self.triggers.rows == {}
        self.update(pattern=LATER)
        assert self.triggers.only()['pattern'] == LATER
