# SPDX-License-Identifier: Apache-2.0
"""What came of an execution."""

import testtools

from heat_plugins.mistral.executions import outcome

ID = '3b7f05c4-3d06-4942-a401-1e9e75b6d814'

RAISED = f"""\
Failure caused by error in tasks: b

  b [task_ex_id={ID}] -> The action raised an exception [action=Fail action, \
action_ex_id={ID}, msg='It failed.']
    [action_ex_id={ID}, idx=0]: The action raised an exception \
[action=Fail action, action_ex_id={ID}, msg='It failed.']
"""

NESTED = f"""\
Failure caused by error in tasks: a

  a [task_ex_id={ID}] -> Failed to run task [error=Invalid input [name=\
std.http, missing=['url']], wf=inner, task=call]:
Traceback (most recent call last):
  File "mistral/engine/task_handler.py", line 83, in run_task
    task.run(first_run)
"""


class ReasonTest(testtools.TestCase):
    def test_of_an_action_the_message_alone(self):
        self.assertEqual(
            'ERROR: b -> It failed.', outcome.reason('ERROR', RAISED)
        )

    def test_of_a_task_what_is_wrong_with_it(self):
        self.assertEqual(
            'ERROR: a -> call -> Invalid input [name=std.http, '
            "missing=['url']]",
            outcome.reason('ERROR', NESTED),
        )

    def test_words_of_the_author_as_they_are(self):
        self.assertEqual(
            'ERROR: not good', outcome.reason('ERROR', 'not good')
        )

    def test_none_given(self):
        self.assertEqual(
            'CANCELLED: no reason given', outcome.reason('CANCELLED', None)
        )

    def test_it_is_short(self):
        text = outcome.reason('ERROR', 'long ' * 1000)
        self.assertLess(len(text), 200)
        self.assertTrue(text.endswith('…'))


class PublishedTest(testtools.TestCase):
    def test_the_latest_value_counts(self):
        tasks = [
            {'updated_at': '2', 'published': '{"a": 2}'},
            {'updated_at': '1', 'published': {'a': 1, 'b': 1}},
            {'updated_at': '3', 'published': None},
        ]
        self.assertEqual({'a': 2, 'b': 1}, outcome.published(tasks))
        self.assertEqual(
            {'a': 3, 'b': 1}, outcome.published(tasks, '{"a": 3}')
        )

    def test_what_is_no_map_is_none(self):
        for value in (None, '', '[1]', 'no JSON', 7):
            self.assertEqual({}, outcome.mapping(value))
