# SPDX-License-Identifier: Apache-2.0
"""A hook has its time, and no more."""

import itertools
import json
import os
import pathlib
import signal
import threading
import time
import types
from unittest import mock

import pytest

from heat_config_supervisor import hook  # isort: skip

#: Does what the hooks of heat-agents do: runs a program, and returns what
#: that has printed when it has ended.
HOOK = """\
#!/usr/bin/env python3
import json, subprocess, sys
config = json.load(sys.stdin)
found = subprocess.run(
    ['/bin/sh', '-c', config['config']], capture_output=True
)
json.dump(
    {
        'deploy_stdout': found.stdout.decode(),
        'deploy_stderr': found.stderr.decode(),
        'deploy_status_code': found.returncode,
    },
    sys.stdout,
)
"""

#: A hook's time limit in seconds, more than any of these tests takes.
LIMIT = 600


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(hook, 'GRACE', 1.0)


@pytest.fixture
def ready(server, monkeypatch):
    """Return a file; the hook's time is over when it is there."""
    file = server.path / 'ready'
    asked = itertools.count()

    def monotonic():
        # The first time is from when it runs, however soon it is ready.
        over = next(asked) > 0 and file.exists()
        return time.monotonic() + (LIMIT if over else 0)

    clock = types.SimpleNamespace(monotonic=monotonic, sleep=time.sleep)
    monkeypatch.setattr(hook, 'time', clock)
    return file


def run(server, script, text=HOOK, begun=lambda: None, stop=None):
    program = server.program('hooks/script', text)
    content = json.dumps({'config': script}).encode()
    stop = stop or threading.Event()
    order = hook.Order([str(program)], content, limit=LIMIT, stop=stop)
    return hook.run(order, begun)


def test_what_ends_in_time_is_as_it_was(server):
    begun = mock.Mock()
    end = run(server, 'echo out; echo err >&2; exit 3', begun=begun)
    assert (end.stopped, end.status) == (None, 0)
    begun.assert_called_once_with()
    assert json.loads(end.result()) == {
        'deploy_stdout': 'out\n',
        'deploy_stderr': 'err\n',
        'deploy_status_code': 3,
    }
    # A hook may fail itself.
    end = run(server, '', text='#!/bin/sh\necho text\necho no >&2\nexit 7\n')
    assert (end.status, end.stdout, end.stderr) == (7, b'text\n', b'no\n')
    assert end.result() == b'text\n'


def test_what_is_stopped_returns_what_it_has_printed(server, ready):
    script = f'echo half; touch {ready}; sleep 60; echo whole'
    end = run(server, script)
    found = json.loads(end.result())
    assert found['deploy_stdout'] == 'half\n'
    assert found['deploy_status_code'] == 124
    assert f'stopped after {LIMIT} s' in found['deploy_stderr']


def test_a_parent_is_stopped_before_its_children(server, ready, monkeypatch):
    real = hook.running_processes
    monkeypatch.setattr(
        hook,
        'running_processes',
        # Their order must not depend on that of /proc or of their numbers.
        lambda: sorted(real(), key=lambda one: -one.pid),
    )
    stopped = []
    send = os.kill
    monkeypatch.setattr(
        hook.os, 'kill', lambda *told: stopped.append(told) or send(*told)
    )
    program = server.path / 'program'
    program.write_text(f'touch {ready}; exec sleep 60')
    script = f'sh -c "sh -c \\"sh {program}; :\\"; :"; :'
    assert json.loads(run(server, script).result())
    pids = [pid for pid, number in stopped if number == signal.SIGTERM]
    assert len(pids) == 4
    assert pids == sorted(pids)


def test_a_hook_that_hangs_by_itself_is_killed(server, ready):
    text = f'#!/bin/sh\ntrap "" TERM\necho words\ntouch {ready}\n'
    text += 'while :; do sleep 60; done\n'
    end = run(server, '', text)
    found = json.loads(end.result())
    assert found['deploy_stdout'] == 'words\n'
    assert found['deploy_status_code'] == 124


def test_what_is_left_running_in_time_stays_and_is_not_waited_for(server):
    file = server.path / 'pid'
    text = (
        f'#!/bin/sh\n(while :; do echo more; done) & echo $! >{file}\n'
        'echo done\n'
    )
    began = time.monotonic()
    end = run(server, '', text)
    assert time.monotonic() - began < 200
    assert b'done\n' in end.stdout
    pid = file.read_text().strip()
    is_alive = pathlib.Path('/proc', pid, 'exe').exists()
    os.kill(int(pid), 9)
    assert is_alive
