# SPDX-License-Identifier: Apache-2.0
"""Who has its thread for itself blocks until its signal is seen."""

from heat.db import api as db_api
from heat.engine import check_resource
from heat.engine import scheduler

from tests.unit.resources import deployments


class AtOnceTest(deployments.DeploymentTestCase):
    """An update, as heat-engine's worker runs it."""

    def setUp(self):
        super().setUp()
        self.stack = self.created()
        self.whole = deployments.template(input_values={'who': 'moon'})
        self.use(timeout=None)

    def use(self, **properties):
        """Prepare the update of the deployment to these properties."""
        deployment = self.whole['resources']['deployment']['properties']
        deployment.update(
            {
                name: self.stack[name].FnGetRefId()
                for name in ('config', 'server')
            }
        )
        for name, value in properties.items():
            deployment.pop(name, None)
            if value is not None:
                deployment[name] = value
        self.other = self.heat.stack(
            self.whole, name=f'other{self.now}{len(properties)}'
        )
        self.now += 1
        db_api.stack_update(
            self.stack.context, self.stack.id, {'convergence': True}
        )
        self.found = self.checked(self.stack, self.stack['deployment'].id)
        self.asked = 0
        self.heat.waited = 0

    def ask(self):
        self.asked += 1

    def check(self, timeout=3600):
        self.found.update_convergence(
            self.other.t.id, set(), 'engine', timeout, self.other, self.ask
        )

    def answer_after(self, seconds, answer=None):
        """Let the server answer at a time, in parts of a second."""
        self.answer, given = None, self.now + seconds

        def send():
            if self.now >= given and len(self.handed) == 2:
                self.meanwhile = lambda: None
                self.answered = self.now
                self.send(self.handed[-1], answer or {})

        self.meanwhile = send

    def test_it_ends_as_soon_as_its_signal_is_seen(self):
        self.answer_after(20.3)
        self.check()
        # Heat is asked each second, and no more often.
        self.assertAlmostEqual(20, self.asked, delta=7)
        assert self.found.status == 'COMPLETE'
        assert self.now - self.answered <= 0.3
        assert self.heat.waited == 0

    def test_a_cancellation_is_noticed_within_a_second(self):
        self.answer = None
        cancelled = self.now + 40

        def ask():
            if self.now >= cancelled:
                raise check_resource.CancelOperation

        self.ask = ask
        self.assertRaises(check_resource.CancelOperation, self.check)
        assert self.now - cancelled <= 1.0
        self.assert_nothing_waits()
        assert self.in_metadata(self.stack) == []

    def test_the_end_of_the_stacks_time_is_noticed_within_a_second(self):
        self.answer = None
        # Heat's own clock, which does not stand still.
        self.replace(
            'heat.common.timeutils.Duration.expired',
            lambda duration: self.now >= begun + 50,
        )
        begun = self.now
        self.assertRaises(scheduler.Timeout, self.check, 50)
        assert self.now - begun <= 52
        self.assert_nothing_waits()
