# SPDX-License-Identifier: Apache-2.0
"""What Heat's API shows of a deployment's attributes, asked for by name."""

import uuid

from heat.common import exception
from heat.engine import api
from oslo_config import cfg

from tests.unit.resources import deployments


class ShownTest(deployments.DeploymentTestCase):
    def shown(self, resource):
        """Return what the API shows where nothing else is asked for."""

        def ask(*args, **kwargs):
            raise AssertionError('heat-api waits for this engine')

        self.patch(type(resource), 'client', ask)
        return api.format_resource_attributes(resource)

    def test_no_request_is_sent_to_the_api_that_waits_for_an_answer(self):
        self.answer = {'answer': 'hello', 'deploy_stdout': 'said'}
        expected = {
            **self.answer,
            'signal_transport': 'TEMP_URL_POLL',
            'nonsense': None,
        }
        stack = self.created()
        (row,) = self.deployment_rows()
        found = self.shown(stack['deployment'])
        assert found == self.heat.rpc.show_software_deployment(
            self.heat.context, row.id
        )
        config = stack['config']
        assert self.shown(config) == self.heat.rpc.show_software_config(
            self.heat.context, config.resource_id
        )
        # What is not there is null.
        found = api.format_resource_attributes(
            stack['deployment'], [*expected]
        )
        assert expected.items() <= found.items()
        # A server sees neither, as before: the API's policy denies it.
        stack.context.roles.append(cfg.CONF.heat_stack_user_role)
        assert 'server_id' not in self.shown(stack['deployment'])
        assert config._show_resource() is None

    def test_what_was_withdrawn_is_shown_with_the_reason(self):
        stack, _ = self.fails(deployments.template(timeout=5), None)
        found = self.shown(stack['deployment'])
        assert found['status'] == 'FAILED'
        assert 'has not signalled CREATE' in found['status_reason']
        assert found['server_id'] == stack['server'].resource_id
        assert stack['deployment'].FnGetAtt('deploy_stdout') is None

    def test_a_config_that_is_gone_must_be_replaced(self):
        stack = self.created()
        deployment, config = stack['deployment'], stack['config']
        self.heat.rpc.delete_software_deployment(
            self.heat.context, deployment.resource_id
        )
        # A deployment must not.
        assert deployment.get_live_state(deployment.properties) == {}
        # Yet one that the template has by its ID must be there.
        self.patch(type(deployment), 'external_id', deployment.resource_id)
        self.assertRaises(
            exception.StackValidationFailed, deployment.validate_external
        )
        config.resource_id = str(uuid.uuid4())
        assert 'id' not in self.shown(config)
        self.assertRaises(
            exception.EntityNotFound,
            config.get_live_state,
            config.properties,
        )

    def test_outputs_of_the_action_before_are_not_kept(self):
        self.answer = lambda config: {
            'deploy_stdout': deployments.inputs(config)['deploy_action']
        }
        stack = self.created(
            deployments.template(actions=deployments.ALL_ACTIONS)
        )

        def said(stack):
            return stack['deployment'].FnGetAtt('deploy_stdout')

        before = self.heat.load(stack)
        assert said(before) == 'CREATE'
        self.act(stack, 'SUSPEND')
        # Whoever shows a stack stores what it has resolved last of all.
        before['deployment'].store_attributes()
        after = self.heat.load(stack)
        assert said(after) == 'SUSPEND'
        after['deployment'].store_attributes()
        stored = self.heat.load(stack)['deployment'].attributes
        assert stored.cached_attrs == {'deploy_stdout': 'SUSPEND'}
