# SPDX-License-Identifier: Apache-2.0
"""What asks for a run, and what is a server's result."""

import pytest

from heat_plugins.runs import ordering

BACKUP = {'trigger': 'BACKUP'}
VALUES = {**BACKUP, 'input_values': {'level': 'hunter2'}}
OUTPUTS = [{'name': 'trigger'}]


def test_an_order_has_inputs_that_its_text_hides():
    found = ordering.read_signal(VALUES)
    assert found.inputs == {'level': 'hunter2'}
    assert 'hunter2' not in repr(found)


@pytest.mark.parametrize(
    ('details', 'outputs', 'is_order', 'is_result'),
    [
        (BACKUP, [], True, False),
        (BACKUP, [{'name': 'size'}], True, False),
        # An output is called that.
        (BACKUP, OUTPUTS, False, True),
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
