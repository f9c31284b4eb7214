# SPDX-License-Identifier: Apache-2.0
"""Templates of Heat's own classes work with ours, and stacks go back."""

from heat.engine import resource
from heat.engine.resources.openstack.heat import software_deployment as base
from heat.engine.resources.openstack.heat import structured_config
import pytest

from tests.unit.resources import deployments

HEATS = [
    base.SoftwareDeployment,
    base.SoftwareDeploymentGroup,
    base.SoftwareDeployments,
    structured_config.StructuredDeployment,
    structured_config.StructuredDeploymentGroup,
    structured_config.StructuredDeployments,
]
FIELDS = (
    *('type', 'default', 'required'),
    *('implemented', 'update_allowed', 'immutable'),
)


@pytest.mark.parametrize('heats', HEATS, ids=lambda heats: heats.__name__)
def test_what_a_template_says_of_heats_class_it_may_say_of_ours(heats):
    ours = deployments.OURS[f'OS::Heat::{heats.__name__}']
    theirs, schema = heats.properties_schema, ours.properties_schema
    # Only a group has these.
    is_group = 'servers' in schema
    assert set(schema) - set(theirs) == {
        *('delivery_timeout', 'signal_url_lifetime', 'timeout'),
        *('trigger_by_servers', 'trigger_url'),
        *(['max_failures', 'members'] if is_group else ()),
    }
    different = {
        (key, field)
        for key in theirs
        for field in FIELDS
        if getattr(theirs[key], field) != getattr(schema[key], field)
    }
    # An update in place is what ours does better.
    assert different == {('signal_transport', 'update_allowed')}
    allowed, former = (
        set(each['signal_transport'].constraints[0].allowed)
        for each in (schema, theirs)
    )
    assert former <= allowed
    assert allowed - former == {'AUTO', 'TEMP_URL_POLL'}
    theirs, schema = heats.attributes_schema, ours.attributes_schema
    # Heat adds those of all types once one is made.
    for key in theirs.keys() - heats.base_attributes_schema:
        assert schema[key].type == theirs[key].type
    assert set(schema) - set(theirs) - {'show'} == {
        'signal_transport',
        'runs',
        'trigger_url',
        *(['members'] if is_group else ()),
    }
    # A template in the place of a type needs Heat's attributes alone.
    assert set(schema.copy()) == set(theirs)
    assert ours.support_status.to_dict() == heats.support_status.to_dict()


class WithdrawnTest(deployments.DeploymentTestCase):
    """An update was cancelled; then heat-plugins was removed."""

    def test_heats_own_class_delivers_replaces_and_deletes(self):
        inputs = [{'name': 'who', 'replace_on_change': True}]
        given = {'config': {'inputs': inputs}, 'input_values': {'who': 'a'}}
        stack = self.created(deployments.template(**given))
        changed = deployments.template(**given, name='changed')
        _, task = self.waiting(changed, 'UPDATE', stack)
        task.cancel()
        self.assert_withdrawn(stack, 'cancelled')
        (row,) = self.deployment_rows()

        def heats(who):
            whole = deployments.template(
                server=stack['server'].resource_id,
                config=stack['config'].resource_id,
                signal_transport='NO_SIGNAL',
                input_values={'who': who},
            )
            other = self.heat.stack(whole, f'stack-{who}')
            definition = other['deployment'].t
            own = base.SoftwareDeployment('deployment', definition, other)
            own.resource_id = row.id
            return own

        own = heats('b')
        update = own.handle_update, own.t, None, {}
        self.assertRaises(resource.UpdateReplace, *update)
        own = heats('a')
        own.handle_update(own.t, None, {})
        (config,) = self.in_metadata(stack)
        assert deployments.inputs(config)['deploy_action'] == 'UPDATE'
        assert row.config_id not in self.config_ids()
        # It deletes all of it.
        own._delete_resource()
        assert self.deployment_rows() == []
