# SPDX-License-Identifier: Apache-2.0
"""What is to run after a deployment, as a plan names it."""

import testtools

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.plans.content import environments
from heat_plugins.plans.deploy import deploy_records


def read(section):
    return deploy_records.steps(
        environments.PlanEnvironment(
            template='shop.yaml', more={deploy_records.STEPS: section}
        )
    )


class StepsTest(testtools.TestCase):
    def test_workflows_and_actions_in_their_order(self):
        found = read(
            [
                {'workflow': 'shop.configure', 'input': {'region': 'north'}},
                {'action': 'std.noop'},
            ]
        )
        self.assertEqual(
            [
                (
                    jobs.CallKind.WORKFLOW,
                    'shop.configure',
                    {'region': 'north'},
                ),
                (jobs.CallKind.ACTION, 'std.noop', {}),
            ],
            [(one.kind, one.name, one.input) for one in found],
        )

    def test_a_plan_need_not_name_any(self):
        plan = environments.PlanEnvironment(template='shop.yaml')
        self.assertEqual((), deploy_records.steps(plan))
        self.assertEqual((), read(None))

    def test_what_is_none_is_refused_with_its_place(self):
        for wrong in (
            'shop.configure',
            {},
            {'workflow': ''},
            {'workflow': 7},
            {'input': {}},
            {'workflow': 'a', 'action': 'b'},
            {'workflow': 'a', 'input': ['b']},
            {'workflow': 'a', 'inputs': {}},
        ):
            exc = self.assertRaises(
                errors.Invalid, read, [{'action': 'std.noop'}, wrong]
            )
            self.assertIn('Number 2', str(exc))
        self.assertRaises(errors.Invalid, read, {'workflow': 'a'})

    def test_inputs_are_not_shown_in_passing(self):
        found = read([{'action': 'a', 'input': {'password': 'geheim'}}])
        self.assertNotIn('geheim', repr(found))
