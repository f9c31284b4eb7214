# SPDX-License-Identifier: Apache-2.0
"""What Heat's API shows of a deployment's attributes, asked for by name."""

from heat.engine import api

from tests.unit.resources import deployments


class ShownTest(deployments.DeploymentTestCase):
    def shown(self, *names):
        self.answer = {'answer': 'hello', 'deploy_stdout': 'said'}
        stack = self.heat.create(deployments.template())
        found = api.format_resource_attributes(stack['deployment'], names)
        return [found[name] for name in names]

    def test_outputs_are_shown(self):
        self.assertEqual(
            ['hello', 'said'], self.shown('answer', 'deploy_stdout')
        )

    def test_transport_is_shown(self):
        self.assertEqual(['TEMP_URL_POLL'], self.shown('signal_transport'))

    def test_what_there_is_not_is_null(self):
        self.assertEqual([None], self.shown('nonsense'))

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
