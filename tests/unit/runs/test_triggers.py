# SPDX-License-Identifier: Apache-2.0
"""What asks for a run, and what is a server's result."""

import testtools

from heat_plugins.runs import ordering


class ReadTest(testtools.TestCase):
    def test_inputs_go_with_it(self):
        details = {'trigger': 'BACKUP', 'input_values': {'level': 9}}
        self.assertEqual({'level': 9}, ordering.read_signal(details).inputs)

    def test_anything_else_is_none(self):
        for details in (
            None,
            [],
            'BACKUP',
            {},
            {'input_values': {}},
            {'trigger': 'BACKUP', 'deploy_status_code': 0},
            {'trigger': 'BACKUP', 'inputs': {}},
            {'trigger': None},
            {'trigger': ['BACKUP']},
            {'trigger': 'BACKUP', 'input_values': None},
            {'trigger': 'BACKUP', 'input_values': ['level']},
            {'deploy_stdout': '', 'deploy_stderr': '', 'size': 'trigger'},
        ):
            self.assertIsNone(ordering.read_signal(details), details)

    def test_nothing_is_where_an_output_is_called_that(self):
        details = {'trigger': 'BACKUP'}
        self.assertIsNone(ordering.read_signal(details, [{'name': 'trigger'}]))
        self.assertIsNotNone(ordering.read_signal(details, [{'name': 'size'}]))

    def test_inputs_are_not_in_its_text(self):
        details = {'trigger': 'BACKUP', 'input_values': {'a': 'hunter2'}}
        self.assertNotIn('hunter2', repr(ordering.read_signal(details)))


class ResultTest(testtools.TestCase):
    def test_what_names_an_action_is_no_result(self):
        for details in (
            {'trigger': 'BACKUP'},
            {'trigger': 'BACKUP', 'inputs': {}},
            {'trigger': None},
        ):
            self.assertTrue(ordering.cannot_be_result(details, []), details)

    def test_what_a_server_may_send_can_be_one(self):
        for details, outputs in (
            (None, []),
            ('trigger', []),
            ({}, []),
            ({'size': 1}, []),
            ({'trigger': 'BACKUP', 'deploy_status_code': 0}, []),
            ({'trigger': 'BACKUP'}, [{'name': 'trigger'}]),
        ):
            self.assertFalse(
                ordering.cannot_be_result(details, outputs), details
            )
