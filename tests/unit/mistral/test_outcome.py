# SPDX-License-Identifier: Apache-2.0
"""What came of an execution, and what a trigger runs."""

import pytest

from heat_plugins.mistral import outcome
from heat_plugins.mistral import triggers


def test_the_reason_is_that_of_mistral_in_one_line():
    info = 'Failure caused by error in tasks: b\n\n  b -> It failed.'
    assert outcome.reason('ERROR', info) == (
        'ERROR: Failure caused by error in tasks: b b -> It failed.'
    )


def test_a_reason_may_be_missing():
    assert outcome.reason('CANCELLED', None) == 'CANCELLED: no reason given'


def test_a_reason_is_short():
    text = outcome.reason('ERROR', 'long ' * 10**6)
    assert len(text) <= outcome.REASON_LIMIT + len('ERROR: ')
    assert text.endswith('…')


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
