# SPDX-License-Identifier: Apache-2.0
"""What a deployment hands to its server, action by action."""

from unittest import mock

from heat.common import exception
from heat.engine import service_software_config

from heat_plugins.engine import hubs
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from tests.unit.resources import deployments


class DerivedConfigTest(deployments.DeploymentTestCase):
    """What the agents in the field need of a derived config."""

    def test_every_action_has_a_config_of_its_own(self):
        actions = {'actions': deployments.ALL_ACTIONS}
        stack = self.created(
            deployments.template(input_values={'who': 's3cret'}, **actions)
        )
        source = stack['config'].resource_id
        (row,) = self.deployment_rows()
        self.assertEqual({'who': 's3cret'}, row.input_values)
        # It says where to send what, and nothing of other ways.
        given = deployments.inputs(self.handed[0])
        self.assertEqual('PUT', given['deploy_signal_verb'])
        self.assertEqual(
            stack['server'].resource_id, given['deploy_server_id']
        )
        self.assertEqual('deployment', given['deploy_resource_name'])
        self.assertEqual(
            stack.identifier().stack_path(), given['deploy_stack_id']
        )
        self.assertIn(
            f'/AUTH_{deployments.PROJECT}/heat-plugins-{stack.id}/'
            f'signals/{row.id}/{self.handed[0]["id"]}?',
            given['deploy_signal_id'],
        )
        for name in ('deploy_auth_url', 'deploy_queue_id', 'deploy_password'):
            self.assertNotIn(name, given)
        # As one that Heat's own class has made.
        rows.change(
            self.heat.context, row.id, stack_user_project_id='stack-users'
        )
        self.update(stack, deployments.template(**actions))
        # Inputs that are taken back leave the row.
        (row,) = self.deployment_rows()
        self.assertFalse(row.input_values)
        self.assertIsNone(row.stack_user_project_id)
        # A config of nobody else is touched.
        self.assertEqual({source, self.handed[-1]['id']}, self.config_ids())
        self.assertEqual(
            [self.handed[-1]['id']],
            [config['id'] for config in self.in_metadata(stack)],
        )
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.delete(stack)
        given = [deployments.inputs(config) for config in self.handed]
        self.assertEqual(
            ['CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE'],
            [each['deploy_action'] for each in given],
        )
        for ids in (
            [config['id'] for config in self.handed],
            [each['deploy_signal_id'] for each in given],
        ):
            self.assertEqual(5, len(set(ids)))

    def test_it_has_a_name_without_a_config(self):
        whole = deployments.template()
        del whole['resources']['config']
        del whole['resources']['deployment']['properties']['config']
        self.created(whole, name='other')
        (config,) = self.handed
        self.assertRegex(config['name'], '^other-deployment-')
        self.assertEqual('', config['config'])
        self.assertEqual('Heat::Ungrouped', config['group'])
        self.assertEqual({}, config['options'])

    def test_but_one_of_a_server_that_zaqar_polls_for(self):
        stack = self.heat.stack(deployments.template())
        task = self.heat.begin(stack, 'CREATE')
        stack['server'].data_set('metadata_queue_id', 'queue')
        self.patch(
            service_software_config.SoftwareConfigService,
            '_get_zaqar_queue',
            lambda *args: _Queue(),
        )
        self.finish(task)
        (row,) = self.deployment_rows()
        self.assertEqual(
            stack.stack_user_project_id, row.stack_user_project_id
        )


class _Queue:
    def post(self, message):
        """Take a message."""


class ActionsTest(deployments.DeploymentTestCase):
    def test_an_action_that_is_not_asked_for_is_complete_at_once(self):
        stack = self.created(deployments.template(actions=['UPDATE']))
        self.assertEqual([], self.handed)
        self.assertIsNone(stack['deployment'].resource_id)
        # A signal before anything was handed over is ignored.
        stack['deployment'].signal({'answer': 'x'})
        self.update(stack, deployments.template(actions=['UPDATE'], name='x'))
        self.assertEqual(1, len(self.handed))
        self.act(stack, 'SUSPEND')
        self.delete(stack)
        self.assertEqual(1, len(self.handed))
        self.assert_nothing_left()
        self.handed.clear()
        # DELETE runs though CREATE was asked for only later.
        stack = self.created(deployments.template(actions=['DELETE']))
        self.update(stack, deployments.template(actions=['CREATE', 'DELETE']))
        self.assertEqual([], self.handed)
        self.delete(stack)
        self.assertEqual(1, len(self.handed))
        self.assert_nothing_left()

    def test_without_a_signal_it_is_complete_when_handed_over(self):
        self.answer = None
        stack = self.created(
            deployments.template(signal_transport='NO_SIGNAL')
        )
        (row,) = self.deployment_rows()
        self.assertEqual('COMPLETE', row.status)
        (config,) = self.in_metadata(stack)
        given = deployments.inputs(config)
        self.assertEqual('NO_SIGNAL', given['deploy_signal_transport'])
        self.assertNotIn('deploy_signal_id', given)
        self.assertEqual([], self.swift.seen)
        self.delete(stack)
        # The engine keeps no connection.
        self.assertEqual([], hubs.HUBS.values())


class FailuresTest(deployments.DeploymentTestCase):
    """A hand-over that fails leaves nothing half done."""

    def test_before_anything_was_written(self):
        self.patch(
            rows,
            'deliver',
            mock.Mock(side_effect=exception.Error('deliver has failed')),
        )
        stack, reason = self.fails(deployments.template(), {})
        self.assertIn('deliver has failed', reason)
        self.assertEqual([], self.deployment_rows())
        self.assertEqual({stack['config'].resource_id}, self.config_ids())
        self.assert_nothing_waits()

    def test_nor_has_one_that_never_reached_its_server(self):
        self.swift.denied.add(deployments.PROJECT)
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        stack, _ = self.fails(whole, {})
        self.delete(stack)
        self.assertEqual([], self.handed)
        self.assert_nothing_left()


class UntoldTest(deployments.DeploymentTestCase):
    """Nothing waits for NO_SIGNAL, so its row is complete at once."""

    def test_the_next_update_tells_a_server_that_could_not_be_told(self):
        whole = deployments.template(signal_transport='NO_SIGNAL')
        self.configure(swift_error_budget=20)
        attempts = self.break_database(server_metadata, 'tell', 10**6)
        stack = self.heat.stack(whole)
        task = self.heat.begin(stack, 'CREATE')
        self.failed(task, stack)
        self.assertEqual([], self.in_metadata(stack))
        attempts.clear()
        stack.persist_state_and_release_lock('engine')
        self.update(stack, whole)
        self.assertEqual(1, len(self.in_metadata(stack)))
        self.delete(stack)
        self.assert_nothing_left()
