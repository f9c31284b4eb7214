# SPDX-License-Identifier: Apache-2.0
"""How long a resource goes on while Mistral fails."""

import testtools

from heat_plugins import errors
from heat_plugins.clients import heat_mistral
from heat_plugins.mistral import calling
from tests.unit import heat_fixture

PASSING = errors.Unavailable('busy')
DOUBTFUL = errors.LikelyDefect('a defect')


class BudgetTest(testtools.TestCase):
    def delays(self, *calls):
        """Return the delays after errors of a call, by their times."""
        now = iter([second for second, _ in calls])
        budget = calling.RetryBudget(100, lambda: next(now))
        return [budget.delay(error, 'make') for _, error in calls]

    def test_delays_grow_until_the_budget_is_spent(self):
        calls = [(second, PASSING) for second in (0, 10, 60, 99, 100)]
        assert self.delays(*calls) == [1, 2, 15, 24, None]
        # A likely defect is given less, and what does not pass nothing.
        assert self.delays((0, DOUBTFUL), (15, DOUBTFUL)) == [1, None]
        assert self.delays((0, errors.ServiceError('no'))) == [None]

    def test_an_answer_to_the_same_call_gives_a_new_budget(self):
        for answered, delay in (('make', 1), ('look', None)):
            now = iter([0, 100])
            budget = calling.RetryBudget(100, lambda now=now: next(now))
            budget.delay(PASSING, 'make')
            budget.reset(answered)
            assert budget.delay(PASSING, 'make') == delay


class ClientTest(heat_fixture.HeatTestCase):
    def test_a_lost_request_is_not_sent_again_unseen(self):
        self.heat.auth.endpoints['workflowv2'] = 'http://mistral.invalid/v2'
        stack = self.heat.stack({'heat_template_version': '2021-04-16'})
        client = stack.context.clients.client(heat_mistral.CLIENT_NAME)
        session = client.workflows.http_client.session
        assert session.connect_retries == 0
