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
    def test_steps_are_read_in_their_order(self):
        found = read(
            [
                {'workflow': 'shop.configure', 'input': {'region': 'north'}},
                {'action': 'std.noop'},
            ]
        )
        workflow = {'region': 'north'}
        assert [(one.kind, one.name, one.input) for one in found] == [
            (jobs.CallKind.WORKFLOW, 'shop.configure', workflow),
            (jobs.CallKind.ACTION, 'std.noop', {}),
        ]
        assert 'north' not in repr(found)
        assert read(None) == ()

    def test_a_wrong_step_is_refused_with_its_place(self):
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
            given = [{'action': 'std.noop'}, wrong]
            exc = self.assertRaises(errors.Invalid, read, given)
            assert 'Number 2' in str(exc)
        self.assertRaises(errors.Invalid, read, {'workflow': 'a'})
