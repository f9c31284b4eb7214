# SPDX-License-Identifier: Apache-2.0
"""The actions on plans, nodes, validations and runs, run as by Mistral.

What an order of a run starts is tested with heat-engine's door.
"""

import json
from unittest import mock

from mistral_lib import actions
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import testtools

from heat_plugins import config
from heat_plugins import errors
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import runs
from heat_plugins.mistral_actions import nodes
from heat_plugins.mistral_actions import plans
from heat_plugins.mistral_actions import sessions
from heat_plugins.mistral_actions import software_deployment
from heat_plugins.mistral_actions import validations
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from heat_plugins.plans import plan_operations
from heat_plugins.plans.rendering import rendering
from tests.unit import fake_swift
from tests.unit.mistral_actions import base
from tests.unit.nodes import fake_ironic
from tests.unit.plans import fakes as plan_fakes
from tests.unit.validations import fakes

UPLOADS = 'heat-plugins-uploads-project-1'


class NodesTest(testtools.TestCase):
    def test_nodes_go_from_a_file_to_a_move(self):
        ironic = fake_ironic.Ironic()
        store = fake_swift.Cluster().store()
        core = node_operations.NodeOperations(ironic, store, clock=lambda: 1e3)
        self.patch(nodes, 'core', lambda context: core)
        entry = {'name': 'a', 'pm_type': 'fake-hardware'}
        entry.update(pm_password='hunter22', mac=['52:54:00:00:00:01'])
        found = base.run(nodes.Register(nodes={'nodes': [entry]}))
        assert 'hunter22' not in str(found)
        move = base.run(nodes.Begin(verb='manage', nodes=found['enrolled']))
        move = base.run(nodes.Step(convoy=move['convoy']))
        ironic.finish('a')
        assert base.run(nodes.Step(convoy=move['convoy']))['success']
        (listed,) = base.run(nodes.List())
        assert listed['provision_state'] == 'manageable'


class PlansTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = plan_fakes.Cloud()
        self.cloud.plans.create('plan', plan_fakes.content())
        core = plan_operations.PlanOperations(self.cloud.plans)
        self.patch(plans, 'core', lambda context: core)
        self.store = self.cloud.swift.store()

    def test_a_large_result_is_put_beside_the_plan_or_among_uploads(self):
        self.patch(parcels, 'LIMIT', 10)
        found = base.run(plans.GetCapabilities(plan='plan'))
        assert found['container'] == 'plan'
        whole = parcels.received(self.store, found)
        assert whole['topics'][0]['title'] == 'Basics'
        found = base.run(plans.List())
        assert found['container'] == UPLOADS
        there = self.cloud.swift.container(UPLOADS)
        assert there.lifetimes == {found['object']: '86400'}
        [listed] = parcels.received(self.store, found)
        assert listed['name'] == 'plan'
        # A step of a deployment never is.
        assert 'state' in base.run(plans.Deploy(plan='plan'))

    def test_values_may_come_by_reference(self):
        self.store.put_object('plan', '.heat-plugins/in', b'{"who": "me"}')
        place = parcels.reference('plan', '.heat-plugins/in', b'')
        base.run(plans.UpdateParameters(plan='plan', values=place))
        environment = self.cloud.plans.load('plan').environment
        assert environment.parameter_defaults == {'who': 'me'}

    def test_the_operator_limits_the_rendering(self):
        assert plans.limits() == rendering.RenderingLimits()
        self.useFixture(config_fixture.Config(plans.CONF)).config(
            group='heat_plugins',
            plan_render_seconds=3,
            plan_render_memory=200,
            plan_render_output=2,
        )
        assert plans.limits() == rendering.RenderingLimits(
            seconds=3, memory=200 * 1024**2, output=2 * 1024**2
        )


class ValidationsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.machine = self.cloud.machine
        self.patch(validations, 'core', lambda context: self.cloud.validations)
        config.register_opts(cfg.CONF)
        self.fixture = self.useFixture(config_fixture.Config(cfg.CONF))
        self.fixture.config(group='heat_plugins', run_validations=True)
        self.patch(sessions, 'cloud', lambda security: None)

    def run_plan(self, answer, root=''):
        """Run all validations in an execution of a state.

        :param root: the state of the execution around it, if there is one.
        """

        def execution(execution_id):
            state = {'execution-1': answer, 'root': root}[execution_id]
            if isinstance(state, Exception):
                raise state
            around = 'root' if root and execution_id != 'root' else ''
            return mistral_plans.WorkflowExecution(
                id=execution_id, state=state, root_id=around
            )

        client = mock.Mock(execution=execution)
        self.patch(mistral_plans, 'WorkflowExecutions', lambda cloud: client)
        return base.run(validations.Run(plan='plan'), 'execution-1')

    def test_a_run_is_its_result(self):
        run = base.run(validations.Run(plan='plan', groups=['prep']))
        assert run['summary'] == {'PASSED': 2}
        assert base.run(validations.Result(run_id=run['id'])) == run

    def test_nothing_runs_unless_the_operator_permits_it(self):
        self.fixture.config(group='heat_plugins', run_validations=False)
        default = {option.name: option.default for option in config.OPTS}
        assert default['run_validations'] is False
        found = base.run(validations.Run(plan='plan'))
        assert found.error['code'] == 'refused'
        assert 'run_validations' in found.error['message']
        assert self.machine.begun == []

    def test_playbooks_end_with_their_execution(self):
        endless = [fakes.began('wait')]
        self.machine.reports['validations/dns.yaml'] = endless
        for answer, root in (
            ('CANCELLED', ''),
            ('ERROR', ''),
            ('RUNNING', 'CANCELLED'),
            (errors.NotFound('gone', 404), ''),
        ):
            run = self.run_plan(answer, root)
            assert run['state'] == 'STOPPED', answer
            assert self.machine.running == []
        # The user's token has expired.
        found = self.run_plan(errors.Denied('expired', 401))
        assert found.error['code'] == 'denied'
        assert self.machine.running == []

    def test_playbooks_continue_with_their_execution(self):
        self.machine.reports['validations/dns.yaml'] = [fakes.result()]

        def end_after_polls():
            if self.machine.now - begun > 10:
                for process in self.machine.running:
                    process.end = fakes.end()

        self.machine.while_waiting = end_after_polls
        for answer, root in (
            ('RUNNING', 'RUNNING'),
            ('PAUSED', 'PAUSED'),
            # Another branch has failed.
            ('RUNNING', 'ERROR'),
        ):
            begun = self.machine.now
            assert self.run_plan(answer, root)['state'] == 'PASSED'


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
            **{**same, 'stacks': 'shop', 'stack_tags': ['a'], 'canary': 1},
            server_metadata={'rack': '3'},
            input_values={'password': SECRET},
            timeout='90',
            max_concurrent='25%',
            execution='execution-1',
        )
        self.client.start.assert_called_once_with(
            'BACKUP',
            **{**same, 'stacks': ['shop'], 'tags': ['a'], 'resources': ()},
            metadata={'rack': '3'},
            inputs={'password': SECRET},
            limits={'timeout': 90, 'max_concurrent': '25%', 'canary': 1},
            by='workflow execution execution-1',
        )
        expected = {'state': 'running', 'stack_id': 'stack-1', 'next_look': 5}
        assert (expected | {'success': None}).items() <= found.items()
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
        expected = {'server_name': 'db-0', 'reason': 'no space'}
        assert expected.items() <= found['failures'][0].items()
        assert 'outputs' not in found

    def test_the_older_a_run_the_seldomer_the_polls(self):
        self.use(run_of(targets=2))
        pauses = []
        for age in (-10, 0, 40, 100, 1000, 80000):
            self.now = NOON + age
            pauses.append(self.show()['next_look'])
        assert pauses == [5, 5, 5, 10, 100, 300]

    def test_a_target_is_cancelled_and_an_error_says_when_to_poll_again(self):
        self.use(run_of('cancelled'))
        found = self.cancel(3)
        self.client.cancel.assert_called_once_with('run-1', 3)
        assert (found['state'], found['success']) == ('cancelled', False)
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
