# SPDX-License-Identifier: Apache-2.0
"""Mistral's actions on runs, as an executor runs them."""

import json
import uuid

from mistral_lib import actions

from heat_plugins import errors
from heat_plugins.mistral_actions import software_deployment
from heat_plugins.runs import run_records
from tests.unit.engine import heat_door
from tests.unit.mistral_actions import base
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups

SECRET = 's3cret-of-the-day'
RUN = str(uuid.UUID(int=1))

State, Phase = run_records.State, run_records.Phase


class Case(heat_door.DoorCase):
    def setUp(self):
        super().setUp()
        self.clock = heat_door.NOW
        self.stack = self.created(self.template())
        self.patch(
            software_deployment,
            'core',
            lambda context: software_deployment.RunActions(
                self.runs,
                lambda: self.clock,
                execution=context.execution.workflow_execution_id,
            ),
        )

    def template(self):
        return deployments.template(resources={'config': triggers.CONFIG})

    def run_action(self, action):
        """Run an action on another machine than where it was made."""
        found = base.run(action)
        # Mistral stores it as JSON.
        if isinstance(found, actions.Result):
            self.assertIsNone(found.data)
            return json.loads(json.dumps(found.error))
        return json.loads(json.dumps(found))

    def start(self, **given):
        given = {'stacks': self.stack.name, 'run_id': RUN, **given}
        return self.run_action(software_deployment.RunStart('BACKUP', **given))

    def show(self):
        return self.run_action(software_deployment.RunShow(RUN))

    def cancel(self, target=None):
        return self.run_action(software_deployment.RunCancel(RUN, target))

    def end(self, phase, *attempts):
        """Let a run end, as its leader does."""
        now = int(heat_door.NOW)
        self.change(
            RUN,
            {
                number: {'number': 1, 'started_at': now, 'ended_at': now, **a}
                for number, a in enumerate(attempts)
            },
            phase=phase,
            ended_at=now,
        )


class ActionsTest(Case):
    def test_start_returns_the_run_that_it_has_started(self):
        found = self.start(timeout='90', max_concurrent='25%')
        self.assertEqual(('running', 1), (found['state'], found['targets']))
        self.assertIsNone(found['success'])
        self.assertEqual(self.stack.id, found['stack_id'])
        self.assertEqual('2027-01-15T08:00:00Z', found['created_at'])
        limits = self.store.load(RUN).run.order.limits
        self.assertEqual(
            (90, run_records.Share(25, is_percent=True)),
            (limits.timeout, limits.max_concurrent),
        )

    def test_a_run_names_the_execution_that_has_started_it(self):
        start = software_deployment.RunStart('BACKUP', self.stack.name)
        found = base.run(start, 'execution-1')
        self.assertEqual(
            'user, by workflow execution execution-1', found['created_by']
        )
        (listed,) = self.runs.list(who='user')
        self.assertEqual(found['id'], listed.id)

    def test_with_the_same_id_nothing_starts_twice(self):
        first = self.start()
        self.assertEqual(first, self.start())
        self.assertEqual([RUN], self.woken)
        self.assertEqual('exists', self.start(canary=1)['code'])

    def test_another_number_of_targets_than_expected_starts_nothing(self):
        found = self.start(expected=2)
        self.assertEqual('refused', found['code'])
        self.assertIn('2 targets', found['message'])
        self.assertEqual({}, self.stored())

    def test_no_result_holds_the_value_of_an_input(self):
        found = self.start(input_values={'password': SECRET})
        self.assertEqual(['password'], found['inputs'])
        self.assertNotIn(SECRET, json.dumps([found, self.show()]))
        refused = self.start(input_values=SECRET)
        self.assertEqual('invalid', refused['code'])
        self.assertNotIn(SECRET, json.dumps(refused))

    def test_what_is_no_limit_is_refused(self):
        for given, code in (
            ({'timeout': 'soon'}, 'invalid'),
            ({'timeout': [1]}, 'invalid'),
            ({'timeout': 0}, 'refused'),
            ({'max_concurrent': 'all'}, 'refused'),
            ({'if_running': 'kill'}, 'refused'),
            ({'stacks': {'a': 1}}, 'invalid'),
        ):
            self.assertEqual(code, self.start(**given)['code'], given)
        self.assertEqual({}, self.stored())

    def test_a_single_target_is_shown_with_its_outputs(self):
        self.start()
        found = self.show()
        self.assertEqual(
            ('deployment', 'server', None, []),
            (
                found['resource'],
                found['server_name'],
                found['outputs'],
                found['failures'],
            ),
        )
        complete = {'state': State.COMPLETE, 'outputs': {'size': '12 MB'}}
        self.end(Phase.COMPLETE, complete)
        found = self.show()
        self.assertEqual(
            ('complete', True, '12 MB', 0),
            (
                found['state'],
                found['success'],
                found['outputs']['size'],
                found['next_look'],
            ),
        )

    def test_the_older_a_run_the_seldomer_the_polls(self):
        self.start()
        pauses = []
        for age in (-10, 0, 40, 100, 1000, 80000):
            self.clock = heat_door.NOW + age
            pauses.append(self.show()['next_look'])
        self.assertEqual([5, 5, 5, 10, 100, 300], pauses)

    def test_a_run_is_cancelled(self):
        self.assertEqual('not-found', self.show()['code'])
        self.start()
        found = self.cancel()
        self.assertEqual(
            ('cancelled', False), (found['state'], found['success'])
        )
        self.assertEqual('refused', self.cancel()['code'])

    def test_a_reader_is_refused(self):
        self.start()
        self.runs = self.client(roles=['reader'], is_admin=False)
        for found in (self.cancel(), self.start(run_id=str(uuid.uuid4()))):
            self.assertEqual('denied', found['code'])

    def test_engines_of_a_former_release_may_be_upgraded_soon(self):
        self.start()
        self.api.old = 100
        for found in (self.show(), self.start(), self.cancel()):
            self.assertEqual('unavailable', found['code'])
            self.assertIn('upgrade it', found['message'])

    def test_what_may_pass_says_when_to_poll_again(self):
        self.start()
        for error, pause in (
            (errors.Unavailable('Heat answered 503', 503), 60),
            (errors.Denied('Heat answered 403', 403), 0),
        ):

            def fail(run_id, error=error):
                raise error

            self.patch(self.runs, 'show', fail)
            found = self.show()
            self.assertEqual(str(error), found['message'])
            self.assertEqual(pause, found['next_look'])


class ManyTargetsTest(Case):
    def template(self):
        return groups.group('a', 'b', resources={'config': triggers.CONFIG})

    def test_failures_are_named_once_it_has_ended(self):
        self.assertEqual(2, self.start(resources=['deployment'])['targets'])
        self.assertEqual([], self.show()['failures'])
        self.end(
            Phase.FAILED,
            {'state': State.COMPLETE},
            {'state': State.FAILED, 'reason': 'no space'},
        )
        found = self.show()
        self.assertEqual((False, 1), (found['success'], found['failed']))
        (failure,) = found['failures']
        self.assertEqual(
            ('failed', 'no space'), (failure['state'], failure['reason'])
        )
        self.assertNotIn('outputs', found)
