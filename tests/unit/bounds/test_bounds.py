# SPDX-License-Identifier: Apache-2.0
"""The limits that every reader shares."""

import contextlib
import itertools
import json

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import bounds
from tests.unit import growth
from tests.unit.bad_input import anything


def test_a_text_is_cut_before_it_is_matched():
    assert bounds.cut('a' * 5000) == 'a' * bounds.TEXT
    assert bounds.cut('abc', 2) == 'ab'
    assert bounds.cut('abc') == 'abc'


@hypothesis.given(anything.odd_text, st.integers(1, 50))
def test_a_shortened_text_shows_that_it_was_cut(text, limit):
    shown = bounds.shortened(text, limit)
    assert len(shown) <= limit
    assert shown == text or (len(text) > limit and shown[-1] == '…')


def test_few_parts_are_all_listed():
    assert bounds.listed([]) == ''
    assert bounds.listed(['a', 'b']) == 'a, b'
    assert bounds.listed(['a', 'b'], 2, between='; ') == 'a; b'


def test_of_many_parts_the_rest_is_counted():
    assert bounds.listed(['a', 'b', 'c', 'd'], 2) == 'a, b, and 2 more'
    assert bounds.listed({'a': 1, 'b': 2}, 1) == 'a, and 1 more'


def test_a_part_is_shortened():
    assert len(bounds.listed(['a' * 10**6] * 99)) < 11000


def test_parts_that_are_not_shown_are_not_made():
    endless = (str(number) for number in itertools.count())
    assert bounds.listed(endless, 2, between='; ') == '0; 1; and more'
    assert next(endless) == '3'


def test_an_iterator_that_ends_in_time_has_no_more():
    assert bounds.listed(iter('ab'), 2) == 'a, b'


@pytest.mark.parametrize(
    ('name', 'known', 'expected'),
    [
        ('bakcup', ['restore', 'backup'], 'backup'),
        ('backup', ['restore'], None),
        ('', [''], ''),
        ('backup', [], None),
        ('a' * 1000, ['a' * 1000], None),
        ('one', ['ones', 'ono', 'x' * 1000], 'ones'),
    ],
)
def test_the_closest_name_is_found(name, known, expected):
    assert bounds.closest(name, known) == expected


def test_a_closest_name_is_as_like_as_is_asked():
    assert bounds.closest('scrip', ['script'], 0.8) == 'script'
    assert bounds.closest('scrpt', ['sculpt'], 0.8) is None


def test_the_closest_of_many_names_costs_no_more_than_of_some():
    growth.check(
        lambda names: bounds.closest('a' * 60 + 'b', names),
        lambda size: ['ab' * 32] * size,
        largest=2**17,
    )
    growth.check(
        lambda name: bounds.closest(name, ['a' * 64] * 100),
        'a'.__mul__,
    )


def nested(levels):
    return '[' * levels + '1' + ']' * levels


@pytest.mark.parametrize('text', [nested(64), '{"a": [1]}', '1', b'[1]'])
def test_json_that_is_not_too_deep_is_read(text):
    assert bounds.read_json(text) == json.loads(text)


@pytest.mark.parametrize(
    'text',
    [
        nested(65),
        nested(900),
        nested(10**6),
        '[' * 10**6,
        '{"a":' * 65 + '1' + '}' * 65,
        '9' * 5000,
        '{',
        '',
        b'\xff',
    ],
)
def test_other_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r'nested|Exceeds|Expect|utf-8'):
        bounds.read_json(text)


@hypothesis.given(anything.json_text)
def test_what_is_read_can_be_written(text):
    try:
        value = bounds.read_json(text)
    except ValueError:
        return
    json.dumps(value)


@pytest.mark.parametrize(
    'made',
    [
        '['.__mul__,
        lambda size: '[' * size + ']' * size,
        lambda size: json.dumps([[]] * size),
        lambda size: json.dumps({str(n): [n] for n in range(size)}),
        lambda size: '"' + '\\u0061' * size + '"',
        lambda size: '[' + '9' * 4000 + ',' + '9' * size,
    ],
)
def test_reading_json_is_linear(made):
    def read(text):
        with contextlib.suppress(ValueError):
            bounds.read_json(text)

    growth.check(read, made)


def test_a_message_asks_for_the_closest_name_if_there_is_one():
    assert bounds.did_you_mean('shpo', ['shop']) == '; did you mean "shop"?'
    assert bounds.did_you_mean('shpo', ['web']) == ''
