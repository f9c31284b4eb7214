# SPDX-License-Identifier: Apache-2.0
"""How long a resource goes on while Mistral fails."""

import pytest

from heat_plugins import errors
from heat_plugins.mistral import calling

PASSING = errors.Unavailable('busy')
DOUBTFUL = errors.LikelyDefect('a defect')


@pytest.mark.parametrize(
    ('seconds', 'calls', 'delays'),
    [
        (
            100,
            [(second, PASSING) for second in (0, 10, 60, 99, 100)],
            [1, 2, 15, 24, None],
        ),
        # A likely defect is given less, and what does not pass nothing.
        (100, [(0, DOUBTFUL), (14, DOUBTFUL), (15, DOUBTFUL)], [1, 3, None]),
        (10, [(0, DOUBTFUL), (10, DOUBTFUL)], [1, None]),
        (0, [(0, PASSING)], [None]),
        (100, [(0, errors.ServiceError('no'))], [None]),
    ],
)
def test_delays_grow_until_the_budget_is_spent(seconds, calls, delays):
    now = iter([second for second, _ in calls])
    budget = calling.RetryBudget(seconds, lambda: next(now))
    assert [budget.delay(error, 'make') for _, error in calls] == delays


def test_a_delay_has_a_limit():
    assert [calling.backoff(waited) for waited in (0, 120, 999)] == [1, 30, 30]


@pytest.mark.parametrize(('answered', 'delay'), [('make', 1), ('look', None)])
def test_an_answer_to_the_same_call_gives_a_new_budget(answered, delay):
    now = iter([0, 100])
    budget = calling.RetryBudget(100, lambda: next(now))
    budget.delay(PASSING, 'make')
    assert budget.is_retrying('make')
    budget.reset(answered)
    assert budget.is_retrying('make') == (delay is None)
    assert budget.delay(PASSING, 'make') == delay
