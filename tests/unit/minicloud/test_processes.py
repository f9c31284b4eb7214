# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive whoever starts them."""

import dataclasses
import os
import pathlib
import sys
import tempfile
import time

from minicloud_lib import files
from minicloud_lib import processes
import testtools

#: The way of Ceph's daemons: the second SIGTERM finds no handler.
SAVES_ONCE = """\
import pathlib, signal, sys, time
file, seconds = pathlib.Path(sys.argv[1]), float(sys.argv[2])
def save(number, frame):
    signal.signal(number, signal.SIG_DFL)
    time.sleep(seconds)
    file.write_text('saved')
    sys.exit()
signal.signal(signal.SIGTERM, save)
file.write_text('ready')
time.sleep(100)
"""


class ProcessTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.pid_file = self.folder / 'it.pid'

    def spawn(self, *command):
        process = processes.spawn(
            command,
            pid_file=self.pid_file,
            log=self.folder / 'it.log',
            env=os.environ,
            folder=self.folder,
            version='1',
        )
        self.addCleanup(process.kill)
        return process

    def wait_for(self, path):
        deadline = time.monotonic() + 10
        while not path.exists() or not path.read_text().strip():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return path.read_text().strip()

    def test_found_again_by_its_pid_file(self):
        ready = self.folder / 'ready'
        process = self.spawn('sh', '-c', f'echo 1 > {ready}; sleep 100')
        # Before it is the program it has the memory of this one.
        self.wait_for(ready)
        assert processes.find(self.pid_file) == process
        usage = process.usage()
        assert usage.peak_rss_bytes >= usage.rss_bytes > 0

    def test_a_stranger_with_the_same_number_is_not_ours(self):
        process = self.spawn('sleep', '100')
        stranger = dataclasses.replace(process, started='another time')
        files.write_json(self.pid_file, dataclasses.asdict(stranger))
        assert processes.find(self.pid_file) is None
        stranger.kill()
        assert process.alive

    def test_one_that_dies_of_a_second_sigterm_may_end_its_work(self):
        ended = {}
        for name, seconds in (('first', '0.2'), ('later', '1')):
            self.pid_file = self.folder / f'{name}.pid'
            file = self.folder / name
            self.spawn(sys.executable, '-c', SAVES_ONCE, file, seconds)
            self.wait_for(file)
            ended[self.pid_file] = file
        clean = processes.stop_all(ended, 10)
        assert clean == {'first': True, 'later': True}
        assert [file.read_text() for file in ended.values()] == [
            'saved',
            'saved',
        ]

    def test_stop_kills_what_is_not(self):
        ready = self.folder / 'ready'
        self.spawn(
            'sh', '-c', f'trap "" TERM; echo 1 > {ready}; sleep 100; sleep 100'
        )
        self.wait_for(ready)
        assert processes.stop_all([self.pid_file], 0.2) == {'it': False}
        assert processes.find(self.pid_file) is None

    def test_stop_ends_children_in_groups_of_their_own(self):
        child = self.folder / 'child'
        process = self.spawn(
            'sh', '-c', f'timeout 100 sh -c "echo \\$\\$ > {child}; sleep 99"'
        )
        pid = self.wait_for(child)
        process.stop(5)
        assert not pathlib.Path('/proc', pid, 'exe').exists()
