# SPDX-License-Identifier: Apache-2.0
"""What the row of a withdrawn action tells Heat's own class, and ours."""

from heat.engine import resource
from heat.engine.resources.openstack.heat import software_deployment

from tests.unit.resources import deployments


class WithdrawnTest(deployments.DeploymentTestCase):
    """An update was cancelled; then heat-plugins was removed."""

    def cancelled(self, whole):
        """Return a stack whose update was cancelled, and its row."""
        stack = self.created(whole)
        changed = deployments.template(name='changed')
        _, task = self.waiting(changed, 'UPDATE', stack)
        task.cancel()
        self.assert_withdrawn(stack, 'cancelled')
        (row,) = self.deployment_rows()
        return stack, row

    def heats_own(self, stack, row, **properties):
        """Return the deployment as Heat's own class has it."""
        other = self.heat.stack(
            deployments.template(
                server=stack['server'].resource_id,
                config=stack['config'].resource_id,
                signal_transport='NO_SIGNAL',
                **properties,
            ),
            name='other',
        )
        own = software_deployment.SoftwareDeployment(
            'deployment', other['deployment'].t, other
        )
        own.resource_id = row.id
        return own

    def test_an_update_of_heats_own_class_is_delivered(self):
        stack, row = self.cancelled(deployments.template())
        own = self.heats_own(stack, row)
        own.handle_update(own.t, None, {})
        (config,) = self.in_metadata(stack)
        assert deployments.inputs(config)['deploy_action'] == 'UPDATE'
        assert row.config_id not in self.config_ids()
        # It deletes all of it.
        own._delete_resource()
        assert self.deployment_rows() == []

    def test_heats_own_class_replaces_it_for_an_input(self):
        config = {'inputs': [{'name': 'who', 'replace_on_change': True}]}
        stack = self.created(
            deployments.template(config=config, input_values={'who': 'a'})
        )
        changed = deployments.template(
            config=config, input_values={'who': 'a'}, name='changed'
        )
        _, task = self.waiting(changed, 'UPDATE', stack)
        task.cancel()
        (row,) = self.deployment_rows()
        own = self.heats_own(stack, row, input_values={'who': 'b'})
        self.assertRaises(
            resource.UpdateReplace, own.handle_update, own.t, None, {}
        )
