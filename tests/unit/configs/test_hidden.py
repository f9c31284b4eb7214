# SPDX-License-Identifier: Apache-2.0

import pytest

from heat_plugins import masking
from heat_plugins.configs import hidden_inputs
from tests.unit import growth

SECRETS = {'hunter2', 'tok-en'}


def given(**values):
    return [{'name': name, 'value': value} for name, value in values.items()]


def masked(text, inputs, options):
    return hidden_inputs.mask(inputs, options).text(text)


@pytest.mark.parametrize(
    'value',
    [
        'hunter2',
        'mysql://root:hunter2@db/x',
        ['a', {'deep': [1, 'xhunter2']}],
        {'b': 'tok-en', 'a': 'hunter2 and hunter2'},
    ],
)
def test_only_the_hidden_part_of_an_input_is_masked(value):
    inputs = given(secret=value, plain='shown')
    options = hidden_inputs.marked({'mine': 1}, inputs, SECRETS)
    assert options['mine'] == 1
    assert [*options[hidden_inputs.OPTION]] == ['secret']
    assert 'hunter2' not in str(options)
    shown = masked(f'{value} shown', inputs, options)
    wanted = f'{value} shown'.replace('hunter2', masking.MASK)
    assert shown == wanted.replace('tok-en', masking.MASK)


def test_marks_are_those_of_hidden_values_alone():
    assert hidden_inputs.marked({'a': 1}, given(b='c'), SECRETS) == {'a': 1}
    assert hidden_inputs.marked(None, given(b='hunter2'), ()) == {}
    # Those of an earlier config go.
    before = hidden_inputs.marked({}, given(a='hunter2'), SECRETS)
    assert hidden_inputs.marked(before, given(a='b'), SECRETS) == {}


def test_all_of_what_takes_the_place_of_a_hidden_value_is_hidden():
    inputs = given(url='mysql://hunter2@db', kept='x hunter2', free='a')
    options = hidden_inputs.marked({}, inputs, SECRETS)
    others = given(url='another', kept='x hunter2', free='b')
    before = {'url': 'mysql://hunter2@db', 'kept': 'x hunter2', 'free': 'a'}
    changed = hidden_inputs.changed(options, before, others)
    assert masked('another x hunter2 b', others, changed) == (
        '****** x ****** b'
    )


def test_a_mark_that_is_none_hides_the_whole_input():
    inputs = given(secret='hunter2')
    for mark in (None, 5, [5], [[9, 0, 1]], [['a', 0, 1]]):
        options = {hidden_inputs.OPTION: {'secret': mark}}
        assert masked('hunter2', inputs, options) == masking.MASK
    # Heat's own password is always hidden.
    inputs = given(deploy_password='of-the-server')
    assert masked('of-the-server', inputs, {}) == masking.MASK
    assert masked('of-the-server', None, None) == 'of-the-server'


def test_inputs_are_hidden_whole_where_it_takes_too_long_to_seek():
    inputs = given(secret='hunter2 ' * 1000)
    options = hidden_inputs.marked({}, inputs, SECRETS)
    assert len(options[hidden_inputs.OPTION]['secret']) == 1
    assert masked('hunter2 ' * 1000, inputs, options) == masking.MASK
    secrets = [f'secret-{number}' for number in range(5000)]

    def marked(size):
        inputs = given(a=['b'] * size, b=None)
        return hidden_inputs.marked({}, inputs, secrets)

    assert marked(10) == {}
    assert [*marked(5000)[hidden_inputs.OPTION]] == ['a']
    growth.check(marked, int, largest=2**16)
