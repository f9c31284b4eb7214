# SPDX-License-Identifier: Apache-2.0
"""What has come of a validation, by what its playbook has reported."""

import testtools

from heat_plugins.validations import catalogue
from heat_plugins.validations import judging
from heat_plugins.validations import validation_runs
from tests.unit.validations import fakes

State = validation_runs.ValidationState


class AccountTest(testtools.TestCase):
    def judge(self, *news, left=0):
        self.account = judging.Account(
            catalogue.Validation(
                id='a', path='a.yaml', name='A', hosts=('web',)
            )
        )
        self.account.take(news)
        self.account.lasts(1.26)
        self.account.ended(left)
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
            self.judge({'kind': 'no-hosts'}, fakes.end()),
        )

    def test_what_ansible_cannot_run_is_told_in_its_words(self):
        state, reason = self.judge(
            {'kind': 'stdout', 'text': '[ERROR]: no action\nOrigin: x'},
            fakes.end('failed'),
        )
        self.assertEqual(
            (State.FAILED, 'Ansible failed: [ERROR]: no action'),
            (state, reason),
        )
        _, reason = self.judge(fakes.end('failed'))
        self.assertIn('gave no reason', reason)

    def test_a_banner_of_ansible_is_no_reason(self):
        stars = '*' * 60
        start = f'PLAY [all] {stars}\nTASK [look] {stars}\nskipping: none'
        end = f'PLAY RECAP {stars}\nweb : ok=0 failed=1'
        for said, wanted in (
            (
                '[WARNING]: No inventory\nfatal: [web]: no\nERROR! x',
                'ERROR! x',
            ),
            ('[WARNING]: No inventory\nfatal: [web]: no', 'fatal: [web]: no'),
            ('[WARNING]: No inventory', '[WARNING]: No inventory'),
            ('', 'skipping: none'),
        ):
            _, reason = self.judge(
                {'kind': 'stdout', 'text': f'{start}\n{said}\n{end}'},
                fakes.end('failed'),
            )
            self.assertEqual(f'Ansible failed: {wanted}', reason)

    def test_each_other_end_has_its_state(self):
        for status, state in (
            ('stopped', State.STOPPED),
            ('timeout', State.TIMED_OUT),
            ('overflow', State.FAILED),
            ('error', State.FAILED),
        ):
            found, reason = self.judge(fakes.result(), fakes.end(status))
            self.assertEqual(state, found, status)
            self.assertTrue(reason)

    def test_a_process_that_was_killed_has_failed(self):
        self.assertEqual(
            (State.FAILED, 'Its process was killed'),
            self.judge(fakes.result()),
        )

    def test_the_task_that_took_too_long_is_named(self):
        _, reason = self.judge(
            {'kind': 'task', 'task': 'sleep'}, fakes.end('timeout')
        )
        self.assertIn('in task sleep', reason)

    def test_processes_that_are_left_are_told(self):
        _, reason = self.judge(fakes.result(), fakes.end('stopped', left=2))
        self.assertIn('2 of its processes', reason)
        _, reason = self.judge(fakes.result(), fakes.end(), left=1)
        self.assertIn('1 of its processes', reason)

    def test_there_is_an_end_to_what_is_kept(self):
        text = {'kind': 'stdout', 'text': 'x' * 100_000}
        self.judge(*[text] * 20, *[fakes.result()] * 6000, fakes.end())
        detail = self.account.detail
        self.assertTrue(detail.cut)
        self.assertEqual(5000, len(detail.tasks))
        self.assertEqual(1024 * 1024, len(detail.stdout))
        self.assertEqual(
            {'localhost': {'ok': 6000}}, self.account.outcome.hosts
        )

    def test_what_is_kept_whole_is_not_cut(self):
        self.judge(
            {'kind': 'stdout', 'text': 'done'}, fakes.result(), fakes.end()
        )
        self.assertEqual('done\n', self.account.detail.stdout)
        self.assertFalse(self.account.detail.cut)
