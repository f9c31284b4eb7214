# SPDX-License-Identifier: Apache-2.0
"""What asks for a run, and what is a server's result."""

import testtools

from heat_plugins.runs import ordering

BACKUP = {'trigger': 'BACKUP'}
VALUES = {**BACKUP, 'input_values': {'level': 'hunter2'}}
OUTPUTS = [{'name': 'trigger'}]


class SignalTest(testtools.TestCase):
    def test_an_order_has_inputs_that_its_text_hides(self):
        found = ordering.read_signal(VALUES)
        assert found.inputs == {'level': 'hunter2'}
        assert 'hunter2' not in repr(found)

    def test_what_is_an_order_and_what_may_be_a_result(self):
        for details, outputs, is_order, is_result in (
            (BACKUP, [], True, False),
            (BACKUP, [{'name': 'size'}], True, False),
            # An output is called that.
            (BACKUP, OUTPUTS, False, True),
            ({**BACKUP, 'inputs': {}}, [], False, False),
            ({**BACKUP, 'input_values': None}, [], False, False),
            ({**BACKUP, 'input_values': ['level']}, [], False, False),
            ({'trigger': None}, [], False, False),
            ({'trigger': ['BACKUP']}, [], False, False),
            ({**BACKUP, 'deploy_status_code': 0}, [], False, True),
            ({'deploy_stdout': '', 'size': 'trigger'}, [], False, True),
            ({'input_values': {}}, [], False, True),
            ({'size': 1}, [], False, True),
            ({}, [], False, True),
            (None, [], False, True),
            ([], [], False, True),
            ('trigger', [], False, True),
        ):
            found = ordering.read_signal(details, outputs)
            assert (found is not None) is is_order, details
            refused = ordering.cannot_be_result(details, outputs)
            assert (not refused) is is_result, details
