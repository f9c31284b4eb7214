# SPDX-License-Identifier: Apache-2.0
"""Playbooks as ansible-runner, here a script, runs them; what they report."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from unittest import mock

import fixtures
import pytest
import testtools

from heat_plugins import errors
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory
from heat_plugins.validations import judging
from heat_plugins.validations import playbooks
from heat_plugins.validations import validation_ledger
from tests.unit.validations import fakes

# Has a child that leaves its session, and one that leaves its parent too.
FAMILY = """\
setsid sleep {seconds} &
setsid env -i sh -c 'sleep {seconds} & exit'
echo $0 "$@" > command
sleep {seconds}
"""

# Runs a playbook, and dies without a word.
KILLED = """\
import pathlib, sys, time
from heat_plugins.validations import playbooks
sys.executable = sys.argv[2]
playbook = playbooks.Playbook(playbooks.ValidationOrder(content={}), 'a.yaml')
pathlib.Path(sys.argv[1]).touch()
time.sleep(300)
"""


def running(seconds):
    """Return the processes that sleep for so long."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = path.read_bytes().split(b'\0')
        except OSError:
            continue
        if words[:2] == [b'sleep', seconds.encode()]:
            found.append(int(path.parent.name))
    return found


class PlaybookCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.temporary = self.folder / 'temporary'
        self.temporary.mkdir()
        self.variable('TMPDIR', str(self.temporary))
        self.patch(tempfile, 'tempdir', None)
        programs = self.folder / 'programs'
        programs.mkdir()
        self.program = programs / 'ansible-runner'
        # The stand-in comes before what is installed.
        python = programs / 'python'
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        self.patch(sys, 'executable', str(python))
        self.seconds = f'3{time.time_ns() % 10**9}'

    def variable(self, name, value):
        self.useFixture(fixtures.EnvironmentVariable(name, value))

    def begin(self, script, **options):
        """Begin a playbook; the script runs in its directory."""
        self.program.write_text(
            '#!/bin/sh\nmkdir -p artifacts/run/job_events\n'
            + script.format(seconds=self.seconds)
        )
        self.program.chmod(0o755)
        setting = playbooks.ValidationOrder(
            **{'content': {'a.yaml': b'[]'}, **options}
        )
        playbook = playbooks.Playbook(setting, 'a.yaml')
        self.addCleanup(playbook.close)
        return playbook

    def directory(self):
        [found] = self.temporary.glob('validation-*')
        return found

    def until(self, condition):
        end = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < end, 'It lasts too long'
            time.sleep(0.02)


class PlaybookTest(PlaybookCase):
    def test_ansible_is_told_all_and_nobody_else_what_is_secret(self):
        self.variable('OS_PASSWORD', 'hunter2')
        self.variable('ANSIBLE_LIBRARY', '/theirs')
        roles = 'validations/roles'
        run = f'{roles}/r/files/run.sh'
        playbook = self.begin(
            'echo "$@" > command; env > environment',
            content={run: b'#!/bin/sh\n'},
            key=' hunter2\n\n',
            variables={'password': 'hunter2'},
            hosts=(inventory.Host(name='a', address='10.0.0.1'),),
            timeout=9,
        )
        folder = self.directory()

        def load(path):
            return json.loads((folder / path).read_text())

        assert folder.stat().st_mode & 0o777 == 0o700
        for path in ('ssh_key', 'env/extravars', 'inventory/hosts.json'):
            assert (folder / path).stat().st_mode & 0o777 == 0o600, path
        key, project = folder / 'ssh_key', folder / 'project'
        assert key.read_text() == ' hunter2\n'
        found = load('inventory/hosts.json')['all']['children']['stack']
        assert found['vars']['ansible_ssh_private_key_file'] == str(key)
        assert load('env/settings')['job_timeout'] == 9
        paths = load('env/envvars')['ANSIBLE_ROLES_PATH']
        assert paths == str(project / roles)
        assert os.access(project / run, os.X_OK)
        assert (folder / 'ansible.cfg').read_text() == ''
        # No secret is on a command line or in an environment.
        self.until(playbook.ended)
        assert (folder / 'command').read_text() == (
            f'run {folder} --playbook a.yaml --ident run --quiet --forks=5\n'
        )
        given = (folder / 'environment').read_text()
        assert 'hunter2' not in given
        assert '/theirs' not in given

    def test_one_that_cannot_be_begun_leaves_no_directory(self):
        failing = mock.Mock(side_effect=OSError(12, 'memory'))
        self.patch(subprocess, 'Popen', failing)
        self.assertRaises(OSError, self.begin, '')
        assert [*self.temporary.iterdir()] == []

    def test_events_are_read_once_and_in_their_order(self):
        playbook = self.begin(
            textwrap.dedent("""\
                cd artifacts/run
                for n in 10 2 1; do
                    echo '{{"event": "e'$n'"}}' > job_events/$n-0a-1.json
                done
                echo '{{' > job_events/3-0a.json
                echo '[]' > job_events/4-0a.json
                echo 'x' > job_events/0a-partial.json
                printf successful > status
                echo no memory
                """)
        )
        self.until(playbook.ended)
        assert [one['event'] for one in playbook.news()] == ['e1', 'e2', 'e10']
        assert playbook.news() == []
        ended = playbook.status(), playbook.complaint(), playbook.close()
        assert ended == ('successful', 'no memory\n', 0)


class EndTest(PlaybookCase):
    def begin(self, script=FAMILY):
        playbook = super().begin(script)
        self.until(lambda: len(running(self.seconds)) == 3)
        return playbook

    def test_one_that_is_killed_leaves_no_process(self):
        playbook = self.begin()
        [command] = (self.directory() / 'command').read_text().split()[:1]
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
            with contextlib.suppress(OSError):
                words = path.read_bytes()
                if command.encode() in words and b'keeper' not in words:
                    os.kill(int(path.parent.name), signal.SIGKILL)
        self.until(playbook.ended)
        assert running(self.seconds) == []
        assert playbook.status() == ''

    def test_one_that_is_stopped_leaves_no_process_and_no_directory(self):
        playbook = self.begin()
        assert playbook.news() == []
        assert not playbook.ended()
        assert playbook.status() == ''
        playbook.stop()
        self.until(playbook.ended)
        assert running(self.seconds) == []
        assert playbook.close() == 0
        assert [*self.temporary.iterdir()] == []

    def test_so_does_one_whose_caller_is_killed(self):
        self.program.write_text(
            '#!/bin/sh\n' + FAMILY.format(seconds=self.seconds)
        )
        self.program.chmod(0o755)
        begun = self.folder / 'begun'
        python = sys.executable
        caller = subprocess.Popen([python, '-c', KILLED, str(begun), python])
        self.addCleanup(caller.wait)
        self.addCleanup(caller.kill)
        self.until(lambda: len(running(self.seconds)) == 3)
        self.until(begun.exists)
        caller.kill()
        self.until(lambda: not running(self.seconds))
        self.until(lambda: not [*self.temporary.iterdir()])

    def test_processes_that_cannot_be_ended_are_counted(self):
        script = (
            'import os, sys; from heat_plugins.validations import keeper;'
            'keeper.TIMEOUT = 0.2; os.kill = lambda *given: None;'
            'print(keeper.main(keeper.pathlib.Path(sys.argv[1]),'
            '["sh", "-c", "sleep 5 >/dev/null 2>&1 & exit"]))'
        )
        found = subprocess.run(
            [sys.executable, '-c', script, str(self.folder)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert found.stdout == '1\n', found.stderr


def test_what_is_missing_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(shutil, 'which', lambda name, path: None)
    remedy = 'pip install ansible-runner ansible-core'
    with pytest.raises(errors.Refused, match=remedy):
        playbooks.check()


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
        looked, failed = fakes.result(), fakes.end('failed')
        stopped, timeout = fakes.end('stopped', left=2), fakes.end('timeout')
        for state, said, *news in (
            ('FAILED', 'none is in web;', {'event': 'no-hosts'}, fakes.end()),
            ('FAILED', 'failed: no Origin', {'stdout': 'no\nOrigin'}, failed),
            ('FAILED', 'was killed: memory', looked, {'stdout': 'memory'}),
            ('STOPPED', 'cannot end 2 of its processes', looked, stopped),
            ('TIMED_OUT', 'in task sleep', fakes.began('sleep'), timeout),
        ):
            found, reason = self.judge(*news)
            assert found == State[state]
            assert said in reason
        _, reason = self.judge({'stdout': 'x' * 2000}, failed)
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
