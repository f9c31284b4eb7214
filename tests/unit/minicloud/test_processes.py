# SPDX-License-Identifier: Apache-2.0
"""Processes that outlive whoever starts them."""

import dataclasses
import os
import pathlib
import sys
import time

from minicloud_lib import files
from minicloud_lib import processes
import pytest

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


@pytest.fixture
def spawn(tmp_path):
    started = []

    def spawn(*command, name='it'):
        files = {'pid_file': tmp_path / f'{name}.pid', 'folder': tmp_path}
        about = {'log': tmp_path / 'it.log', 'env': os.environ, 'version': '1'}
        started.append(processes.spawn(command, **files, **about))
        return started[-1]

    yield spawn
    for process in started:
        process.kill()


def wait_for(path):
    deadline = time.monotonic() + 10
    while not path.exists() or not path.read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return path.read_text().strip()


def test_it_is_found_by_its_pid_file_and_a_stranger_is_not(spawn, tmp_path):
    pid_file, ready = tmp_path / 'it.pid', tmp_path / 'ready'
    process = spawn('sh', '-c', f'echo 1 > {ready}; sleep 100')
    # Before it is the program it has the memory of this one.
    wait_for(ready)
    assert processes.find(pid_file) == process
    usage = process.usage()
    assert usage.peak_rss_bytes >= usage.rss_bytes > 0
    stranger = dataclasses.replace(process, started='another time')
    files.write_json(pid_file, dataclasses.asdict(stranger))
    assert processes.find(pid_file) is None
    stranger.kill()
    assert process.alive


def test_one_that_dies_of_a_second_sigterm_may_end_its_work(spawn, tmp_path):
    ended = {}
    for name, seconds in (('first', '0.2'), ('later', '1')):
        file = tmp_path / name
        spawn(sys.executable, '-c', SAVES_ONCE, file, seconds, name=name)
        wait_for(file)
        ended[tmp_path / f'{name}.pid'] = file
    clean = processes.stop_all(ended, 10)
    assert clean == {'first': True, 'later': True}
    assert {file.read_text() for file in ended.values()} == {'saved'}


def test_stop_kills_what_is_not(spawn, tmp_path):
    ready = tmp_path / 'ready'
    script = f'trap "" TERM; echo 1 > {ready}; sleep 100; sleep 100'
    spawn('sh', '-c', script)
    wait_for(ready)
    pid_file = tmp_path / 'it.pid'
    assert processes.stop_all([pid_file], 0.2) == {'it': False}
    assert processes.find(pid_file) is None


def test_stop_ends_children_in_groups_of_their_own(spawn, tmp_path):
    child = tmp_path / 'child'
    script = f'timeout 100 sh -c "echo \\$\\$ > {child}; sleep 99"'
    process = spawn('sh', '-c', script)
    pid = wait_for(child)
    process.stop(5)
    assert not pathlib.Path('/proc', pid, 'exe').exists()
