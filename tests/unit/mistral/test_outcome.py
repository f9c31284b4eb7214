# SPDX-License-Identifier: Apache-2.0
"""What came of an execution, what a trigger runs, when calls are retried."""

import datetime

import pytest

from heat_plugins import errors
from heat_plugins.mistral import calling
from heat_plugins.mistral import outcome
from heat_plugins.mistral import triggers


@pytest.mark.parametrize(
    ('state', 'info', 'reason'),
    [
        (
            'ERROR',
            'Failure caused by error in tasks: b\n\n  b -> It failed.',
            'ERROR: Failure caused by error in tasks: b b -> It failed.',
        ),
        ('CANCELLED', None, 'CANCELLED: no reason given'),
        ('ERROR', 'e' * 10**6, f'ERROR: {"e" * (outcome.REASON_LIMIT - 1)}…'),
    ],
)
def test_the_reason_is_that_of_mistral_in_one_line(state, info, reason):
    assert outcome.reason(state, info) == reason


def test_the_latest_value_of_a_published_variable_counts():
    tasks = [
        {'updated_at': '2', 'published': '{"a": 2}'},
        {'updated_at': '1', 'published': {'a': 1, 'b': 1}},
        {'updated_at': '3', 'published': None},
    ]
    assert outcome.published(tasks) == {'a': 2, 'b': 1}
    assert outcome.published(tasks, '{"a": 3}') == {'a': 3, 'b': 1}


def test_what_is_no_map_is_none():
    deep = '{"a":' * 900 + '1' + '}' * 900
    for value in (None, '', '[1]', 'no JSON', 7, '[' * 10**6, deep):
        assert outcome.mapping(value) == {}


def test_the_workflow_of_a_trigger_is_a_name_or_a_map():
    whole = {'name': 'tidy', 'input': {'a': 1}, 'params': {'b': 2}}
    assert triggers.called(whole) == ('tidy', {'a': 1}, {'b': 2})
    assert triggers.called('tidy') == ('tidy', {}, {})
    for value, said in (
        ({'input': {}}, 'a map with "name"'),
        ({'name': 'tidy', 'x': 1}, 'has no key x'),
        ({'name': 'tidy', 'input': 'all'}, 'must be maps'),
        ({'name': 'tidy', 'params': [1]}, 'must be maps'),
        (['tidy'], 'must be a text, or a map'),
    ):
        with pytest.raises(triggers.InvalidCall, match=said):
            triggers.called(value)


@pytest.mark.parametrize(
    ('pattern', 'due', 'remaining', 'times'),
    [
        (None, None, None, []),
        (None, '2030-01-01 14:00', 1, ['14:00']),
        ('0 * * * *', '2030-01-01 14:00', None, ['14:00', '15:00', '16:00']),
        ('0 * * * *', '2030-01-01 14:00:00', 2, ['14:00', '15:00']),
    ],
)
def test_at_most_three_next_runs_are_shown(pattern, due, remaining, times):
    shown = triggers.upcoming(pattern, triggers.time(due), remaining)
    assert shown == [f'2030-01-01 {time} UTC' for time in times]


@pytest.mark.parametrize(
    ('due', 'is_told'),
    [
        (None, False),
        ('soon', False),
        ('2030-01-01 11:55:01', False),
        ('2030-01-01 11:55:00', True),
    ],
)
def test_a_trigger_that_is_long_due_tells_that_none_fires(due, is_told):
    row = {'name': 'n' * 200, 'next_execution_time': due}
    noon = datetime.datetime(2030, 1, 1, 12)
    reason = triggers.none_fires(row, noon)
    assert (reason is not None) == is_told
    if reason:
        assert due in reason
        # An event of Heat's holds no more.
        assert len(reason) <= 255


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
