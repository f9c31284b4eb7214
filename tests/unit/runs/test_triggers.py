# SPDX-License-Identifier: Apache-2.0
"""What asks for a run, and what is a server's result."""

import testtools

from heat_plugins.runs import ordering


class ReadTest(testtools.TestCase):
    def test_inputs_go_with_it(self):
        details = {'trigger': 'BACKUP', 'input_values': {'level': 9}}
        assert ordering.read_signal(details).inputs == {'level': 9}

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
            assert ordering.read_signal(details) is None, details

    def test_nothing_is_where_an_output_is_called_that(self):
        details = {'trigger': 'BACKUP'}
        assert ordering.read_signal(details, [{'name': 'trigger'}]) is None
        assert ordering.read_signal(details, [{'name': 'size'}]) is not None

    def test_inputs_are_not_in_its_text(self):
        details = {'trigger': 'BACKUP', 'input_values': {'a': 'hunter2'}}
        assert 'hunter2' not in repr(ordering.read_signal(details))


class ResultTest(testtools.TestCase):
    def test_what_names_an_action_is_no_result(self):
        for details in (
            {'trigger': 'BACKUP'},
            {'trigger': 'BACKUP', 'inputs': {}},
            {'trigger': None},
        ):
            assert ordering.cannot_be_result(details, []), details

    def test_what_a_server_may_send_can_be_one(self):
        for details, outputs in (
            (None, []),
            ('trigger', []),
            ({}, []),
            ({'size': 1}, []),
            ({'trigger': 'BACKUP', 'deploy_status_code': 0}, []),
            ({'trigger': 'BACKUP'}, [{'name': 'trigger'}]),
        ):
            assert not ordering.cannot_be_result(details, outputs), details
