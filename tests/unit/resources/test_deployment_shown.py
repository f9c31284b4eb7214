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
        self.assertEqual(
            self.heat.rpc.show_software_deployment(self.heat.context, row.id),
            found,
        )
        config = stack['config']
        self.assertEqual(
            self.heat.rpc.show_software_config(
                self.heat.context, config.resource_id
            ),
            self.shown(config),
        )
        # What is not there is null.
        found = api.format_resource_attributes(
            stack['deployment'], [*expected]
        )
        self.assertLessEqual(expected.items(), found.items())
        # A server sees neither, as before: the API's policy denies it.
        stack.context.roles.append(cfg.CONF.heat_stack_user_role)
        self.assertNotIn('server_id', self.shown(stack['deployment']))
        self.assertIsNone(config._show_resource())

    def test_what_was_withdrawn_is_shown_with_the_reason(self):
        stack, _ = self.fails(deployments.template(timeout=5), None)
        found = self.shown(stack['deployment'])
        self.assertEqual('FAILED', found['status'])
        self.assertIn('has not signalled CREATE', found['status_reason'])
        self.assertEqual(stack['server'].resource_id, found['server_id'])
        self.assertIsNone(stack['deployment'].FnGetAtt('deploy_stdout'))

    def test_a_config_that_is_gone_must_be_replaced(self):
        stack = self.created()
        deployment, config = stack['deployment'], stack['config']
        self.heat.rpc.delete_software_deployment(
            self.heat.context, deployment.resource_id
        )
        # A deployment must not.
        self.assertEqual({}, deployment.get_live_state(deployment.properties))
        # Yet one that the template has by its ID must be there.
        self.patch(type(deployment), 'external_id', deployment.resource_id)
        self.assertRaises(
            exception.StackValidationFailed, deployment.validate_external
        )
        config.resource_id = str(uuid.uuid4())
        self.assertNotIn('id', self.shown(config))
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
        self.assertEqual('CREATE', said(before))
        self.act(stack, 'SUSPEND')
        # Whoever shows a stack stores what it has resolved last of all.
        before['deployment'].store_attributes()
        after = self.heat.load(stack)
        self.assertEqual('SUSPEND', said(after))
        after['deployment'].store_attributes()
        stored = self.heat.load(stack)['deployment'].attributes
        self.assertEqual({'deploy_stdout': 'SUSPEND'}, stored.cached_attrs)
