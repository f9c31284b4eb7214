# SPDX-License-Identifier: Apache-2.0
"""YAML is read at a cost that its size bounds."""

import contextlib

from heat.common import template_format
import pytest

from heat_plugins import yaml_reading
from tests.unit import growth


def bomb(reference):
    """Return a few lines that stand for billions of values."""
    lines = ['a0: &a0 {k: 1}']
    for number in range(1, 12):
        parts = ','.join([f'*a{number - 1}'] * 9)
        lines.append(f'a{number}: &a{number} {reference.format(parts)}')
    return '\n'.join(lines)


def many_numbers(numbers):
    """Return a map whose keys have one hash."""
    return '{' + ','.join(f'{n * (2**61 - 1)}: 0' for n in numbers) + '}'


REFUSED = [
    # What is written out is counted, and not built.
    (bomb('[{}]'), 'has aliases that stand for more than 200000 values'),
    (bomb('{{<<: [{}]}}'), 'has aliases that stand for more than 200000'),
    ('a: &a ' + 'x' * 2**20 + '\nb: [' + '*a,' * 17 + ']', 'characters at'),
    ('a: &a {' + ','.join(f'{n}: 1' for n in range(1000)) + '}\n'
     + ''.join(f'm{n}: {{<<: *a}}\n' for n in range(1000)),
     'has aliases that stand for'),
    ('a: &a [*a]', 'has an alias for a value that contains the alias at line '
        '1, column 4'),
    ('&a {<<: *a}', 'has an alias for a value that contains the alias'),
    ('a: !!str &a {=: *a}',
     'has an alias for a value that contains the alias'),
    ('- a\n' * (yaml_reading.VALUES + 1),
     'holds more than 200000 values at line 200000, column 3'),
    ('a' * (yaml_reading.LARGEST + 1), 'has more than 16777216 characters'),
    (''.join(f'%TAG !a{n}! tag:x\n' for n in range(101)) + '--- a',
     'has more than 100 %TAG directives'),
    ('[' * 101, 'is nested more than 100 levels deep at line 1, column 101'),
    ('? ' * 101 + 'a', 'is nested more than 100 levels deep'),
    # Numbers
    ('a: 59' + ':59' * 300 + '.5',
     'holds an unreadable number at line 1, column 4'),
    ('a: ' + '9' * 5000,
     'holds a number of more than 1000 characters at line 1, column 4: put'),
    ('a: 0x' + 'f' * 5000, 'holds a number of more than 1000 characters'),
    ('a: !!int "' + '1:' * 10**6 + '1"', 'holds a number of more than'),
    ('a: !!int ""', 'holds an unreadable number'),
    ('a: !!float x', 'holds an unreadable number'),
    (many_numbers(range(1, 2003)), 'holds more than 2000 numbers beyond 2^61'),
    # Tags
    ('a: !!bool x', 'holds a value that does not fit its tag'),
    ('a: !!timestamp {b: c}', 'is not YAML at line 1, column 4: expected a'),
    # Syntax
    ('a: *hunter2', 'is not YAML at line 1, column 4: '),
    ('a: !hunter2 x', 'is not YAML at line 1, column 4: '),
    ('a: [b\nc: d',
     'is not YAML at line 2, column 2: while parsing a flow sequence, did not '
     "find expected ',' or ']'"),
    ('a: \x01', 'is not YAML: a control character'),
    ('a: \ud800', 'holds an incomplete character'),
    ('a\n---\nb', 'is not YAML at line 2, column 1: expected a single'),
    ('? [a]\n: b', 'unhashable key'),
]  # fmt: skip


def refusal(text):
    with pytest.raises(yaml_reading.UnreadableYAML) as caught:
        yaml_reading.load(text)
    return str(caught.value)


@pytest.mark.parametrize(('text', 'reason'), REFUSED)
def test_what_is_refused_is_told_with_its_place(text, reason):
    said = refusal(text)
    assert reason in said
    # Such as a password that lacks its quotes.
    assert 'hunter2' not in said


ACCEPTED = [
    ('', None),
    ('a: &a [1]\nb: [*a, {c: *a}]', {'a': [1], 'b': [[1], {'c': [1]}]}),
    ('a: &a {b: 1}\nc: {<<: *a, d: 2}',
     {'a': {'b': 1}, 'c': {'b': 1, 'd': 2}}),
    ('a: 2017-02-24', {'a': '2017-02-24'}),
    ('a: 1:30', {'a': 90}),
    # The C loader refuses this one; Heat reads it all the same.
    ('a: {get_attr:[b, c]}', {'a': {'get_attr': ['b', 'c']}}),
]  # fmt: skip


@pytest.mark.parametrize(('text', 'value'), ACCEPTED)
def test_it_reads_what_heat_reads(text, value):
    assert yaml_reading.load(text) == value
    if value is not None:
        assert template_format.simple_parse(text) == value


def test_what_is_written_is_read_back():
    shared = ['x\ny', 1.5, None]
    value = {'a': shared, 'é': {'b': shared}, 1: 'yes', 'c': '2017-02-24'}
    for compact in (False, True):
        text = yaml_reading.dump(value, compact=compact)
        assert yaml_reading.load(text) == value
        assert text.count('1.5') == 1
    assert text.startswith('{a: ')


def test_what_is_at_the_limits_is_read(monkeypatch):
    monkeypatch.setattr(yaml_reading, 'VALUES', 100)
    assert len(yaml_reading.load('- 1\n' * 99)) == 99
    assert 'holds more than 100 values' in refusal('- 1\n' * 100)
    deepest = '[' * yaml_reading.DEPTH + ']' * yaml_reading.DEPTH
    assert yaml_reading.load(deepest)
    # The slow loader reads no long text.
    long = 'a: {b:[1]}\n' + '#' * yaml_reading.LARGEST_PURE
    assert refusal(long).startswith('is not YAML at line 1')


def read(text):
    with contextlib.suppress(yaml_reading.UnreadableYAML):
        yaml_reading.load(text)


def many(part, start='', end=''):
    """Return what makes a text of a size by repeating a part."""
    return lambda size: start + part * size + end


def numbered(part, start='', end=''):
    return lambda size: start + ''.join(map(part.format, range(size))) + end


def merging(size):
    keys = ','.join(f'k{number}: 1' for number in range(size // 2))
    return f'a: &a {{{keys}}}\n' + ''.join(
        f'm{number}: {{<<: *a}}\n' for number in range(size // 2)
    )


@pytest.mark.parametrize(
    'made',
    [
        many('- a\n'),
        many('['),
        many('{a: '),
        many('? '),
        many('a,', '[' * 99, ']' * 99),
        many('*a,', 'a: &a [1]\nb: [', ']'),
        many('\n', 'a:', 'b'),
        many(':59', 'a: 59'),
        many('!', 'a: '),
        many('a,', 'a: {b:[', ']}'),
        many('{<<: '),
        numbered('%TAG !a{}! tag:x\n', end='--- a'),
        numbered('a{0}: &a{0} x\n'),
        numbered('? {0}\n'),
        merging,
        lambda size: many_numbers(range(size)),
    ],
)
def test_reading_grows_no_faster_than_the_text(made):
    growth.check(read, made, largest=2**16)
