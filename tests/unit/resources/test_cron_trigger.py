# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger."""

import copy
import datetime
import json
from unittest import mock

from heat.common import exception
from heat.engine.resources.openstack.mistral import cron_trigger as heats_own
from keystoneauth1 import exceptions
from oslo_config import cfg

from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.resources import cron_trigger
from heat_plugins.resources.workflows import mistral_calls
from tests.unit.resources import fake_mistral


class CronTriggerTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::CronTrigger'
    ERRORS = (exception.PropertyUnspecifiedError,)
    TYPES = {TYPE: cron_trigger.CronTrigger}
    PROPERTIES = {
        'name': 'nightly',
        'pattern': '0 * * * *',
        'workflow': {'name': 'tidy', 'input': {'what': 'all'}},
    }

    def setUp(self):
        super().setUp()
        self.mistral.workflows.add('tidy', 'what', {'where': 'here'})
        self.triggers = self.mistral.cron_triggers

    def events(self):
        return [
            event.resource_status_reason
            for event in fake_mistral.events(self.stack)
        ]


class MakingTest(CronTriggerTest):
    def test_a_template_of_heats_own_class_makes_the_same_trigger(self):
        trigger = self.make(count=3)
        self.assertEqual('nightly', trigger.FnGetRefId())
        row = self.triggers.only()
        self.assertEqual(
            ('nightly', 'tidy', '0 * * * *', 3),
            (
                row['name'],
                row['workflow_name'],
                row['pattern'],
                row['remaining_executions'],
            ),
        )
        self.assertEqual({'what': 'all'}, json.loads(row['workflow_input']))

    def test_the_workflow_may_be_a_text(self):
        self.mistral.workflows.add('simple')
        self.make(workflow='simple')
        self.assertEqual('simple', self.triggers.only()['workflow_name'])

    def test_the_workflow_may_have_params(self):
        self.make(
            workflow={
                'name': 'tidy',
                'input': {'what': 'all'},
                'params': {'env': {'a': 1}},
            }
        )
        params = json.loads(self.triggers.only()['workflow_params'])
        self.assertEqual({'env': {'a': 1}}, params)

    def test_without_a_name_it_gets_one_of_its_own(self):
        self.make(name=None)
        self.assertRegex(self.triggers.only()['name'], '^stack-it-')

    def test_an_event_tells_the_next_three_runs_and_their_zone(self):
        self.make()
        self.assertIn(
            'Cron trigger: next runs: 2030-01-01 13:00, 2030-01-01 14:00, '
            '2030-01-01 15:00 UTC',
            self.events(),
        )

    def test_an_event_tells_that_none_fires_if_another_is_overdue(self):
        other = self.triggers.add('x' * 60, 'tidy', {'pattern': '0 * * * *'})
        row = {**other, 'next_execution_time': '2029-12-31 03:00:00'}
        self.triggers.rows[other['id']] = row
        self.make()
        (told,) = (
            event for event in self.events() if 'No cron trigger' in event
        )
        self.assertEqual(cron_triggers.none_fires(row, self.mistral.now), told)
        self.assertIn('was due at 2029-12-31 03:00:00 UTC', told)
        self.assertTrue(told.endswith('maintenance mode'), told)

    def test_what_cannot_be_listed_afterwards_fails_nothing(self):
        whole = self.triggers.list

        def listing(limit=None, **more):
            if limit:
                raise fake_mistral.DOWN
            return whole(**more)

        self.patch(self.triggers, 'list', listing)
        self.make()
        self.assertEqual('COMPLETE', self.stack.status)
        self.assertNotIn('No cron trigger fires', str(self.events()))

    def test_a_past_first_time_is_left_out_where_there_is_a_pattern(self):
        self.make(first_time='2020-01-01 00:00')
        self.assertIsNone(self.triggers.only()['first_execution_time'])

    def test_a_first_time_alone_runs_once(self):
        self.make(pattern=None, first_time='2030-01-02 00:00')
        self.assertEqual(1, self.triggers.only()['remaining_executions'])


class RefusingTest(CronTriggerTest):
    def test_what_cannot_be_is_refused_before_anything_is_made(self):
        once = {'pattern': None, 'first_time': '2030-01-02 00:00'}
        for properties, said in (
            ({'pattern': '0 25 * * *'}, 'it.properties.pattern: '),
            ({'pattern': '0 25 * * *'}, 'is invalid'),
            ({'pattern': '0 0 30 2 *'}, 'no time matches'),
            ({'pattern': None}, 'pattern'),
            ({'first_time': 'tomorrow'}, 'UTC'),
            ({**once, 'count': 3}, '3 runs need a pattern'),
            ({'count': 0}, 'count'),
            ({'workflow': 'gone'}, 'there is no workflow "gone"'),
            ({'workflow': {'input': {}}}, 'needs a "name"'),
            ({'workflow': {'name': 'tidy', 'x': 1}}, 'has no key "x"'),
            ({'workflow': {'name': 'tidy', 'input': 'all'}}, '"input" of the'),
            ({'workflow': ['tidy']}, 'must be a text, or a map'),
        ):
            self.assertIn(said, self.invalid(**properties))

    def test_nothing_is_refused_because_mistral_is_away(self):
        self.mistral.fail('workflows.get', fake_mistral.DOWN)
        self.make()
        self.assertEqual('nightly', self.triggers.only()['name'])

    def test_an_input_that_is_missing_or_unknown(self):
        self.assertIn('needs the input "what"', self.refused(workflow='tidy'))
        self.assertEqual({}, self.triggers.rows)

    def test_a_first_time_too_near_says_when_the_pattern_runs(self):
        reason = self.refused(first_time='2030-01-01 12:01')
        self.assertIn('2030-01-01 12:01 UTC is less than a minute', reason)
        self.assertIn('13:00, 2030-01-01 14:00, 2030-01-01 15:00 UTC', reason)

    def test_a_first_time_alone_that_has_passed(self):
        reason = self.refused(pattern=None, first_time='2020-01-01 00:00')
        self.assertIn('2020-01-01 00:00 UTC has passed', reason)

    def test_a_name_that_is_taken_is_left_alone(self):
        self.triggers.add('nightly', 'tidy', {'pattern': '1 1 * * *'})
        reason = self.refused()
        self.assertIn('another cron trigger "nightly"', reason)
        self.heat.delete(self.stack)
        self.assertEqual('1 1 * * *', self.triggers.only()['pattern'])

    def test_a_refused_trust_is_explained(self):
        self.mistral.fail('cron_triggers.create', fake_mistral.NO_TRUST)
        reason = self.refused()
        self.assertIn('application credential', reason)
        self.assertNotIn('req-1', reason)
        self.assertEqual(1, self.mistral.calls.count('cron_triggers.create'))

    def test_a_trust_refused_to_heats_own_trust_names_the_options(self):
        self.mistral.fail(
            'cron_triggers.create',
            fake_mistral.refused(500, 'You are not ... (HTTP 403)'),
        )
        self.stack = self.heat.stack(self.template())
        self.stack.context.trust_id = 'heats'
        self.assertRaises(AssertionError, self.heat.run, self.stack, 'CREATE')
        reason = self.it.status_reason
        self.assertIn('sets [DEFAULT] allow_trusts_redelegation', reason)
        self.assertIn('trusts_delegated_roles', reason)


class UpdatingTest(CronTriggerTest):
    def test_any_change_leaves_one_trigger(self):
        self.make()
        for changed in (
            {'pattern': '5 * * * *'},
            {'workflow': {'name': 'tidy', 'input': {'what': 'little'}}},
            {'name': 'daily'},
            {'name': None},
            {'count': 7},
            {'first_time': '2030-02-01 00:00'},
        ):
            before = self.it.id
            self.update(**changed)
            self.assertEqual(1, len(self.triggers.rows))
            self.assertEqual(1, self.mistral.trusts)
            self.assertEqual(before, self.it.id)
        self.assertEqual(
            ['cron_triggers.delete', 'cron_triggers.create'] * 6,
            self.mistral.changes(),
        )

    def test_no_change_leaves_the_trigger_alone(self):
        self.make()
        changed = self.template()
        changed['resources']['it']['metadata'] = {'a': 1}
        self.heat.update(self.stack, changed)
        self.assertEqual([], self.mistral.changes())

    def test_what_cannot_be_is_refused_before_the_old_one_goes(self):
        self.make(first_time='2030-01-01 18:00')
        before = copy.deepcopy(self.triggers.rows)
        self.triggers.add('taken', 'tidy', {'pattern': '1 1 * * *'})
        for changed, expected in (
            ({'first_time': '2030-01-01 12:01'}, 'less than a minute'),
            ({'workflow': 'tidy'}, 'needs the input'),
            (
                {'pattern': None, 'first_time': '2020-01-01 00:00'},
                'has passed',
            ),
            ({'name': 'taken'}, 'another cron trigger'),
        ):
            self.assertIn(expected, self.refused_update(**changed))
        self.triggers.remove('taken')
        self.assertEqual(before, self.triggers.rows)
        self.assertEqual([], self.mistral.changes())

    def test_a_refused_update_can_be_corrected(self):
        self.make()
        self.refused_update(workflow='tidy')
        self.update(pattern='5 * * * *')
        self.assertEqual('5 * * * *', self.triggers.only()['pattern'])

    def test_a_first_time_that_has_passed_since_is_left_out(self):
        self.make(first_time='2030-01-01 18:00')
        self.triggers.fire('nightly', 2)
        self.update(first_time='2030-01-01 18:00', pattern='5 * * * *')
        row = self.triggers.only()
        self.assertIsNone(row['first_execution_time'])
        self.assertEqual('2030-01-01 19:05:00', row['next_execution_time'])

    def test_a_first_time_that_is_near_is_waited_for(self):
        self.make(first_time='2030-01-01 18:10')
        self.mistral.now = datetime.datetime(2030, 1, 1, 18, 9, 30)

        def meanwhile():
            self.mistral.now += datetime.timedelta(seconds=5)
            if self.mistral.now.minute == 10 and not fired:
                fired.append(self.mistral.calls.count('cron_triggers.delete'))
                self.triggers.fire('nightly')

        fired = []
        self.heat.meanwhile = meanwhile
        self.update(first_time='2030-01-01 18:10', pattern='5 * * * *')
        self.assertEqual([0], fired)
        self.assertEqual('5 * * * *', self.triggers.only()['pattern'])

    def test_a_run_that_is_about_to_begin_is_not_lost(self):
        self.make(count=5)
        self.mistral.now = datetime.datetime(2030, 1, 1, 12, 59, 58)

        def meanwhile():
            if self.triggers.only()['remaining_executions'] == 5:
                self.triggers.fire('nightly')

        self.heat.meanwhile = meanwhile
        self.update(count=5, pattern='5 * * * *')
        self.assertEqual(4, self.triggers.only()['remaining_executions'])

    def test_an_unchanged_count_goes_on_with_what_remains(self):
        self.make(count=5)
        self.triggers.fire('nightly', 2)
        self.update(count=5, pattern='5 * * * *')
        self.assertEqual(3, self.triggers.only()['remaining_executions'])
        self.triggers.fire('nightly')
        self.update(count=5, pattern='6 * * * *')
        self.assertEqual(2, self.triggers.only()['remaining_executions'])

    def test_a_changed_count_begins_anew(self):
        self.make(count=5)
        self.triggers.fire('nightly', 2)
        self.update(count=4)
        self.assertEqual(4, self.triggers.only()['remaining_executions'])

    def test_without_the_count_there_is_no_limit_any_more(self):
        self.make(count=5)
        self.update()
        self.assertIsNone(self.triggers.only()['remaining_executions'])

    def test_a_trigger_that_somebody_deleted_is_made_again(self):
        self.make()
        self.triggers.remove('nightly')
        self.update(pattern='5 * * * *')
        self.assertEqual('5 * * * *', self.triggers.only()['pattern'])

    def test_a_trigger_of_heats_own_class_is_taken_over(self):
        self.make(count=5)
        for key in ('trigger', 'trigger_note'):
            self.it.data_delete(key)
        self.triggers.fire('nightly', 2)
        self.update(count=5, pattern='5 * * * *')
        self.assertEqual(3, self.triggers.only()['remaining_executions'])
        self.assertEqual('5 * * * *', self.triggers.only()['pattern'])


class TrustTest(CronTriggerTest):
    """Keystone is asked for a trust before the old trigger goes."""

    def keystone(self, error=None):
        made = mock.Mock(id='probe')
        trusts = mock.Mock()
        trusts.create.side_effect = error
        trusts.create.return_value = made
        self.patch(mistral_calls, '_trusts', lambda resource: trusts)
        return trusts

    def test_a_trust_for_a_try_is_given_back(self):
        self.make()
        trusts = self.keystone()
        self.update(pattern='5 * * * *')
        trusts.delete.assert_called_once_with('probe')
        arguments = trusts.create.call_args[1]
        self.assertEqual(
            datetime.timedelta(minutes=2),
            arguments['expires_at'] - self.mistral.now,
        )
        self.assertTrue(arguments['impersonation'])

    def test_a_refused_one_leaves_the_old_trigger(self):
        self.make()
        self.keystone(
            exceptions.Forbidden(
                'Delegated tokens cannot manage trusts.', http_status=403
            )
        )
        self.assertIn('application credential', self.refused_update(count=4))
        self.assertEqual([], self.mistral.changes())

    def test_a_keystone_that_is_away_decides_nothing(self):
        self.make()
        self.keystone(exceptions.ServiceUnavailable())
        self.update(pattern='5 * * * *')
        self.assertEqual('5 * * * *', self.triggers.only()['pattern'])


class FailingUpdateTest(CronTriggerTest):
    REFUSED = fake_mistral.refused(400, 'Some reason')

    def test_the_old_trigger_comes_back_when_the_new_one_is_refused(self):
        self.make(count=5)
        self.triggers.fire('nightly', 2)
        self.mistral.fail('cron_triggers.create', self.REFUSED)
        reason = self.refused_update(count=5, pattern='5 * * * *')
        self.assertIn(
            'cannot create the cron trigger: Mistral answers 400: Some '
            'reason. The former trigger is restored.',
            reason,
        )
        row = self.triggers.only()
        self.assertEqual('0 * * * *', row['pattern'])
        self.assertEqual(3, row['remaining_executions'])
        self.assertEqual(1, self.mistral.trusts)

    def test_its_past_first_time_does_not_keep_it_from_coming_back(self):
        self.make(first_time='2030-01-01 18:00')
        self.triggers.fire('nightly', 1)
        self.mistral.fail('cron_triggers.create', self.REFUSED)
        self.refused_update(first_time='2030-01-01 18:00', pattern='5 * * * *')
        self.assertEqual('0 * * * *', self.triggers.only()['pattern'])

    def test_a_single_run_that_is_near_comes_back_as_a_pattern(self):
        self.make(pattern=None, first_time='2030-01-01 12:10')
        self.mistral.now = datetime.datetime(2030, 1, 1, 12, 9, 20)
        self.mistral.fail('cron_triggers.create', self.REFUSED)
        self.refused_update(pattern=None, first_time='2030-01-01 12:20')
        row = self.triggers.only()
        self.assertEqual('2030-01-01 12:10:00', row['next_execution_time'])
        self.assertEqual(1, row['remaining_executions'])

    def test_a_rollback_finds_everything_in_order(self):
        self.make()
        self.mistral.fail('cron_triggers.create', self.REFUSED)
        self.refused_update(pattern='5 * * * *')
        before = copy.deepcopy(self.triggers.rows)
        self.update()
        self.assertEqual(before, self.triggers.rows)

    def test_the_next_update_puts_back_what_could_not_be(self):
        self.make(count=5)
        self.triggers.fire('nightly', 2)
        self.mistral.fail('cron_triggers.create', self.REFUSED, self.REFUSED)
        reason = self.refused_update(count=5, pattern='5 * * * *')
        self.assertIn('could not be restored (', reason)
        self.assertEqual({}, self.triggers.rows)
        self.update(count=5)
        row = self.triggers.only()
        self.assertEqual('0 * * * *', row['pattern'])
        self.assertEqual(3, row['remaining_executions'])

    def test_or_makes_another_where_it_cannot_come_back(self):
        self.make(count=5)
        self.triggers.fire('nightly', 2)
        self.mistral.fail('cron_triggers.create', *[self.REFUSED] * 3)
        self.refused_update(count=5, pattern='5 * * * *')
        self.update(count=5, pattern='6 * * * *')
        row = self.triggers.only()
        self.assertEqual('6 * * * *', row['pattern'])
        self.assertEqual(3, row['remaining_executions'])

    def test_a_name_that_is_taken_meanwhile_is_left_alone(self):
        self.make()
        remove = self.triggers.remove

        def taken(identifier):
            remove(identifier)
            self.triggers.add('nightly', 'tidy', {'pattern': '1 1 * * *'})

        self.triggers.remove = taken
        reason = self.refused_update(pattern='5 * * * *')
        self.assertIn('another cron trigger "nightly"', reason)
        self.assertEqual('1 1 * * *', self.triggers.only()['pattern'])

    def test_so_does_the_next_check(self):
        self.make()
        self.mistral.fail('cron_triggers.create', self.REFUSED, self.REFUSED)
        self.refused_update(pattern='5 * * * *')
        self.heat.run(self.stack, self.stack.CHECK)
        self.assertEqual('0 * * * *', self.triggers.only()['pattern'])

    def test_deleting_then_needs_nothing(self):
        self.make()
        self.mistral.fail('cron_triggers.create', self.REFUSED, self.REFUSED)
        self.refused_update(pattern='5 * * * *')
        self.heat.delete(self.stack)
        self.assertEqual({}, self.triggers.rows)


class HeatsOwnTest(CronTriggerTest):
    """One that Heat's own class has made left no record."""

    def setUp(self):
        super().setUp()
        self.mistral.workflows.add('simple')
        self.make(workflow='simple', count=2)
        for key in ('trigger', 'trigger_note'):
            self.it.data_delete(key)

    def test_an_update_that_changes_nothing_leaves_it(self):
        self.update(workflow={'name': 'simple'}, count=2)
        self.assertEqual([], self.mistral.changes())
        self.assertIn('trigger', self.it.data())

    def test_it_is_known_to_have_run_out(self):
        self.triggers.fire('nightly', 2)
        self.heat.run(self.stack, self.stack.CHECK)

    def test_it_is_deleted(self):
        self.heat.delete(self.stack)
        self.assertEqual({}, self.triggers.rows)


class Crash(BaseException):
    """The engine is gone: nothing after this runs."""


class CrashTest(CronTriggerTest):
    """An engine that dies in an update, and another one that goes on."""

    def crash(self, call, effect, **changed):
        self.mistral.fail(call, Crash(), effect=effect)
        runner = self.heat.begin(
            self.stack, self.stack.UPDATE, self.template(**changed)
        )
        self.assertRaises(Crash, self.finish, runner)
        self.stack = self.heat.load(self.stack)

    @staticmethod
    def finish(runner):
        while not runner.step():
            pass

    CRASHES = (
        ('cron_triggers.delete', False),
        ('cron_triggers.delete', True),
        ('cron_triggers.create', False),
        ('cron_triggers.create', True),
    )

    def test_the_same_update_goes_on(self):
        for call, effect in self.CRASHES:
            self.make(count=5)
            self.triggers.fire('nightly', 2)
            self.crash(call, effect, count=5, pattern='5 * * * *')
            self.update(count=5, pattern='5 * * * *')
            row = self.triggers.only()
            self.assertEqual('5 * * * *', row['pattern'])
            self.assertEqual(3, row['remaining_executions'])
            self.heat.delete(self.stack)
            self.assertEqual({}, self.triggers.rows)
            self.assertEqual(0, self.mistral.trusts)

    def test_a_rollback_brings_back_what_was(self):
        for call, effect in self.CRASHES:
            self.make(count=5)
            self.triggers.fire('nightly', 2)
            self.crash(call, effect, count=5, pattern='5 * * * *')
            self.update(count=5)
            row = self.triggers.only()
            self.assertEqual('0 * * * *', row['pattern'])
            self.assertEqual(3, row['remaining_executions'])
            self.heat.delete(self.stack)

    def test_a_check_leaves_one_trigger(self):
        for call, effect in self.CRASHES:
            self.make()
            self.crash(call, effect, pattern='5 * * * *')
            self.heat.run(self.stack, self.stack.CHECK)
            self.assertEqual('nightly', self.triggers.only()['name'])
            self.heat.delete(self.stack)

    def test_deleting_leaves_nothing(self):
        for call, effect in self.CRASHES:
            self.make()
            self.crash(call, effect, pattern='5 * * * *', name='other')
            self.heat.delete(self.stack)
            self.assertEqual({}, self.triggers.rows)

    def test_a_create_that_crashed_leaves_nothing_when_deleted(self):
        for effect in (False, True):
            self.mistral.fail('cron_triggers.create', Crash(), effect=effect)
            self.stack = self.heat.stack(self.template())
            runner = self.heat.begin(self.stack, self.stack.CREATE)
            self.assertRaises(Crash, self.finish, runner)
            self.stack = self.heat.load(self.stack)
            self.heat.delete(self.stack)
            self.assertEqual({}, self.triggers.rows)


class RunOutTest(CronTriggerTest):
    def setUp(self):
        super().setUp()
        self.make(count=2)
        self.triggers.fire('nightly', 2)
        self.assertEqual({}, self.triggers.rows)

    def test_attributes_say_so(self):
        self.assertEqual(0, self.attribute('remaining_executions'))
        self.assertIsNone(self.attribute('next_execution_time'))
        self.assertEqual([], self.attribute('upcoming_executions'))

    def test_a_check_does_not_fail(self):
        self.heat.run(self.stack, self.stack.CHECK)

    def test_a_deletion_works(self):
        self.heat.delete(self.stack)

    def test_a_deletion_spares_a_later_trigger_of_the_same_name(self):
        self.triggers.add('nightly', 'tidy', {'pattern': '1 1 * * *'})
        self.heat.delete(self.stack)
        self.assertEqual('1 1 * * *', self.triggers.only()['pattern'])

    def test_an_update_of_something_else_makes_no_trigger(self):
        self.update(count=2, pattern='5 * * * *')
        self.assertEqual({}, self.triggers.rows)
        self.assertEqual(0, self.attribute('remaining_executions'))
        self.heat.run(self.stack, self.stack.CHECK)

    def test_an_update_with_another_count_begins_anew(self):
        self.update(count=3)
        self.assertEqual(3, self.triggers.only()['remaining_executions'])

    def test_an_update_with_another_first_time_begins_anew(self):
        self.update(count=2, first_time='2030-03-01 00:00')
        self.assertEqual(2, self.triggers.only()['remaining_executions'])

    def test_a_single_run_that_has_been(self):
        self.heat.delete(self.stack)
        self.make(pattern=None, first_time='2030-01-02 00:00')
        self.triggers.fire('nightly')
        self.assertEqual(0, self.attribute('remaining_executions'))
        self.update(
            pattern=None,
            first_time='2030-01-02 00:00',
            workflow={'name': 'tidy', 'input': {'what': 'little'}},
        )
        self.assertEqual({}, self.triggers.rows)


class QuickTest(CronTriggerTest):
    def test_a_first_run_before_the_trigger_is_remembered_counts(self):
        self.mistral.now = datetime.datetime(2030, 1, 1, 12, 59, 59)
        create = self.triggers.create

        def slowly(*args, **more):
            answer = create(*args, **more)
            self.triggers.fire('nightly')
            return answer

        self.patch(self.triggers, 'create', slowly)
        self.make(count=1)
        self.assertEqual(0, self.attribute('remaining_executions'))


class DeletedByOthersTest(CronTriggerTest):
    def setUp(self):
        super().setUp()
        self.make(count=5)
        self.triggers.remove('nightly')

    def test_a_check_fails_and_an_update_mends_it(self):
        self.assertRaises(
            AssertionError, self.heat.run, self.stack, self.stack.CHECK
        )
        reason = self.it.status_reason
        self.assertIn('is no longer in Mistral', reason)
        before = self.it.id
        self.update(count=5)
        self.assertEqual('nightly', self.triggers.only()['name'])
        self.assertEqual(before, self.it.id)

    def test_it_does_not_seem_to_have_run_out(self):
        self.assertIsNone(self.attribute('remaining_executions'))

    def test_a_deletion_works(self):
        self.heat.delete(self.stack)


class OutageTest(CronTriggerTest):
    """A Mistral that is down, or answers 503, during each of its calls."""

    CHANGES = ('cron_triggers.delete', 'cron_triggers.create')
    CALLS = (
        'workflows.get',
        'cron_triggers.get',
        'cron_triggers.list',
        *CHANGES,
    )
    ERRORS = (fake_mistral.DOWN, fake_mistral.UNAVAILABLE)

    def each(self):
        for call in self.CALLS:
            for effect in (False, True) if call in self.CHANGES else (False,):
                for error in self.ERRORS:
                    yield call, error, effect

    def test_passing_errors_are_ridden_out(self):
        for call, error, effect in self.each():
            self.mistral.fail(call, error, error, effect=effect)
            self.make(count=5)
            self.triggers.fire('nightly', 2)
            self.mistral.faults.clear()
            self.mistral.fail(call, error, effect=effect)
            self.mistral.fail(call, error)
            self.update(count=5, pattern='5 * * * *')
            row = self.triggers.only()
            self.assertEqual('5 * * * *', row['pattern'])
            self.assertEqual(3, row['remaining_executions'])
            self.mistral.fail(call, error, effect=effect)
            self.heat.run(self.stack, self.stack.CHECK)
            self.mistral.fail(call, error, effect=effect)
            self.heat.delete(self.stack)
            self.mistral.faults.clear()
            self.assertEqual({}, self.triggers.rows)
            self.assertEqual(0, self.mistral.trusts)

    def test_a_mistral_that_stays_away_is_named_in_the_reason(self):
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        self.addCleanup(
            cfg.CONF.clear_override, 'mistral_error_budget', 'heat_plugins'
        )
        self.mistral.fail('cron_triggers.create', fake_mistral.UNAVAILABLE)
        reason = self.refused()
        self.assertIn('Mistral answers 503: no reason given', reason)
        self.heat.delete(self.stack)
        self.make()
        self.mistral.fail(
            'cron_triggers.create', *[fake_mistral.UNAVAILABLE] * 2
        )
        self.refused_update(pattern='5 * * * *')
        self.assertEqual({}, self.triggers.rows)
        self.update(pattern='5 * * * *')
        self.assertEqual('5 * * * *', self.triggers.only()['pattern'])

    def test_an_attribute_is_null_meanwhile(self):
        self.make(count=5)
        self.mistral.fail('cron_triggers.get', fake_mistral.DOWN)
        self.assertIsNone(self.attribute('remaining_executions'))
        self.assertEqual(5, self.attribute('remaining_executions'))

    def test_an_answer_that_was_lost_makes_no_second_trigger(self):
        self.mistral.fail(
            'cron_triggers.create', fake_mistral.DOWN, effect=True
        )
        self.make()
        self.assertEqual(1, self.mistral.trusts)


class AttributesTest(CronTriggerTest):
    def test_they_follow_the_trigger(self):
        self.make(count=3)
        self.triggers.fire('nightly')
        self.assertEqual(2, self.attribute('remaining_executions'))
        self.assertEqual(
            '2030-01-01 14:00:00', self.attribute('next_execution_time')
        )
        self.assertEqual(
            ['2030-01-01 14:00 UTC', '2030-01-01 15:00 UTC'],
            self.attribute('upcoming_executions'),
        )

    def test_a_template_of_the_type_can_be_had(self):
        for kind in ('hot', 'cfn'):
            found = cron_trigger.CronTrigger.resource_to_template(
                'OS::Mistral::CronTrigger', kind
            )
            parameters = found.get('parameters') or found['Parameters']
            self.assertIn('workflow', parameters)

    def test_those_of_heats_own_class_are_all_there(self):
        ours = cron_trigger.CronTrigger
        own = heats_own.CronTrigger
        self.assertLessEqual(
            own.attributes_schema.keys(), ours.attributes_schema.keys()
        )
        self.assertEqual(
            own.properties_schema.keys(), ours.properties_schema.keys()
        )
