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


@hypothesis.given(anything.odd_text, st.integers(1, 50))
def test_a_shortened_text_shows_that_it_was_cut(text, limit):
    shown = bounds.shortened(text, limit)
    assert len(shown) <= limit
    assert shown == text or (len(text) > limit and shown[-1] == '…')


@pytest.mark.parametrize(
    ('parts', 'shown'),
    [
        ([], ''),
        (['a', 'b'], 'a; b'),
        (['a', 'b', 'c', 'd'], 'a; b; and 2 more'),
        ({'a': 1, 'b': 2, 'c': 3}, 'a; b; and 1 more'),
        # An iterator that ends in time has no more.
        (iter('ab'), 'a; b'),
    ],
)
def test_of_many_parts_the_rest_is_counted(parts, shown):
    assert bounds.listed(parts, 2, between='; ') == shown


def test_parts_are_shortened_and_those_that_are_not_shown_are_not_made():
    assert len(bounds.listed(['a' * 10**6] * 99)) < 11000
    endless = (str(number) for number in itertools.count())
    assert bounds.listed(endless, 2) == '0, 1, and more'
    assert next(endless) == '3'


@pytest.mark.parametrize(
    ('name', 'known', 'likeness', 'expected'),
    [
        ('bakcup', ['restore', 'backup'], 0.6, 'backup'),
        ('backup', ['restore'], 0.6, None),
        ('', [''], 0.6, ''),
        ('backup', [], 0.6, None),
        ('a' * 1000, ['a' * 1000], 0.6, None),
        ('one', ['ones', 'ono', 'x' * 1000], 0.6, 'ones'),
        ('scrip', ['script'], 0.8, 'script'),
        ('scrpt', ['sculpt'], 0.8, None),
    ],
)
def test_the_closest_name_is_found(name, known, likeness, expected):
    assert bounds.closest(name, known, likeness) == expected


def test_a_message_asks_for_the_closest_name_and_costs_no_more_for_many():
    assert bounds.did_you_mean('shpo', ['shop']) == '; did you mean "shop"?'
    assert bounds.did_you_mean('shpo', ['web']) == ''
    growth.check(
        lambda names: bounds.closest('a' * 60 + 'b', names),
        lambda size: ['ab' * 32] * size,
        largest=2**17,
    )
    many = ['a' * 64] * 100
    growth.check(lambda name: bounds.closest(name, many), 'a'.__mul__)


def nested(levels):
    return '[' * levels + '1' + ']' * levels


def test_json_is_read_unless_it_is_too_deep_or_unreadable():
    for text in (nested(64), '{"a": [1]}', '1', b'[1]'):
        assert bounds.read_json(text) == json.loads(text)
    deep = [nested(65), nested(900), nested(10**6), '[' * 10**6]
    deep += ['{"a":' * 65 + '1' + '}' * 65]
    for text in (*deep, '9' * 5000, '{', '', b'\xff'):
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
