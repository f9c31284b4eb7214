# SPDX-License-Identifier: Apache-2.0
"""What a dead engine has delivered is waited for, and runs once.

The engine that resumes looks for the result first.
"""

import uuid

from heat_plugins.engine.database import rows
from tests.unit.resources import deployments

WHOLE = deployments.template(actions=deployments.ALL_ACTIONS, name='mine')


class ResumeTest(deployments.DeploymentTestCase):
    def dead(self, action, whole=WHOLE, stack=None, answered=True):
        """Return a stack whose engine has died as its server worked.

        :param answered: whether the server has answered since.
        """
        stack, task = self.waiting(whole, action, stack)
        self.addCleanup(task.cancel)
        if answered:
            self.send(self.handed[-1], {'answer': 'once'})
        self.answer = {}
        self.fail(stack, action)
        return stack

    def fail(self, stack, action):
        """Be the rescue, or Heat's own code for a stack without it."""
        again = self.heat.load(stack)
        again['deployment'].state_set(action, 'FAILED', 'Engine has died')
        again.state_set(action, 'FAILED', 'Engine has died')
        again.persist_state_and_release_lock(uuid.uuid4().hex)

    def ran(self):
        return [
            deployments.inputs(config)['deploy_action']
            for config in self.handed
        ]

    def output(self, stack):
        return self.heat.load(stack)['deployment'].FnGetAtt('answer')

    def test_create_is_not_run_again(self):
        stack = self.dead('CREATE')
        (before,) = self.deployment_rows()
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE'], self.ran())
        self.assertEqual('once', self.output(stack))
        (row,) = self.deployment_rows()
        self.assertEqual(
            (before.id, before.config_id), (row.id, row.config_id)
        )
        self.delete(stack)
        self.assertEqual(['CREATE', 'DELETE'], self.ran())
        self.assert_nothing_left()

    def test_what_has_failed_on_its_server_is_replaced(self):
        stack = self.dead('CREATE', answered=False)
        (row,) = self.deployment_rows()
        rows.change(self.heat.context, row.id, status='FAILED')
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE', 'CREATE', 'DELETE'], self.ran())
