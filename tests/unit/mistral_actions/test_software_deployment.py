# SPDX-License-Identifier: Apache-2.0
"""Mistral's actions on runs: what they ask the client, and what they return.

What an order starts is tested with heat-engine's door, which takes it.
"""

import json
from unittest import mock

from mistral_lib import actions
import testtools

from heat_plugins import errors
from heat_plugins.clients import runs
from heat_plugins.mistral_actions import software_deployment
from tests.unit.mistral_actions import base

SECRET = 's3cret-of-the-day'
NOON = 1_800_000_000.0


def run_of(state='running', **more):
    values = {'id': 'run-1', 'action': 'BACKUP', 'targets': 1, **more}
    values = {'created_at': '2027-01-15T08:00:00Z', **values}
    return runs.Run(state=state, stack_ids=['stack-1'], **values)


def target(number=0, state='running', **more):
    return runs.Target(
        number=number,
        stack='shop',
        resource='db',
        server='id-1',
        server_name='db-0',
        state=state,
        **more,
    )


class ActionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.client = mock.create_autospec(runs.Runs, instance=True)
        self.use(run_of(), [target()])
        self.now = NOON
        self.patch(
            software_deployment,
            'core',
            lambda context: software_deployment.RunActions(
                self.client,
                lambda: self.now,
                execution=context.execution.workflow_execution_id,
            ),
        )

    def use(self, run, targets=()):
        """Let the client have one run."""
        for call in (self.client.start, self.client.show, self.client.cancel):
            call.return_value = run
        self.client.targets.return_value = iter(targets)

    def run_action(self, name, *given, execution=None, **more):
        action = getattr(software_deployment, f'Run{name}')(*given, **more)
        found = base.run(action, execution)
        # Mistral stores it as JSON.
        if isinstance(found, actions.Result):
            assert found.data is None
            found = found.error
        return json.loads(json.dumps(found))

    def start(self, **given):
        return self.run_action('Start', 'BACKUP', **given)

    def show(self):
        return self.run_action('Show', 'run-1')

    def cancel(self, target=None):
        return self.run_action('Cancel', 'run-1', target)

    def test_a_start_is_an_order_with_the_limits_that_are_given(self):
        same = {'run_id': 'run-1', 'expected': 2}
        found = self.start(
            **same,
            stacks='shop',
            stack_tags=['a'],
            server_metadata={'rack': '3'},
            input_values={'password': SECRET},
            timeout='90',
            max_concurrent='25%',
            canary=1,
            execution='execution-1',
        )
        self.client.start.assert_called_once_with(
            'BACKUP',
            **same,
            stacks=['shop'],
            tags=['a'],
            resources=(),
            metadata={'rack': '3'},
            inputs={'password': SECRET},
            limits={'timeout': 90, 'max_concurrent': '25%', 'canary': 1},
            by='workflow execution execution-1',
        )
        expected = {'state': 'running', 'stack_id': 'stack-1', 'next_look': 5}
        assert expected.items() <= found.items()
        assert found['success'] is None
        self.start(run_id='run-1')
        assert self.client.start.call_args.kwargs['by'] == ''

    def test_an_input_of_another_type_starts_nothing_and_is_not_quoted(self):
        for given in (
            {'timeout': 'soon'},
            {'stacks': {'a': 1}},
            {'input_values': SECRET},
        ):
            found = self.start(**given)
            assert found['code'] == 'invalid'
            assert SECRET not in json.dumps(found)
        assert not self.client.start.called

    def test_a_single_target_is_shown_with_its_outputs(self):
        found = self.show()
        self.client.targets.assert_called_with('run-1', outputs=False)
        assert (found['resource'], found['failures']) == ('db', [])
        run = run_of('complete', ended_at='2027-01-15T09:00:00Z')
        self.use(run, [target(state='complete', outputs={'size': '12'})])
        found = self.show()
        self.client.targets.assert_called_with('run-1', outputs=True)
        assert (found['state'], found['success']) == ('complete', True)
        assert (found['outputs']['size'], found['next_look']) == ('12', 0)

    def test_failures_of_many_targets_are_named_once_it_has_ended(self):
        self.use(run_of(targets=2, failed=1))
        assert self.show()['failures'] == []
        failed = target(1, 'failed', reason='no space')
        self.use(run_of('failed', targets=2, failed=1), [failed] * 101)
        found = self.show()
        states = ('failed', 'timed-out')
        self.client.targets.assert_called_once_with('run-1', state=states)
        assert (found['success'], len(found['failures'])) == (False, 100)
        shown = {*('stack', 'resource', 'server', 'server_name')}
        assert found['failures'][0] == {
            name: getattr(failed, name) for name in shown | {'state', 'reason'}
        }
        assert 'outputs' not in found

    def test_the_older_a_run_the_seldomer_the_polls(self):
        self.use(run_of(targets=2))
        pauses = []
        for age in (-10, 0, 40, 100, 1000, 80000):
            self.now = NOON + age
            pauses.append(self.show()['next_look'])
        assert pauses == [5, 5, 5, 10, 100, 300]

    def test_a_run_or_a_target_is_cancelled(self):
        self.use(run_of('cancelled'))
        found = self.cancel(3)
        self.client.cancel.assert_called_once_with('run-1', 3)
        assert (found['state'], found['success']) == ('cancelled', False)

    def test_an_error_says_when_to_poll_again(self):
        for error, code, pause in (
            (errors.Unavailable('Heat answered 503', 503), 'unavailable', 60),
            (errors.Denied('Heat answered 403', 403), 'denied', 0),
            # Engines may be in the middle of an upgrade.
            (runs.NoDoor('upgrade it'), 'unavailable', 60),
        ):
            told = {'code': code, 'message': str(error), 'next_look': pause}
            for name in ('start', 'show', 'cancel'):
                getattr(self.client, name).side_effect = error
                assert getattr(self, name)() == told
