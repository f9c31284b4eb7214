# SPDX-License-Identifier: Apache-2.0
"""Deployments of plans, step by step, as drivers of JSON take them."""

import json

from heat_plugins import errors
from heat_plugins.plans import plan_operations
from tests.unit.plans import fakes

PLAN = b"""\
template: root.yaml
environments: [{path: base.yaml}]
required_validations: [prep]
post_deployment:
  - workflow: shop.configure
    input: {region: north}
  - action: std.noop
"""


class DeploymentTest(fakes.PlanCase):
    FILES = {'plan-environment.yaml': PLAN}

    def setUp(self):
        super().setUp()
        self.core = plan_operations.PlanOperations(self.plans)
        self.patch(
            plan_operations.deploying.deploy_records,
            'check',
            lambda annex, plan, now: None,
        )
        #: Of calls, by their names; else they succeed.
        self.outcomes = {}
        self.called = []
        self.repeats = 1
        self.ends_with = 'COMPLETE'

    def step(self, state=None, outcome=None):
        """Take a step, perhaps several times, as after crashes."""
        for _ in range(self.repeats):
            found = self.core.deploy(
                'plan', timeout=7, state=state, outcome=outcome
            )
        return json.loads(json.dumps(found))

    def observed(self):
        """Return the state of a deployment before its start."""
        return self.step(self.step()['state'], {'success': True})['state']

    def run_to_the_end(self):
        step = self.step()
        while step['success'] is None:
            outcome, call = None, step['call']
            if call:
                self.called.append((call['kind'], call['name'], call['input']))
                outcome = self.outcomes.get(call['name'], {'success': True})
            else:
                self.finish()
            step = self.step(step['state'], outcome)
        return step

    def finish(self):
        stack = self.heat.stacks.get('plan')
        if stack and stack.in_progress:
            status = f'{stack.action}_{self.ends_with}'
            self.heat.become('plan', status, reason='so it is')

    def test_it_goes_through_all_phases_in_their_order(self):
        self.outcomes['validations.run'] = {'success': False, 'reason': 'ram'}
        exc = self.assertRaises(errors.Refused, self.run_to_the_end)
        said = 'Validations that the plan requires have not passed: ram'
        assert str(exc) == said
        assert 'create' not in self.heat.asked
        self.outcomes.clear()
        self.called.clear()
        step = self.run_to_the_end()
        assert step['success']
        prep = {'plan': 'plan', 'groups': ['prep']}
        assert self.called == [
            ('workflow', 'validations.run', prep),
            ('workflow', 'shop.configure', {'region': 'north'}),
            ('action', 'std.noop', {}),
        ]
        assert step['state']['stack'] == {
            'status': 'CREATE_COMPLETE',
            'reason': '',
            'success': True,
            'next_look': 0,
        }
        assert self.heat.asked.count('create') == 1

    def test_each_step_can_be_repeated(self):
        self.repeats = 3
        self.test_it_goes_through_all_phases_in_their_order()

    def test_a_start_that_is_repeated_after_the_end_finds_what_it_did(self):
        # Mistral was away for long, and the first answer was lost.
        for action in ('CREATE', 'UPDATE'):
            self.called.clear()
            first = self.observed()
            begun = self.step(first)
            self.finish()
            asked = self.heat.asked.count('replace')
            again = self.step(first)
            assert again['state'] == begun['state']
            assert again['state']['started']['action'] == action
            assert self.heat.asked.count('replace') == asked
            assert self.step(again['state'])['state']['stack']['success']

    def test_a_start_that_is_repeated_after_a_failure_fails(self):
        first = self.observed()
        self.step(first)
        self.ends_with = 'FAILED'
        self.finish()
        again = self.step(self.step(first)['state'])
        reason = 'CREATE_FAILED: so it is'
        assert (again['success'], again['reason']) == (False, reason)
        assert again['call'] is None
        # Another deployment of the same plan mends it.
        self.ends_with = 'COMPLETE'
        assert self.run_to_the_end()['success']
        assert self.heat.asked.count('replace') == 1

    def test_a_start_that_is_repeated_before_heat_begins_is_one(self):
        first = self.observed()
        self.step(first)
        self.heat.become('plan', 'INIT_COMPLETE')
        # Another deployment of the same plan joins the one in progress.
        late = self.observed()
        for state in (first, late):
            begun = self.step(state)
            assert begun['next_look'] == 2
            followed = self.step(begun['state'])
            assert followed['success'] is None
        self.cloud.now += 10**6
        assert self.step(begun['state'])['next_look'] == 60
        self.heat.become('plan', 'CREATE_COMPLETE')
        state = self.step(late)['state']
        assert self.heat.asked.count('replace') == 0
        assert self.step(state)['state']['stack']['success']

    def test_a_call_that_fails_is_the_last(self):
        for outcome, reason in (
            ({'success': False}, 'shop.configure has failed'),
            (
                {'success': False, 'reason': 'boom'},
                'workflow shop.configure of post_deployment: boom',
            ),
        ):
            self.outcomes['shop.configure'] = outcome
            self.called.clear()
            step = self.run_to_the_end()
            assert (step['success'], step['reason']) == (False, reason)
            assert len(self.called) == 2
