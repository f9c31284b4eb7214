# SPDX-License-Identifier: Apache-2.0
"""Swift's clock is a minute ahead of the engine's, or behind it."""

import time

from tests.unit.resources import deployments

#: The most seconds that an action may take here.
TIMEOUT = 30


class ClocksTest(deployments.DeploymentTestCase):
    def off(self, seconds):
        """Let the object store's clock differ by so much."""
        began = time.time() - self.now + seconds
        self.swift.clock = self.swift.now = lambda: began + self.now

    def each_action_counts(self, name):
        whole = deployments.template(
            actions=deployments.ALL_ACTIONS, timeout=TIMEOUT
        )
        self.answer = lambda config: {
            'answer': deployments.inputs(config)['deploy_action']
        }
        stack = self.created(whole, name=name)
        self.assertEqual('CREATE', stack['deployment'].FnGetAtt('answer'))
        whole['resources']['deployment']['properties']['name'] = 'x'
        self.update(stack, whole)
        again = self.heat.load(stack)
        self.assertEqual('UPDATE', again['deployment'].FnGetAtt('answer'))
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.delete(stack)
        self.assert_nothing_left()

    def test_each_action_counts(self):
        for name, seconds in (('ahead', 60), ('behind', -60)):
            self.off(seconds)
            self.each_action_counts(name)
        self.assertEqual(10, len(self.handed))

    def test_a_url_is_good_until_the_last_second_of_its_action(self):
        for seconds in (60, -60):
            self.off(seconds)
            whole = deployments.template(timeout=TIMEOUT)
            stack, task = self.waiting(whole)
            self.assertFalse(self.step(task, TIMEOUT - 12))
            self.assertEqual(201, self.send(self.handed[-1], {'answer': 1}))
            self.finish(task)
            self.assertEqual('COMPLETE', stack.status)
            self.delete(stack)

    def test_a_url_expires_by_the_clock_of_the_store(self):
        self.configure(temp_url_margin=0)
        for seconds in (7200, -7200):
            self.off(seconds)
            stack, task = self.waiting(deployments.template(timeout=TIMEOUT))
            self.assertFalse(self.step(task, TIMEOUT - 12))
            self.assertEqual(201, self.send(self.handed[-1], {'answer': 1}))
            self.finish(task)
            self.delete(stack)
