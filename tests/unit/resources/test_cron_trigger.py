# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger."""

import itertools
import json

from heat.common import exception
from heat.engine.resources.openstack.mistral import cron_trigger as heats_own
from oslo_config import cfg
import testtools

from heat_plugins.resources import cron_trigger
from tests.unit.resources import fake_mistral

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
        trigger = self.make(count=3)
        assert trigger.FnGetRefId() == 'nightly'
        row = self.triggers.only()
        assert (
            row['name'],
            row['workflow_name'],
            row['pattern'],
            row['remaining_executions'],
        ) == ('nightly', 'tidy', HOURLY, 3)
        assert json.loads(row['workflow_input']) == {'what': 'all'}
        # Its attributes follow it, and are null while Mistral is away.
        self.triggers.fire('nightly')
        self.mistral.fail('cron_triggers.get', fake_mistral.DOWN)
        assert self.attribute('remaining_executions') is None
        assert self.attribute('remaining_executions') == 2
        assert self.attribute('next_execution_time') == '2030-01-01 14:00:00'
        assert self.attribute('upcoming_executions') == [
            '2030-01-01 14:00 UTC',
            '2030-01-01 15:00 UTC',
        ]

    def test_without_a_name_it_gets_one_of_its_own(self):
        self.mistral.workflows.add('simple')
        # The workflow may be a text; a past first time is left out.
        self.make(name=None, workflow='simple', first_time='2020-01-01 00:00')
        row = self.triggers.only()
        self.assertRegex(row['name'], '^stack-it-')
        assert row['workflow_name'] == 'simple'
        assert row['first_execution_time'] is None
        # A first time alone runs once.
        self.update(
            pattern=None, workflow='simple', first_time='2030-01-02 00:00'
        )
        assert self.triggers.only()['remaining_executions'] == 1


class RefusingTest(CronTriggerTest):
    def test_what_cannot_be_is_refused_before_anything_is_made(self):
        for properties, said in (
            ({'pattern': '0 25 * * *'}, 'it.properties.pattern: '),
            ({'pattern': '0 25 * * *'}, 'CRON expression'),
            ({'pattern': None}, 'pattern'),
            ({'count': 0}, 'count'),
            ({'workflow': 'gone'}, 'there is no workflow "gone"'),
            ({'workflow': {'input': {}}}, 'a map with "name"'),
            ({'workflow': {'name': 'tidy', 'x': 1}}, 'has no key x'),
            ({'workflow': {'name': 'tidy', 'input': 'all'}}, 'must be maps'),
            ({'workflow': ['tidy']}, 'must be a text, or a map'),
        ):
            assert said in self.invalid(**properties)

    def test_nothing_is_refused_because_mistral_is_away(self):
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
        self.update(name=None, pattern=LATER)
        assert self.triggers.only()['name'] != former
        self.update(name='daily', pattern=LATER)
        assert self.triggers.only()['name'] == 'daily'
        assert (
            self.mistral.changes()
            == ['cron_triggers.create', 'cron_triggers.delete'] * 2
        )

    def test_a_first_time_that_has_passed_since_is_left_out(self):
        self.make(first_time='2030-01-01 18:00')
        self.triggers.fire('nightly', 2)
        self.update(first_time='2030-01-01 18:00', pattern=LATER)
        row = self.triggers.only()
        assert row['first_execution_time'] is None
        assert row['next_execution_time'] == '2030-01-01 19:05:00'

    def test_an_unchanged_count_goes_on_with_what_remains(self):
        self.make(count=5)
        self.triggers.fire('nightly', 2)
        self.update(count=5, pattern=LATER)
        assert self.triggers.only()['remaining_executions'] == 3
        self.triggers.fire('nightly')
        self.update(count=5, pattern='6 * * * *')
        assert self.triggers.only()['remaining_executions'] == 2


class FailingUpdateTest(CronTriggerTest):
    REFUSED = fake_mistral.refused(400, 'Some reason')

    def test_the_former_trigger_comes_back_when_the_new_one_is_refused(self):
        # Its past first time does not keep it from that.
        given = {'count': 5, 'first_time': '2030-01-01 18:00'}
        self.make(**given)
        self.triggers.fire('nightly', 2)
        self.mistral.fail('cron_triggers.create', self.REFUSED)
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
        self.mistral.fail('cron_triggers.create', self.REFUSED, self.REFUSED)
        reason = self.refused_update(pattern=LATER)
        assert 'The former trigger is deleted, and' in reason
        assert self.triggers.rows == {}
        self.assertRaises(
            AssertionError, self.heat.run, self.stack, self.stack.CHECK
        )
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


class Crash(BaseException):
    """The engine is gone: nothing after this runs."""


class CrashTest(CronTriggerTest):
    """An engine that dies in an update, and another one that goes on."""

    CRASHES = (
        ('cron_triggers.delete', False),
        ('cron_triggers.delete', True),
        ('cron_triggers.create', False),
        ('cron_triggers.create', True),
    )

    @staticmethod
    def finish(runner):
        while not runner.step():
            pass

    def crash(self, call, effect, **changed):
        self.make()
        self.mistral.fail(call, Crash(), effect=effect)
        runner = self.heat.begin(
            self.stack, self.stack.UPDATE, self.template(**changed)
        )
        self.assertRaises(Crash, self.finish, runner)
        self.stack = self.heat.load(self.stack)

    def test_the_next_update_leaves_one_trigger(self):
        for call, effect in self.CRASHES:
            self.crash(call, effect, pattern=LATER)
            self.update(pattern='6 * * * *')
            assert self.triggers.only()['pattern'] == '6 * * * *'
            self.heat.delete(self.stack)
            assert self.triggers.rows == {}
            assert self.mistral.trusts == 0

    def test_a_create_that_crashed_leaves_nothing_when_deleted(self):
        for effect in (False, True):
            self.mistral.fail('cron_triggers.create', Crash(), effect=effect)
            self.stack = self.heat.stack(self.template())
            runner = self.heat.begin(self.stack, self.stack.CREATE)
            self.assertRaises(Crash, self.finish, runner)
            self.stack = self.heat.load(self.stack)
            self.heat.delete(self.stack)
            assert self.triggers.rows == {}


class RunOutTest(CronTriggerTest):
    def setUp(self):
        super().setUp()
        self.make(count=2)
        self.triggers.fire('nightly', 2)
        assert self.triggers.rows == {}

    def test_an_update_creates_it_again_and_a_deletion_works(self):
        assert self.attribute('remaining_executions') == 0
        assert self.attribute('next_execution_time') is None
        assert self.attribute('upcoming_executions') == []
        self.update(count=2, pattern=LATER)
        assert self.triggers.only()['remaining_executions'] == 2
        self.triggers.fire('nightly', 2)
        self.heat.delete(self.stack)


class DeletedByOthersTest(CronTriggerTest):
    def setUp(self):
        super().setUp()
        self.make()
        self.triggers.remove('nightly')

    def test_a_check_fails_and_an_update_mends_it(self):
        self.assertRaises(
            AssertionError, self.heat.run, self.stack, self.stack.CHECK
        )
        assert 'is no longer in Mistral' in self.it.status_reason
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
        for error, effect in itertools.product(
            (fake_mistral.DOWN, fake_mistral.UNAVAILABLE), (False, True)
        ):
            self.fail(error, effect)
            self.make(count=5)
            self.triggers.fire('nightly', 2)
            self.fail(error, effect)
            self.update(count=5, pattern=LATER)
            row = self.triggers.only()
            assert row['pattern'] == LATER
            assert row['remaining_executions'] == 3
            self.fail(error, effect)
            self.heat.run(self.stack, self.stack.CHECK)
            self.heat.delete(self.stack)
            self.mistral.faults.clear()
            assert self.triggers.rows == {}
            assert self.mistral.trusts == 0

    def test_a_mistral_that_stays_away_is_named_in_the_reason(self):
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        self.addCleanup(
            cfg.CONF.clear_override, 'mistral_error_budget', 'heat_plugins'
        )
        self.mistral.fail('cron_triggers.create', fake_mistral.UNAVAILABLE)
        reason = self.refused()
        assert 'Mistral answers 503: no reason given' in reason
        self.heat.delete(self.stack)
        self.make()
        self.mistral.fail(
            'cron_triggers.create', *[fake_mistral.UNAVAILABLE] * 2
        )
        self.refused_update(pattern=LATER)
        assert self.triggers.rows == {}
        self.update(pattern=LATER)
        assert self.triggers.only()['pattern'] == LATER


class SchemaTest(testtools.TestCase):
    def test_those_of_heats_own_class_are_all_there(self):
        ours = cron_trigger.CronTrigger
        own = heats_own.CronTrigger
        assert own.attributes_schema.keys() <= ours.attributes_schema.keys()
        assert ours.properties_schema.keys() == own.properties_schema.keys()
