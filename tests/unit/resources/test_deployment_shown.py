# SPDX-License-Identifier: Apache-2.0
"""What Heat's API shows of a deployment's attributes, asked for by name."""

from heat.engine import api

from tests.unit.resources import deployments


class ShownTest(deployments.DeploymentTestCase):
    def test_outputs_and_the_transport_are_shown_and_what_is_not_is_null(self):
        self.answer = {'answer': 'hello', 'deploy_stdout': 'said'}
        expected = {
            **self.answer,
            'signal_transport': 'TEMP_URL_POLL',
            'nonsense': None,
        }
        stack = self.heat.create(deployments.template())
        found = api.format_resource_attributes(
            stack['deployment'], [*expected]
        )
        self.assertLessEqual(expected.items(), found.items())

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
