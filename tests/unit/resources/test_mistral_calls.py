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
        assert found == [1, 2, 15, 24, None]

    def test_an_answer_gives_a_new_budget(self):
        self.after(0)
        self.budget.reset('make')
        assert self.after(100) == 1

    def test_an_answer_to_another_call_does_not(self):
        self.after(0)
        self.budget.reset('look')
        assert self.after(100) is None

    def test_a_likely_defect_is_given_less(self):
        assert self.after(0, DOUBTFUL) == 1
        assert self.after(15, DOUBTFUL) is None

    def test_what_does_not_pass_is_not_tried_again(self):
        assert self.after(0, errors.ServiceError('no')) is None


class ClientTest(heat_fixture.HeatTestCase):
    def test_a_lost_request_is_not_sent_again_unseen(self):
        self.heat.auth.endpoints['workflowv2'] = 'http://mistral.invalid/v2'
        stack = self.heat.stack({'heat_template_version': '2021-04-16'})
        client = stack.context.clients.client(heat_mistral.CLIENT_NAME)
        session = client.workflows.http_client.session
        assert session.connect_retries == 0
