# SPDX-License-Identifier: Apache-2.0
"""What has come of a validation, by what its playbook has reported."""

import testtools

from heat_plugins.validations import catalogue
from heat_plugins.validations import judging
from heat_plugins.validations import validation_ledger
from tests.unit.validations import fakes

State = validation_ledger.ValidationState


class AccountTest(testtools.TestCase):
    def judge(self, *news, secrets=()):
        self.account = judging.Account(
            catalogue.Validation(
                id='a', path='a.yaml', name='A', hosts=('web',)
            ),
            secrets,
        )
        self.account.begun(100.0)
        self.account.take(event for event in news if 'status' not in event)
        self.account.lasts(101.26)
        ends = [event for event in news if 'status' in event]
        self.account.ended(**(ends or [fakes.end('')])[0])
        return self.account.outcome.state, self.account.outcome.reason

    def test_it_passes_if_each_host_does(self):
        found = self.judge(
            fakes.result(),
            fakes.result('changed'),
            fakes.result('skipped', host='b'),
            fakes.end(),
        )
        self.assertEqual((State.PASSED, ''), found)
        self.assertEqual(
            {'localhost': {'ok': 1, 'changed': 1}, 'b': {'skipped': 1}},
            self.account.outcome.hosts,
        )
        self.assertEqual(1.3, self.account.outcome.seconds)

    def test_its_reason_is_the_first_failure(self):
        found = self.judge(
            fakes.result(),
            fakes.result('failed', 'b', 'memory', 'only\n 4 GB'),
            fakes.result('unreachable', 'c'),
            fakes.end('failed'),
        )
        self.assertEqual(
            (State.FAILED, 'b: memory: only 4 GB (and 1 more hosts)'), found
        )

    def test_a_failure_that_the_playbook_has_rescued_is_none(self):
        state, _ = self.judge(fakes.result('failed'), fakes.end())
        self.assertEqual(State.PASSED, state)

    def test_without_a_host_nothing_has_passed(self):
        self.assertEqual(
            (
                State.FAILED,
                'No host was checked: none is in web; --host-group '
                '(host_groups) puts hosts into groups',
            ),
            self.judge({'event': 'no-hosts'}, fakes.end()),
        )

    def test_what_ansible_cannot_run_is_told_in_its_words(self):
        state, reason = self.judge(
            {'stdout': '[ERROR]: no action\nOrigin: x'},
            fakes.end('failed'),
        )
        self.assertEqual(
            (State.FAILED, 'Ansible failed: [ERROR]: no action Origin: x'),
            (state, reason),
        )
        _, reason = self.judge({'stdout': 'x' * 2000}, fakes.end('failed'))
        self.assertLess(len(reason), 600)

    def test_each_other_end_has_its_state(self):
        for status, state in (
            ('stopped', State.STOPPED),
            ('timeout', State.TIMED_OUT),
            ('overflow', State.FAILED),
            ('failed', State.FAILED),
            ('', State.FAILED),
        ):
            found, reason = self.judge(fakes.result(), fakes.end(status))
            self.assertEqual(state, found, status)
            self.assertTrue(reason)

    def test_a_process_that_was_killed_has_failed(self):
        self.assertEqual(
            (State.FAILED, 'Its process was killed: out of memory'),
            self.judge(fakes.result(), {'stdout': 'out of memory'}),
        )

    def test_the_task_that_took_too_long_is_named(self):
        _, reason = self.judge(fakes.began('sleep'), fakes.end('timeout'))
        self.assertIn('in task sleep', reason)

    def test_processes_that_are_left_are_told(self):
        _, reason = self.judge(fakes.result(), fakes.end('stopped', left=2))
        self.assertIn('2 of its processes', reason)

    def test_there_is_an_end_to_what_is_kept(self):
        text = {'stdout': 'x' * 100_000}
        self.judge(*[text] * 20, *[fakes.result()] * 6000, fakes.end())
        detail = self.account.detail
        self.assertTrue(detail.cut)
        self.assertEqual(5000, len(detail.tasks))
        self.assertEqual(1024 * 1024, len(detail.stdout))
        self.assertEqual(
            {'localhost': {'ok': 6000}}, self.account.outcome.hosts
        )

    def test_what_is_kept_whole_is_not_cut(self):
        self.judge({'stdout': 'done'}, fakes.result(), fakes.end())
        self.assertEqual('done\n', self.account.detail.stdout)
        self.assertFalse(self.account.detail.cut)

    def test_each_result_of_a_task_has_its_state(self):
        for event, res, data, state in (
            ('runner_on_ok', {}, {}, 'ok'),
            ('runner_on_ok', {'changed': True}, {}, 'changed'),
            ('runner_on_failed', {}, {}, 'failed'),
            ('runner_on_failed', {}, {'ignore_errors': True}, 'ignored'),
            ('runner_on_skipped', None, {}, 'skipped'),
            ('runner_on_unreachable', {}, {}, 'unreachable'),
        ):
            self.judge({'event': event, 'event_data': {'res': res, **data}})
            [task] = self.account.detail.tasks
            self.assertEqual(state, task.state)

    def test_its_message_is_what_the_task_says_first(self):
        for res, message in (
            ({'msg': 'no', 'stderr': 'x'}, 'no'),
            ({'msg': '', 'stderr': 'bad', 'stdout': 'x'}, 'bad'),
            ({'msg': ['a', 1]}, '["a", 1]'),
            ({'msg': 'x' * 9000}, 'x' * 4000),
            ({'censored': 'hidden', 'msg': 'x'}, 'hidden'),
            ('text', ''),
        ):
            event = {'event': 'runner_on_ok', 'event_data': {'res': res}}
            self.judge(event)
            [task] = self.account.detail.tasks
            self.assertEqual(message, task.message)

    def test_events_of_other_kinds_are_no_matter(self):
        self.judge({'event': 'new', 'event_data': None}, {'event': 'verbose'})
        self.assertEqual((), self.account.detail.tasks)

    def test_secrets_are_masked_everywhere(self):
        found = self.judge(
            fakes.began('hunter2'),
            fakes.result('failed', task='hunter2', message='is hunter2'),
            {'stdout': 'say hunter2'},
            fakes.end('failed'),
            secrets=('hunter2',),
        )
        said = repr((found, self.account.outcome, self.account.detail))
        self.assertNotIn('hunter2', said)
        self.assertIn('say ******', said)

    def test_a_secret_across_the_limit_of_a_message_is_masked(self):
        message = 'x' * 3996 + 'hunter2'
        self.judge(fakes.result(message=message), secrets=('hunter2',))
        [task] = self.account.detail.tasks
        self.assertNotIn('hun', task.message)
