# SPDX-License-Identifier: Apache-2.0
"""How long a resource goes on while Mistral fails."""

import testtools

from heat_plugins import errors
from heat_plugins.clients import heat_mistral
from heat_plugins.mistral import calling
from tests.unit import heat_fixture

PASSING = errors.Unavailable('busy')
DOUBTFUL = errors.LikelyDefect('a defect')


class RetryBudgetTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 0
        self.budget = calling.RetryBudget(100, lambda: self.now)

    def after(self, seconds, error=PASSING, what='make'):
        self.now = seconds
        return self.budget.delay(error, what)

    def test_delays_grow_until_the_budget_is_spent(self):
        found = [self.after(second) for second in (0, 10, 60, 99, 100)]
        self.assertEqual([1, 2, 15, 24, None], found)

    def test_an_answer_gives_a_new_budget(self):
        self.after(0)
        self.budget.reset('make')
        self.assertEqual(1, self.after(100))

    def test_an_answer_to_another_call_does_not(self):
        self.after(0)
        self.budget.reset('look')
        self.assertIsNone(self.after(100))

    def test_a_likely_defect_is_given_less(self):
        self.assertEqual(1, self.after(0, DOUBTFUL))
        self.assertIsNone(self.after(15, DOUBTFUL))

    def test_what_does_not_pass_is_not_tried_again(self):
        self.assertIsNone(self.after(0, errors.ServiceError('no')))


class ClientTest(heat_fixture.HeatTestCase):
    def test_a_lost_request_is_not_sent_again_unseen(self):
        self.heat.auth.endpoints['workflowv2'] = 'http://mistral.invalid/v2'
        stack = self.heat.stack({'heat_template_version': '2021-04-16'})
        client = stack.context.clients.client(heat_mistral.CLIENT_NAME)
        session = client.workflows.http_client.session
        self.assertEqual(0, session.connect_retries)
