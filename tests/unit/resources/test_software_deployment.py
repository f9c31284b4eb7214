# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareDeployment: its life from update to adoption."""

from unittest import mock

from heat.common import exception
from heat.engine.resources.openstack.heat import software_deployment as base
from heat.engine.resources.openstack.heat import structured_config
import testtools

from tests.unit.resources import deployments

HEATS = {
    f'OS::Heat::{cls.__name__}': cls
    for cls in (
        base.SoftwareDeployment,
        base.SoftwareDeploymentGroup,
        base.SoftwareDeployments,
        structured_config.StructuredDeployment,
        structured_config.StructuredDeploymentGroup,
        structured_config.StructuredDeployments,
    )
}


class SchemaTest(testtools.TestCase):
    """Whatever a template may say of Heat's classes it may say of ours."""

    def test_each_property_is_there_with_the_same_type(self):
        for name, heats in HEATS.items():
            ours = deployments.OURS[name].properties_schema
            expected = {
                'delivery_timeout',
                'signal_url_lifetime',
                'timeout',
                'trigger_by_servers',
                'trigger_url',
            }
            if 'servers' in ours:
                # Only a group has them.
                expected |= {'max_failures', 'members'}
            assert set(ours) - set(heats.properties_schema) == expected
            for key, schema in heats.properties_schema.items():
                different = {
                    field
                    for field in (
                        'type',
                        'default',
                        'required',
                        'implemented',
                        'update_allowed',
                        'immutable',
                    )
                    if getattr(schema, field) != getattr(ours[key], field)
                }
                # An update in place is what ours does better.
                allowed = (
                    {'update_allowed'} if key == 'signal_transport' else set()
                )
                assert different == allowed, (name, key)

    def test_each_transport_of_heats_may_be_named(self):
        for name, heats in HEATS.items():
            (theirs,) = heats.properties_schema['signal_transport'].constraints
            (ours,) = (
                deployments.OURS[name]
                .properties_schema['signal_transport']
                .constraints
            )
            assert set(ours.allowed) - set(theirs.allowed) == {
                'AUTO',
                'TEMP_URL_POLL',
            }
            assert set(theirs.allowed) <= set(ours.allowed)

    def test_each_attribute_is_there_with_the_same_type(self):
        for name, heats in HEATS.items():
            ours = deployments.OURS[name].attributes_schema
            # Heat adds those of all types once one is made.
            own = heats.attributes_schema.keys() - heats.base_attributes_schema
            for key in own:
                schema = heats.attributes_schema[key]
                assert ours[key].type == schema.type
            expected = {'signal_transport', 'runs', 'trigger_url'}
            if 'deploy_stdouts' in ours:
                # Only a group has them.
                expected.add('members')
            assert (
                set(ours) - set(heats.attributes_schema) - {'show'} == expected
            ), name

    def test_heats_own_schemas_are_left_alone(self):
        assert 'timeout' not in base.SoftwareDeployment.properties_schema
        assert not base.SoftwareDeployment.properties_schema[
            'signal_transport'
        ].update_allowed

    def test_each_type_names_the_support_that_heats_does(self):
        for name, heats in HEATS.items():
            ours = deployments.OURS[name].support_status
            assert ours.to_dict() == heats.support_status.to_dict()


class UpdateTest(deployments.DeploymentTestCase):
    def test_it_is_updated_in_place_or_replaced(self):
        stack = self.created()
        before = stack['deployment'].resource_id
        # It is not touched for nothing.
        self.update(stack, deployments.template())
        assert len(self.handed) == 1
        given = {}
        handed = 1
        for change, runs in (
            ({'name': 'x'}, 1),
            ({'input_values': {'who': 'x'}}, 1),
            # A server that has run it need not know these.
            ({'signal_transport': 'AUTO'}, 0),
            ({'timeout': 99}, 0),
            ({'signal_url_lifetime': 6000}, 0),
        ):
            given |= change
            self.update(stack, deployments.template(**given))
            handed += runs
            assert len(self.handed) == handed, change
            again = self.heat.load(stack)
            assert again['deployment'].resource_id == before
        self.update(stack, deployments.template(server='other'))
        again = self.heat.load(stack)
        assert again['deployment'].resource_id != before
        assert len(self.deployment_rows()) == 1

    def replacing(self, **properties):
        return deployments.template(
            config={
                'inputs': [
                    {'name': 'who', 'replace_on_change': True},
                    {'name': 'why'},
                ]
            },
            **properties,
        )

    def test_an_input_may_ask_for_replacement(self):
        stack = self.created(self.replacing(input_values={'who': 'a'}))
        before = stack['deployment'].resource_id
        self.update(
            stack, self.replacing(input_values={'who': 'a', 'why': 'x'})
        )
        again = self.heat.load(stack)
        assert again['deployment'].resource_id == before
        self.update(stack, self.replacing(input_values={'who': 'b'}))
        again = self.heat.load(stack)
        assert again['deployment'].resource_id != before
        assert len(self.deployment_rows()) == 1

    def test_one_that_failed_is_repeated_though_nothing_changes(self):
        stack = self.created()
        before = stack['deployment'].resource_id
        # One that is complete stays until its replacement is too.
        with mock.patch.object(
            base.SoftwareDeployment, 'make_replacement', return_value=7
        ):
            found = stack['deployment'].make_replacement(None, None, None)
        assert found == 7
        assert len(self.deployment_rows()) == 1
        self.answer = {'deploy_status_code': 1}
        changed = deployments.template(name='x')
        self.failed(self.heat.begin(stack, 'UPDATE', changed), stack)
        self.answer = {}
        self.update(stack, changed)
        again = self.heat.load(stack)
        assert again['deployment'].resource_id == before
        assert again['deployment'].state == ('UPDATE', 'COMPLETE')
        assert len(self.handed) == 3

    def replaced_by_one_that_is_lost(self, resource):
        """Let Heat fail to replace a deployment, or its engine die then."""
        with mock.patch.object(
            base.SoftwareDeployment,
            'make_replacement',
            side_effect=exception.UpdateInProgress(resource_name='deployment'),
        ):
            self.assertRaises(
                exception.UpdateInProgress,
                resource.make_replacement,
                None,
                None,
                None,
            )

    def test_what_waits_is_taken_back_before_it_is_replaced(self):
        stack, task = self.waiting()
        self.addCleanup(task.cancel)
        resource = self.heat.load(stack)['deployment']
        # It is left if an engine works on it, and it cannot be replaced.
        self.replaced_by_one_that_is_lost(resource)
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'
        # Nobody would come here again.
        resource.state_set('CREATE', 'FAILED', 'Engine has died')
        self.replaced_by_one_that_is_lost(resource)
        self.assert_withdrawn(stack, 'has died')

    def test_one_that_waits_is_taken_back_when_it_is_replaced(self):
        # Its engine has died, and the update begins where that has left off.
        stack, task = self.waiting()
        self.addCleanup(task.cancel)
        again = self.heat.load(stack)
        with mock.patch.object(base.SoftwareDeployment, 'make_replacement'):
            again['deployment'].make_replacement(None, None, None)
        self.assert_withdrawn(again, 'has died')


class AttributesTest(deployments.DeploymentTestCase):
    def test_a_declared_output_is_known_before_it_has_a_value(self):
        stack = self.created(deployments.template(actions=['SUSPEND']))
        resource = stack['deployment']
        assert resource.FnGetAtt('answer') is None
        self.assertRaises(
            exception.InvalidTemplateAttribute, resource.FnGetAtt, 'unknown'
        )
        # A config that is gone is no reason to fail.
        self.heat.rpc.delete_software_config(
            self.heat.context, stack['config'].resource_id
        )
        assert resource.FnGetAtt('deploy_stdout') is None
        assert resource.FnGetAtt('answer') is None

    def test_unless_the_config_declares_an_output_of_that_name(self):
        config = {'outputs': [{'name': 'signal_transport'}]}
        self.answer = {'signal_transport': 'carrier'}
        stack = self.created(deployments.template(config=config))
        assert stack['deployment'].FnGetAtt('signal_transport') == 'carrier'
        self.answer = {}
        self.update(stack, deployments.template(config=config, name='b'))
        again = self.heat.load(stack)
        assert again['deployment'].FnGetAtt('signal_transport') is None


class CheckTest(deployments.DeploymentTestCase):
    def check(self, stack):
        again = self.heat.load(stack)
        self.finish(self.heat.begin(again, 'CHECK'))
        return again['deployment'].state, again['deployment'].status_reason

    def test_it_runs_nothing_again_and_fails_without_row_or_server(self):
        stack = self.created(deployments.template())
        calls = len(self.heat.rpc.calls)
        self.act(stack, 'CHECK')
        assert len(self.handed) == 1
        assert len(self.heat.rpc.calls) == calls
        self.heat.rpc.delete_software_deployment(
            self.heat.context, stack['deployment'].resource_id
        )
        state, reason = self.check(stack)
        assert state == ('CHECK', 'FAILED')
        assert 'no longer exists' in reason
        adopted = self.adopt(stack)['deployment']
        assert adopted.status == 'FAILED'
        assert 'Cannot adopt deployment' in adopted.status_reason
        assert adopted.needs_replace_failed()

    def test_and_without_the_server(self):
        stack = self.created(deployments.template(server='nowhere'))
        state, reason = self.check(stack)
        assert state == ('CHECK', 'FAILED')
        assert 'Server nowhere does not exist' in reason


class AdoptTest(deployments.DeploymentTestCase):
    def test_one_that_is_complete_goes_on(self):
        self.answer = {'answer': '42'}
        stack = self.created()
        row_id = stack['deployment'].resource_id
        self.send(self.handed[0], {'answer': 'late'})
        adopted = self.adopt(stack)
        assert adopted['deployment'].state == ('ADOPT', 'COMPLETE')
        assert adopted['deployment'].resource_id == row_id
        assert adopted['deployment'].FnGetAtt('answer') == '42'
        assert self.containers() == []
        self.delete(adopted)
        assert self.deployment_rows() == []
        assert self.containers() == []

    def test_what_cannot_be_cleaned_up_does_not_keep_it_from_that(self):
        stack = self.created()
        self.swift.denied.add(deployments.PROJECT)
        adopted = self.adopt(stack)
        assert adopted['deployment'].state == ('ADOPT', 'COMPLETE')

    def test_one_that_waits_is_refused_and_can_be_updated(self):
        stack, task = self.waiting()
        self.addCleanup(task.cancel)
        adopted = self.adopt(stack)
        assert adopted['deployment'].status == 'FAILED'
        assert 'IN_PROGRESS' in adopted['deployment'].status_reason
        assert not adopted['deployment'].needs_replace_failed()

    def test_no_container_that_is_not_ours_is_touched(self):
        stack = self.created()
        stack['deployment'].data_set('heat_plugins_signal_container', 'own')
        self.swift.store(deployments.PROJECT).put_container('own', {})
        adopted = self.adopt(stack)
        assert adopted['deployment'].state == ('ADOPT', 'COMPLETE')
        self.delete(adopted)
        assert 'own' in self.containers()
