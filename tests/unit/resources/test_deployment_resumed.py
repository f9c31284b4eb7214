# SPDX-License-Identifier: Apache-2.0
"""What a dead engine has delivered is waited for, and runs once.

The engine that resumes looks for the result first.
"""

import uuid

from heat_plugins.engine.database import rows
from tests.unit.resources import deployments

WHOLE = deployments.template(actions=deployments.ALL_ACTIONS, name='mine')


class ResumeTest(deployments.DeploymentTestCase):
    def dead(self, *, answered=True):
        """Return a stack whose engine has died as its server worked.

        :param answered: whether the server has answered since.
        """
        stack, task = self.waiting(WHOLE)
        self.addCleanup(task.cancel)
        if answered:
            self.send(self.handed[-1], {'answer': 'once'})
        self.answer = {}
        # Be the rescue, or Heat's own code for a stack without it.
        again = self.heat.load(stack)
        again['deployment'].state_set('CREATE', 'FAILED', 'Engine has died')
        again.state_set('CREATE', 'FAILED', 'Engine has died')
        again.persist_state_and_release_lock(uuid.uuid4().hex)
        return stack

    def ran(self):
        return [
            deployments.inputs(config)['deploy_action']
            for config in self.handed
        ]

    def test_create_is_not_run_again(self):
        stack = self.dead()
        (before,) = self.deployment_rows()
        self.update(stack, WHOLE)
        assert self.ran() == ['CREATE']
        found = self.heat.load(stack)['deployment']
        assert found.FnGetAtt('answer') == 'once'
        (row,) = self.deployment_rows()
        assert (row.id, row.config_id) == (before.id, before.config_id)
        self.delete(stack)
        assert self.ran() == ['CREATE', 'DELETE']
        self.assert_nothing_left()

    def test_what_has_failed_on_its_server_is_replaced(self):
        stack = self.dead(answered=False)
        (row,) = self.deployment_rows()
        rows.change(self.heat.context, row.id, status='FAILED')
        self.update(stack, WHOLE)
        assert self.ran() == ['CREATE', 'CREATE', 'DELETE']
