# SPDX-License-Identifier: Apache-2.0
"""What fits an input; what asks for a run, and what is a result."""

import pytest

from heat_plugins import errors
from heat_plugins.runs import ordering
from heat_plugins.runs.targets import targets

FITS = {
    'Number': [('7', 7), ('1.5', 1.5), (7, 7), (' 7 ', 7), ('-1e3', -1000.0)],
    'Boolean': [('yes', True), ('0', False), (True, True), ('False', False)],
    'Json': [('{"a": 1}', {'a': 1}), ([1], [1]), ('[]', [])],
    'CommaDelimitedList': [('a, b', ['a', 'b']), (['a'], ['a']), ('', [])],
    'String': [('x', 'x'), (7, '7'), (True, 'true'), ('', '')],
}
UNFIT = {
    'Number': ['x', '', True, [1], 'nan', 'inf', None],
    'Boolean': ['maybe', '', 2, None],
    'Json': ['{', '7', '"x"', 7, None],
    'CommaDelimitedList': [7, {'a': 1}, None],
    'String': [['x'], {'a': 1}, None],
}


def cases(table):
    return [(kind, each) for kind, every in table.items() for each in every]


@pytest.mark.parametrize(('kind', 'pair'), cases(FITS))
def test_what_fits_is_converted(kind, pair):
    found = targets.converted(pair[0], kind)
    assert (found, type(found)) == (pair[1], type(pair[1]))


@pytest.mark.parametrize(('kind', 'value'), cases(UNFIT))
def test_what_does_not_fit_is_refused(kind, value):
    declared = [{'name': 'a', 'type': kind}]
    with pytest.raises(errors.Refused, match='input "a" must be'):
        targets.values(declared, {'a': value}, {})


DECLARED = [
    {'name': 'a', 'default': 1, 'type': 'Number'},
    {'name': 'b'},
    {'name': 'deploy_action'},
]


@pytest.mark.parametrize(
    ('given', 'current', 'expected'),
    [
        # What is given goes before the stack's, and that before the default.
        ({'a': '3'}, {'a': 2, 'b': 'x'}, {'a': 3, 'b': 'x'}),
        ({}, {'a': 2, 'b': ''}, {'a': 2, 'b': ''}),
        ({'b': 'x'}, {}, {'a': 1, 'b': 'x'}),
        ({}, {}, 'input "b" has no value'),
        ({'b': '', 'deploy_action': 'X'}, {}, 'no input "deploy_action"'),
    ],
)
def test_the_values_of_a_run(given, current, expected):
    if isinstance(expected, dict):
        assert targets.values(DECLARED, given, current) == expected
    else:
        with pytest.raises(errors.Refused, match=expected):
            targets.values(DECLARED, given, current)


BACKUP = {'trigger': 'BACKUP'}


def test_an_order_has_inputs_that_its_text_hides():
    inputs = {'input_values': {'level': 'hunter2'}}
    found = ordering.read_signal({**BACKUP, **inputs})
    assert found.inputs == {'level': 'hunter2'}
    assert 'hunter2' not in repr(found)


@pytest.mark.parametrize(
    ('details', 'outputs', 'is_order', 'is_result'),
    [
        (BACKUP, [], True, False),
        (BACKUP, [{'name': 'size'}], True, False),
        # An output is called that.
        (BACKUP, [{'name': 'trigger'}], False, True),
        ({**BACKUP, 'inputs': {}}, [], False, False),
        ({**BACKUP, 'input_values': ['level']}, [], False, False),
        ({'trigger': None}, [], False, False),
        ({**BACKUP, 'deploy_status_code': 0}, [], False, True),
        ({'deploy_stdout': '', 'size': 'trigger'}, [], False, True),
        ({'input_values': {}}, [], False, True),
        ({}, [], False, True),
        (None, [], False, True),
        ('trigger', [], False, True),
    ],
)
def test_an_order_or_a_result(details, outputs, is_order, is_result):
    found = ordering.read_signal(details, outputs)
    assert (found is not None) is is_order
    assert (not ordering.cannot_be_result(details, outputs)) is is_result
