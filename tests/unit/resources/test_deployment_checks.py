# SPDX-License-Identifier: Apache-2.0
"""Two checks of a deployment at once: what one has done is done."""

from heat.common import exception
from heat.db import api as db_api

from tests.unit.resources import deployments


class RecheckTest(deployments.DeploymentTestCase):
    """A check finds another one at work, and tries again a moment later."""

    def setUp(self):
        super().setUp()
        self.stack = self.created()
        whole = deployments.template(input_values={'who': 'moon'})
        whole['resources']['deployment']['properties'].update(
            {
                name: self.stack[name].FnGetRefId()
                for name in ('config', 'server')
            }
        )
        self.other = self.heat.stack(whole, name='other')
        db_api.stack_update(
            self.stack.context, self.stack.id, {'convergence': True}
        )
        # As it was when both checks began.
        self.found = self.checked(self.stack, self.stack['deployment'].id)

    def becomes(self, **values):
        """Let somebody else have changed it meanwhile."""
        self.heat.change(self.stack['deployment'].id, **values)

    def check(self):
        self.found.update_convergence(
            self.other.t.id, set(), 'engine', 60, self.other
        )

    def row(self):
        return db_api.resource_get(self.stack.context, self.found.id)

    def test_what_was_done_meanwhile_is_not_done_twice(self):
        # What failed to be created is not updated, either.
        for values in (
            {'status': 'FAILED'},
            {
                'status': 'COMPLETE',
                'action': 'UPDATE',
                'current_template_id': self.other.t.id,
            },
        ):
            self.becomes(**values)
            self.assertRaises(exception.UpdateInProgress, self.check)
        assert len(self.handed) == 1
        row = self.row()
        assert (row.action, row.status, row.engine_id) == (
            'UPDATE',
            'COMPLETE',
            None,
        )

    def test_what_has_changed_otherwise_is_gone_on_with(self):
        self.becomes(action='UPDATE')
        self.check()
        assert len(self.handed) == 2
        assert self.row().current_template_id == self.other.t.id

    def test_what_failed_to_be_updated_meanwhile_is_updated(self):
        self.becomes(
            action='UPDATE',
            status='FAILED',
            current_template_id=self.other.t.id,
        )
        self.check()
        assert len(self.handed) == 2

    def test_what_was_replaced_meanwhile_is_not_replaced_twice(self):
        former = self.found.make_replacement(self.other.t.id, set())
        # Heat forgets that as it begins.
        self.becomes(replaced_by=None)
        again = self.assertRaises(
            exception.UpdateInProgress,
            self.found.make_replacement,
            self.other.t.id,
            set(),
        )
        assert 'deployment' in str(again)
        self.heat.change(former, status='FAILED')
        assert former < self.found.make_replacement(self.other.t.id, set())

    def test_what_is_worked_on_is_not_replaced_nor_taken_back(self):
        self.found.state_set('CREATE', 'FAILED')
        self.becomes(action='DELETE', status='IN_PROGRESS', engine_id='other')
        self.assertRaises(
            exception.UpdateInProgress,
            self.found.make_replacement,
            self.other.t.id,
            set(),
        )
        assert len(self.deployment_rows()) == 1


class HealthTest(deployments.DeploymentTestCase):
    """What a user has marked unhealthy runs again, in place."""

    def mark(self, stack, status='FAILED'):
        found = self.heat.load(stack)
        found['deployment'].state_set('CHECK', status, 'by a user')

    def actions(self):
        return [
            deployments.inputs(each)['deploy_action'] for each in self.handed
        ]

    def test_an_update_without_a_change_runs_it_again_once(self):
        stack = self.created()
        before = self.heat.load(stack)['deployment'].resource_id
        self.mark(stack)
        for _ in range(2):
            self.update(stack, deployments.template())
        assert self.actions() == ['CREATE', 'UPDATE']
        found = self.heat.load(stack)['deployment']
        assert found.resource_id == before
