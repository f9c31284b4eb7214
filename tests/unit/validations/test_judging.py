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
        events = (event for event in news if 'status' not in event)
        self.account.take(events, 101.26)
        ends = [event for event in news if 'status' in event]
        self.account.ended(**(ends or [fakes.end('')])[0])
        return self.account.outcome.state, self.account.outcome.reason

    def test_it_passes_if_each_host_does(self):
        found = self.judge(
            fakes.result(),
            fakes.result('changed'),
            fakes.result('skipped', host='b'),
            # The playbook has rescued it; others are unknown.
            fakes.result('failed', host='b'),
            {'event': 'new', 'event_data': None},
            fakes.end(),
        )
        assert found == (State.PASSED, '')
        assert self.account.outcome.hosts == {
            'localhost': {'ok': 1, 'changed': 1},
            'b': {'skipped': 1, 'failed': 1},
        }
        assert self.account.outcome.seconds == 1.3

    def test_its_reason_is_the_first_failure(self):
        found = self.judge(
            fakes.result(),
            fakes.result('failed', 'b', 'memory', 'only\n 4 GB'),
            fakes.result('unreachable', 'c'),
            fakes.end('failed'),
        )
        said = 'b: memory: only 4 GB (and 1 more hosts)'
        assert found == (State.FAILED, said)

    def test_each_other_end_has_its_state_and_its_reason(self):
        looked = fakes.result()
        for news, state, said in (
            (
                [{'event': 'no-hosts'}, fakes.end()],
                State.FAILED,
                'No host was checked: none is in web; --host-group '
                '(host_groups) puts hosts into groups',
            ),
            (
                [{'stdout': '[ERROR]: no\nOrigin: x'}, fakes.end('failed')],
                State.FAILED,
                'Ansible failed: [ERROR]: no Origin: x',
            ),
            (
                [looked, {'stdout': 'out of memory'}],
                State.FAILED,
                'Its process was killed: out of memory',
            ),
            (
                [looked, fakes.end('stopped', left=2)],
                State.STOPPED,
                'It was stopped; cannot end 2 of its processes',
            ),
            (
                [fakes.began('sleep'), fakes.end('timeout')],
                State.TIMED_OUT,
                'It exceeded its time limit, in task sleep',
            ),
        ):
            assert self.judge(*news) == (state, said)
        _, reason = self.judge({'stdout': 'x' * 2000}, fakes.end('failed'))
        assert len(reason) < 600

    def test_there_is_an_end_to_what_is_kept(self):
        text = {'stdout': 'x' * 100_000}
        for results, cut in (5000, False), (5001, True):
            self.judge(*[fakes.result()] * results, fakes.end())
            assert self.account.detail.cut == cut
        self.judge(*[text] * 20, *[fakes.result()] * 6000, fakes.end())
        detail = self.account.detail
        assert detail.cut
        assert len(detail.tasks) == 5000
        assert len(detail.stdout) == 1024 * 1024
        assert self.account.outcome.hosts == {'localhost': {'ok': 6000}}

    def test_a_task_has_a_state_and_the_message_that_it_says_first(self):
        said = {'msg': '', 'stderr': 'bad', 'stdout': 'x'}
        for event, res, state, message in (
            ('ok', {'msg': 'x' * 9000}, 'ok', 'x' * 4000),
            ('ok', {'changed': True, 'msg': ['a', 1]}, 'changed', '["a", 1]'),
            ('ok', 'text', 'ok', ''),
            ('failed', {'msg': 'no', 'stderr': 'x'}, 'failed', 'no'),
            ('failed', said, 'ignored', 'bad'),
            ('skipped', None, 'skipped', ''),
            ('unreachable', {'censored': 'a', 'msg': 'x'}, 'unreachable', 'a'),
        ):
            data = {'res': res, 'ignore_errors': state == 'ignored'}
            self.judge({'event': f'runner_on_{event}', 'event_data': data})
            [task] = self.account.detail.tasks
            assert (task.state, task.message) == (state, message)

    def test_secrets_are_masked_everywhere(self):
        found = self.judge(
            fakes.began('hunter2'),
            fakes.result('failed', task='hunter2', message='is hunter2'),
            {'stdout': 'say hunter2'},
            fakes.end('failed'),
            secrets=('hunter2',),
        )
        said = repr((found, self.account.outcome, self.account.detail))
        assert 'hunter2' not in said
        assert 'say ******' in said
        # Also across the limit of a message.
        message = 'x' * 3996 + 'hunter2'
        self.judge(fakes.result(message=message), secrets=('hunter2',))
        [task] = self.account.detail.tasks
        assert 'hun' not in task.message
