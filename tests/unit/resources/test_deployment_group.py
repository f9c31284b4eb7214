# SPDX-License-Identifier: Apache-2.0
"""The four types of deployment groups: what their members are given."""

from tests.unit.resources import deployments

GROUPS = {
    'OS::Heat::SoftwareDeploymentGroup': 'OS::Heat::SoftwareDeployment',
    'OS::Heat::SoftwareDeployments': 'OS::Heat::SoftwareDeployment',
    'OS::Heat::StructuredDeploymentGroup': 'OS::Heat::StructuredDeployment',
    'OS::Heat::StructuredDeployments': 'OS::Heat::StructuredDeployment',
}


class GroupTest(deployments.DeploymentTestCase):
    def member(self, kind, **properties):
        stack = self.heat.stack(
            deployments.template(
                kind=kind, server=None, servers={'one': 'id'}, **properties
            ),
            name=self.getUniqueString(),
        )
        template = stack['deployment'].child_template()
        member = template.resource_definitions(stack)['one']
        assert member.resource_type == GROUPS[kind]
        return dict(member._properties)

    def test_member_is_given_what_the_group_says_alone(self):
        for kind in GROUPS:
            given = {'timeout': 60, 'name': 'n', 'signal_transport': 'AUTO'}
            properties = self.member(kind, **given)
            assert {**given, 'server': 'id'}.items() <= properties.items()
            properties = self.member(kind)
            assert 'timeout' not in properties
            assert 'signal_url_lifetime' not in properties


class ProviderTest(deployments.DeploymentTestCase):
    def test_a_template_in_the_place_of_a_type_needs_heats_attributes(self):
        for name, ours in deployments.OURS.items():
            demanded = set(ours.attributes_schema.copy())
            heats = next(
                each
                for each in ours.__mro__
                if each.__module__.startswith('heat.')
            )
            assert demanded == set(heats.attributes_schema), name


class TogetherTest(deployments.DeploymentTestCase):
    def nested(self, servers=('a', 'b', 'c'), policy=None):
        """Return what the stack of the members would be."""
        policy = policy or {}
        whole = deployments.template(
            kind='OS::Heat::SoftwareDeploymentGroup',
            server=None,
            servers={name: f'id of {name}' for name in servers},
        )
        whole['resources']['deployment']['update_policy'] = policy
        group = self.heat.stack(whole, name=self.getUniqueString())[
            'deployment'
        ]
        return group._parse_nested_stack(
            'members', group.child_template(), group.child_params()
        )

    def ends(self, nested):
        """Return what needs nothing, and what nothing needs."""
        graph = nested.dependencies.graph()
        needed = {one for needs in graph.values() for one in needs}
        return (
            {one.name for one in graph if not list(graph[one])},
            {one.name for one in graph if one not in needed},
        )

    def test_all_members_begin_at_once_and_go_at_once(self):
        nested = self.nested()
        assert self.ends(nested) == (
            {'before_all_members'},
            {'after_all_members'},
        )
        assert len(nested) == 5
        # Batches are of members alone.
        for each in ('rolling_update', 'batch_create'):
            nested = self.nested(policy={each: {'max_batch_size': 1}})
            assert set(nested) == {'a', 'b', 'c'}
        # Servers may have any name, and there may be none.
        for servers in (('a', 'after_all_members'), ()):
            assert set(self.nested(servers=servers)) == {*servers}

    def test_outputs_of_a_batch_name_its_members_alone(self):
        keys = ('new', 'newer', 'c', 'd')
        whole = deployments.template(
            kind='OS::Heat::SoftwareDeploymentGroup',
            server=None,
            servers={key: f'id of {key}' for key in keys},
        )
        group = self.heat.stack(whole)['deployment']
        self.patch(group, 'referenced_attrs', lambda: ['deploy_stdouts'])
        properties = group.get_resource_def()
        self.replace(
            'heat.common.grouputils.get_member_definitions',
            lambda group: [
                (key, group.build_resource_definition(key, properties))
                for key in ('c', 'd')
            ],
        )
        template = group._assemble_for_rolling_update(3, 1).t
        assert set(template['resources']) == {'new', 'c', 'd'}
        (shown,) = template['outputs'].values()
        assert set(shown['value']) <= {'new', 'c', 'd'}
