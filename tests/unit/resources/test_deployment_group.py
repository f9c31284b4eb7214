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
            name=kind.replace(':', ''),
        )
        definitions = stack['deployment'].child_template()
        (member,) = definitions.resource_definitions(stack).values()
        self.assertEqual(GROUPS[kind], member.resource_type)
        return dict(member._properties)

    def test_member_is_not_given_what_the_group_leaves_out(self):
        for kind in GROUPS:
            properties = self.member(kind)
            self.assertNotIn('timeout', properties)
            self.assertNotIn('signal_url_lifetime', properties)

    def test_member_is_given_what_the_group_says(self):
        for kind in GROUPS:
            properties = self.member(kind, timeout=60, name='n')
            self.assertEqual(60, properties['timeout'])
            self.assertEqual('n', properties['name'])
            self.assertEqual('id', properties['server'])
