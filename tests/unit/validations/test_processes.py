# SPDX-License-Identifier: Apache-2.0
"""The folder and the processes of a playbook; no playbook runs here."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins.validations import inventory
from heat_plugins.validations import playbook_folder
from heat_plugins.validations import processes

# Has a child that leaves its session, and one that leaves its parent too.
FAMILY = """\
import os, subprocess, sys, time
subprocess.Popen(['sleep', '300'], start_new_session=True)
subprocess.Popen(
    ['sh', '-c', 'sleep 301 & exit'], start_new_session=True, env={}
).wait()
print('ready', flush=True)
time.sleep(300)
"""

# A guard, with a family instead of a playbook.
GUARD = f"""\
import ctypes, subprocess, sys
from heat_plugins.validations import guard
ctypes.CDLL(None).prctl(guard._SUBREAPER, 1, 0, 0, 0)
family = subprocess.Popen(
    [sys.executable, '-c', {FAMILY!r}], stdout=subprocess.PIPE
)
family.stdout.readline()
print(len(guard._descendants(__import__('os').getpid())), flush=True)
print(guard.end_descendants(), flush=True)
print(len(guard._descendants(__import__('os').getpid())), flush=True)
"""


class GuardTest(testtools.TestCase):
    def test_whatever_has_been_begun_is_ended(self):
        found = subprocess.run(
            [sys.executable, '-c', GUARD],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        self.assertEqual(['3', '0', '0'], found.stdout.split(), found.stderr)


class FolderTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, **options):
        content = {
            'validations/a.yaml': b'[]',
            'validations/roles/r/files/run.sh': b'#!/bin/sh\n',
        }
        setting = playbook_folder.Setting(content=content, **options)
        self.job = playbook_folder.PlaybookJob(
            playbook='validations/a.yaml', timeout=9, secrets=('hunter2',)
        )
        playbook_folder.write(self.folder, setting, self.job)

    def json(self, path):
        return json.loads((self.folder / path).read_text())

    def test_the_job_is_read_again_as_it_was(self):
        self.write()
        self.assertEqual(self.job, playbook_folder.read(self.folder))

    def test_nobody_else_may_look_at_what_is_secret(self):
        self.write(key='a key', variables={'password': 'hunter2'})
        self.assertEqual(0o700, self.folder.stat().st_mode & 0o777)
        for path in ('ssh_key', 'job.json', 'env/extravars'):
            mode = (self.folder / path).stat().st_mode & 0o777
            self.assertEqual(0o600, mode, path)

    def test_a_key_is_a_file_that_the_inventory_names(self):
        host = inventory.Host(name='a', address='10.0.0.1')
        self.write(key=' a key\n\n', hosts=(host,))
        self.assertEqual(' a key\n', (self.folder / 'ssh_key').read_text())
        found = self.json('inventory/hosts.json')['all']['children']['stack']
        self.assertEqual(
            str(self.folder / 'ssh_key'),
            found['vars']['ansible_ssh_private_key_file'],
        )

    def test_ansible_is_told_of_roles_and_of_no_configuration(self):
        self.write()
        found = self.json('env/envvars')
        self.assertEqual(
            str(self.folder / 'project/validations/roles'),
            found['ANSIBLE_ROLES_PATH'],
        )
        self.assertEqual('', (self.folder / 'ansible.cfg').read_text())

    def test_scripts_can_be_run(self):
        self.write()
        script = self.folder / 'project/validations/roles/r/files/run.sh'
        self.assertTrue(os.access(script, os.X_OK))

    def test_of_our_own_environment_little_goes_along(self):
        self.variable('OS_PASSWORD', 'hunter2')
        self.variable('ANSIBLE_LIBRARY', '/theirs')
        found = playbook_folder.environment('mark', self.folder)
        self.assertNotIn('OS_PASSWORD', found)
        self.assertNotIn('ANSIBLE_LIBRARY', found)
        self.assertEqual('mark', found['HEAT_PLUGINS_VALIDATION'])
        beside = str(pathlib.Path(sys.executable).parent)
        self.assertTrue(found['PATH'].startswith(f'{beside}:'))

    def variable(self, name, value):
        patch = mock.patch.dict(os.environ, {name: value})
        patch.start()
        self.addCleanup(patch.stop)


class PlaybookTest(testtools.TestCase):
    """The process is another program here, which does what a test says."""

    def setUp(self):
        super().setUp()
        popen = subprocess.Popen

        def begin(command, **options):
            self.command = command
            self.options = options
            return popen(['sh', '-c', self.script], **options)

        self.patch(processes.subprocess, 'Popen', begin)
        self.patch(processes, '_GRACE', 1.0)

    def begin(self, script, timeout=60, **options):
        self.script = script
        setting = playbook_folder.Setting(content={'a.yaml': b'[]'}, **options)
        job = playbook_folder.PlaybookJob(
            playbook='a.yaml', timeout=timeout, secrets=('hunter2',)
        )
        found = processes.Playbook(setting, job)
        self.addCleanup(self.end, found)
        return found

    def end(self, playbook):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(playbook.pid, signal.SIGKILL)
        playbook.close()

    def until(self, condition):
        until = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), until, 'It lasts too long')
            time.sleep(0.02)

    def folder(self):
        return pathlib.Path(self.command[-1])

    def test_no_secret_is_on_its_command_line_or_in_its_environment(self):
        playbook = self.begin(
            'exit', key='hunter2', variables={'password': 'hunter2'}
        )
        self.assertNotIn('hunter2', ' '.join(self.command))
        self.assertNotIn('hunter2', json.dumps(self.options['env']))
        self.assertTrue(self.options['start_new_session'])
        playbook.close()

    def test_it_is_read_line_by_line(self):
        playbook = self.begin(
            'printf \'{"kind": "task"}\\n{"kind"\' > events.jsonl; cat;'
            'printf \': "end"}\\n\' >> events.jsonl'
        )
        news = []
        self.until(lambda: news.extend(playbook.news()) or news)
        self.assertEqual([{'kind': 'task'}], news)
        playbook.stop()
        self.until(playbook.ended)
        self.assertEqual([{'kind': 'end'}], playbook.news())
        self.assertEqual(0, playbook.close())

    def test_what_a_playbook_itself_writes_to_the_reports_is_passed_over(self):
        playbook = self.begin(
            "for i in $(seq 2000); do printf '[' >> events.jsonl; done; "
            'printf \'\\nx\\n1\\n{}\\n{"kind": "end"}\\n\' >> events.jsonl'
        )
        news = []
        self.until(lambda: news.extend(playbook.news()) or news)
        self.assertEqual([{'kind': 'end'}], news)

    def test_nothing_reported_is_no_news(self):
        playbook = self.begin('cat')
        self.assertEqual([], playbook.news())
        self.assertFalse(playbook.ended())
        playbook.close()

    def test_its_folder_goes_with_it(self):
        playbook = self.begin('cat')
        folder = self.folder()
        self.assertTrue(folder.is_dir())
        playbook.close()
        self.assertFalse(folder.exists())

    def test_one_that_does_not_stop_is_killed(self):
        playbook = self.begin('sleep 300')
        # The mark is in its environment, which it has from exec on.
        self.until(lambda: processes.marked(playbook.mark))
        self.assertEqual(0, playbook.close())
        self.assertEqual([], processes.marked(playbook.mark))

    def test_one_that_lasts_too_long_is_killed(self):
        playbook = self.begin('sleep 300', timeout=0)
        self.until(playbook.ended)
        playbook.close()

    def test_what_a_killed_one_leaves_behind_is_found(self):
        playbook = self.begin('setsid sleep 300 & sleep 300')
        self.until(lambda: len(processes.marked(playbook.mark)) >= 3)
        os.kill(playbook.pid, signal.SIGKILL)
        self.until(playbook.ended)
        self.assertNotEqual([], processes.marked(playbook.mark))
        self.assertEqual(0, playbook.close())
        self.assertEqual([], processes.marked(playbook.mark))

    def test_one_that_cannot_be_begun_leaves_no_folder(self):
        made = []
        mkdtemp = tempfile.mkdtemp

        def noted(**options):
            made.append(mkdtemp(**options))
            return made[-1]

        def refused(*args, **options):
            raise OSError(12, 'Cannot allocate memory')

        self.patch(processes.tempfile, 'mkdtemp', noted)
        self.patch(processes.subprocess, 'Popen', refused)
        setting = playbook_folder.Setting(content={'a.yaml': b'[]'})
        job = playbook_folder.PlaybookJob(playbook='a.yaml', timeout=1)
        self.assertRaises(OSError, processes.Playbook, setting, job)
        self.assertEqual(1, len(made))
        self.assertFalse(os.path.exists(made[0]))


class CheckTest(testtools.TestCase):
    def test_what_is_missing_is_named_with_the_remedy(self):
        self.patch(processes.importlib.util, 'find_spec', lambda name: None)
        self.patch(shutil, 'which', lambda name, path: None)
        error = self.assertRaises(errors.Refused, processes.check)
        for word in (
            'ansible-runner and ansible-core',
            'pip install ansible-runner ansible-core',
        ):
            self.assertIn(word, str(error))

    def test_here_they_are(self):
        processes.check()
