# SPDX-License-Identifier: Apache-2.0
"""Mistral's actions on runs, as an executor runs them."""

import json

from mistral_lib import actions
import testtools

from heat_plugins import errors
from heat_plugins.mistral_actions import results
from heat_plugins.mistral_actions import software_deployment
from heat_plugins.runs import run_operations
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.records import record_names
from tests.unit.mistral_actions import base
from tests.unit.runs import base as runs_base
from tests.unit.runs.fleet import simulation

SECRET = 's3cret-of-the-day'


class ActionsTest(runs_base.RunsTestCase):
    def setUp(self):
        super().setUp()
        self.patch(
            software_deployment,
            'core',
            lambda context: run_operations.RunCalls(
                self.service(), clock=lambda: self.now
            ),
        )

    def run_action(self, action):
        """Run an action on another machine than where it was made."""
        found = base.run(action)
        # Mistral stores it as JSON.
        if isinstance(found, actions.Result):
            self.assertIsNone(found.data)
            return json.loads(json.dumps(found.error))
        return json.loads(json.dumps(found))

    def trigger(self, **given):
        whole = {'stack': 'shop', 'resource': 'db', 'action': 'BACKUP'}
        action = software_deployment.Trigger(**{**whole, **given})
        return self.run_action(action)

    def show(self, run_id, action=software_deployment.Show):
        return self.run_action(action(self.stack.id, run_id))

    def test_trigger_returns_the_run_that_it_has_started(self):
        found = self.trigger(timeout='90')
        self.assertEqual('waiting', found['state'])
        self.assertIsNone(found['success'])
        self.assertEqual(self.stack.id, found['stack_id'])
        self.assertEqual(90, found['timeout'])
        self.assertEqual('2027-01-15T08:00:00Z', found['started_at'])
        self.assertEqual('BACKUP', self.inputs()['deploy_action'])

    def test_no_result_holds_the_value_of_an_input(self):
        found = self.trigger(input_values={'password': SECRET})
        self.assertEqual(SECRET, self.inputs()['password'])
        self.assertEqual(['password'], found['inputs'])
        self.assertNotIn(SECRET, json.dumps(found))
        refused = self.trigger(input_values=SECRET)
        self.assertEqual('refused', refused['code'])
        self.assertNotIn(SECRET, json.dumps(refused))

    def test_a_resource_with_several_deployments_is_refused_by_their_names(
        self,
    ):
        nested = self.heat.add_stack('shop-group', parent=self.stack.id)
        self.heat.add_resource(
            self.stack,
            'group',
            'OS::Heat::SoftwareDeploymentGroup',
            nested.id,
            nested=nested.id,
        )
        for name in ('0', '1'):
            self.heat.add_deployment(nested, name)
        found = self.trigger(resource='group')
        self.assertEqual('refused', found['code'])
        self.assertIn('group.0, group.1', found['message'])

    def test_a_time_that_is_none_is_refused(self):
        for timeout in ('soon', 0, -1, [1]):
            found = self.trigger(timeout=timeout)
            self.assertEqual('refused', found['code'])
            self.assertIn(repr(timeout), found['message'])
        self.assertEqual([], self.heat.given('server-1'))

    def test_a_second_run_is_refused_with_a_code_of_its_own(self):
        first = self.trigger()
        found = self.trigger()
        self.assertEqual('already-running', found['code'])
        self.assertIn(first['id'], found['message'])

    def test_show_tells_how_a_run_has_ended(self):
        run_id = self.trigger()['id']
        self.answer(size='12 MB')
        found = self.show(run_id)
        self.assertEqual('complete', found['state'])
        self.assertIs(True, found['success'])
        self.assertEqual('12 MB', found['outputs']['size'])
        self.assertEqual(0, found['next_look'])

    def test_a_run_that_failed_is_no_error_to_look_at(self):
        run_id = self.trigger()['id']
        self.answer(deploy_status_code=3)
        found = self.show(run_id)
        self.assertIs(False, found['success'])
        self.assertEqual('failed', found['state'])

    def test_the_older_a_run_the_seldomer_the_looks(self):
        run_id = self.trigger(timeout=90000)['id']
        begun = self.now
        pauses = []
        for age in (0, 40, 100, 1000, 80000, 89900, 89999):
            self.now = begun + age
            pauses.append(self.show(run_id)['next_look'])
        self.assertEqual([5, 5, 10, 100, 300, 100, 5], pauses)

    def test_cancel_takes_a_run_back(self):
        run_id = self.trigger()['id']
        found = self.show(run_id, software_deployment.Cancel)
        self.assertEqual('cancelled', found['state'])
        self.assertEqual([], self.heat.given('server-1'))
        again = self.show(run_id, software_deployment.Cancel)
        self.assertEqual('ended', again['code'])

    def test_a_run_that_is_not_there_has_a_code(self):
        self.assertEqual('not-found', self.show('20270115')['code'])

    def test_so_has_one_that_cannot_be_read(self):
        run_id = self.trigger()['id']
        (key,) = self.records.keys()
        self.records.store.put_object(
            self.records.container, record_names.record_name(key), b'garbage'
        )
        for found in (
            self.show(run_id),
            self.show(run_id, software_deployment.Cancel),
        ):
            self.assertEqual('unreadable', found['code'])
            self.assertIn(run_id, found['message'])
            self.assertEqual(0, found['next_look'])
        self.assertEqual('refused', self.trigger()['code'])

    def test_what_may_pass_says_when_to_look_again(self):
        run_id = self.trigger()['id']
        for error, pause in (
            (errors.Unavailable('Heat answered 503', 503), 60),
            (errors.Denied('Heat answered 403', 403), 0),
        ):
            self.heat.failing['stack'] = error
            found = self.show(run_id)
            self.assertEqual(str(error), found['message'])
            self.assertEqual(pause, found['next_look'])


class CodesTest(runs_base.RunsTestCase):
    def test_errors_of_the_object_store_have_the_codes_of_heats(self):
        for error, code in (
            (errors.NoObject('no'), 'not-found'),
            (errors.Denied('no'), 'denied'),
            (errors.Unavailable('no'), 'unavailable'),
            (errors.TempURLsUnusable('no'), 'no-temp-url'),
            (errors.Conflict('no'), 'error'),
        ):
            self.assertEqual(code, results.error(error)['code'])


class FleetActionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.world = simulation.World(4)
        self.patch(
            software_deployment,
            'fleet_core',
            lambda context: run_operations.OperationCalls(
                fleets.Fleets(self.world.heat, self.world.tools()),
                self.world.heat,
            ),
        )

    def run_action(self, action):
        found = base.run(action)
        found = found.error if isinstance(found, actions.Result) else found
        return json.loads(json.dumps(found))

    def test_an_operation_is_started_and_advanced_to_its_end(self):
        self.world.heat.tags = {one.id: ['all'] for one in self.world.stacks}
        found = self.run_action(
            software_deployment.Operate(
                'BACKUP',
                stack_tags='all',
                resources=['db*'],
                server_metadata={'role': 'web'},
                max_concurrent='25%',
                pause='30',
            )
        )
        self.assertEqual('running', found['state'])
        self.assertIsNone(found['success'])
        while found['next_look']:
            self.world.sleep(found['next_look'])
            found = self.run_action(software_deployment.Advance(found['id']))
        self.assertTrue(found['success'])
        self.assertEqual({'complete': 2}, found['counts'])

    def test_what_is_no_limit_or_map_is_refused(self):
        for given in (
            {'max_concurrent': 'all'},
            {'canary': 'two'},
            {'input_values': 'hunter2'},
            {'stacks': {'a': 1}},
        ):
            given = {'stacks': ['s0'], **given}
            found = self.run_action(
                software_deployment.Operate('BACKUP', **given)
            )
            self.assertEqual('refused', found['code'])
            self.assertNotIn('hunter2', found['message'])
