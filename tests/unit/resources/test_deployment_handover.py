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
        assert row.input_values == {'who': 's3cret'}
        # It says where to send what, and nothing of other ways.
        given = deployments.inputs(self.handed[0])
        assert given['deploy_signal_verb'] == 'PUT'
        assert given['deploy_server_id'] == stack['server'].resource_id
        assert given['deploy_resource_name'] == 'deployment'
        assert given['deploy_stack_id'] == stack.identifier().stack_path()
        assert (
            f'/AUTH_{deployments.PROJECT}/heat-plugins-{stack.id}/'
            f'signals/{row.id}/{self.handed[0]["id"]}?'
        ) in given['deploy_signal_id']
        for name in ('deploy_auth_url', 'deploy_queue_id', 'deploy_password'):
            assert name not in given
        # As one that Heat's own class has made.
        rows.change(
            self.heat.context, row.id, stack_user_project_id='stack-users'
        )
        self.update(stack, deployments.template(**actions))
        # Inputs that are taken back leave the row.
        (row,) = self.deployment_rows()
        assert not row.input_values
        assert row.stack_user_project_id is None
        # A config of nobody else is touched.
        assert self.config_ids() == {source, self.handed[-1]['id']}
        assert [config['id'] for config in self.in_metadata(stack)] == [
            self.handed[-1]['id']
        ]
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.delete(stack)
        given = [deployments.inputs(config) for config in self.handed]
        assert [each['deploy_action'] for each in given] == [
            'CREATE',
            'UPDATE',
            'SUSPEND',
            'RESUME',
            'DELETE',
        ]
        for ids in (
            [config['id'] for config in self.handed],
            [each['deploy_signal_id'] for each in given],
        ):
            assert len(set(ids)) == 5

    def test_it_has_a_name_without_a_config(self):
        whole = deployments.template()
        del whole['resources']['config']
        del whole['resources']['deployment']['properties']['config']
        self.created(whole, name='other')
        (config,) = self.handed
        self.assertRegex(config['name'], '^other-deployment-')
        assert config['config'] == ''
        assert config['group'] == 'Heat::Ungrouped'
        assert config['options'] == {}

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
        assert row.stack_user_project_id == stack.stack_user_project_id


class _Queue:
    def post(self, message):
        """Take a message."""


class ActionsTest(deployments.DeploymentTestCase):
    def test_an_action_that_is_not_asked_for_is_complete_at_once(self):
        stack = self.created(deployments.template(actions=['UPDATE']))
        assert self.handed == []
        assert stack['deployment'].resource_id is None
        # A signal before anything was handed over is ignored.
        stack['deployment'].signal({'answer': 'x'})
        self.update(stack, deployments.template(actions=['UPDATE'], name='x'))
        assert len(self.handed) == 1
        self.act(stack, 'SUSPEND')
        self.delete(stack)
        assert len(self.handed) == 1
        self.assert_nothing_left()
        self.handed.clear()
        # DELETE runs though CREATE was asked for only later.
        stack = self.created(deployments.template(actions=['DELETE']))
        self.update(stack, deployments.template(actions=['CREATE', 'DELETE']))
        assert self.handed == []
        self.delete(stack)
        assert len(self.handed) == 1
        self.assert_nothing_left()

    def test_without_a_signal_it_is_complete_when_handed_over(self):
        self.answer = None
        stack = self.created(
            deployments.template(signal_transport='NO_SIGNAL')
        )
        (row,) = self.deployment_rows()
        assert row.status == 'COMPLETE'
        (config,) = self.in_metadata(stack)
        given = deployments.inputs(config)
        assert given['deploy_signal_transport'] == 'NO_SIGNAL'
        assert 'deploy_signal_id' not in given
        assert self.swift.seen == []
        self.delete(stack)
        # The engine keeps no connection.
        assert hubs.HUBS.values() == []


class FailuresTest(deployments.DeploymentTestCase):
    """A hand-over that fails leaves nothing half done."""

    def test_before_anything_was_written(self):
        self.patch(
            rows,
            'deliver',
            mock.Mock(side_effect=exception.Error('deliver has failed')),
        )
        stack, reason = self.fails(deployments.template(), {})
        assert 'deliver has failed' in reason
        assert self.deployment_rows() == []
        assert self.config_ids() == {stack['config'].resource_id}
        self.assert_nothing_waits()

    def test_nor_has_one_that_never_reached_its_server(self):
        self.swift.denied.add(deployments.PROJECT)
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        stack, _ = self.fails(whole, {})
        self.delete(stack)
        assert self.handed == []
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
        assert self.in_metadata(stack) == []
        attempts.clear()
        stack.persist_state_and_release_lock('engine')
        self.update(stack, whole)
        assert len(self.in_metadata(stack)) == 1
        self.delete(stack)
        self.assert_nothing_left()
