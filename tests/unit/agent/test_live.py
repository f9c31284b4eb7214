# SPDX-License-Identifier: Apache-2.0
"""A config is followed, and stopped, while it runs."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
from unittest import mock

import pytest
import requests

from tests.unit.agent import conftest
from tests.unit.agent import test_hook
from tests.unit.agent import test_logs

from heat_config_supervisor import config as configs  # isort: skip
from heat_config_supervisor import control  # isort: skip
from heat_config_supervisor import hook  # isort: skip
from heat_config_supervisor import live  # isort: skip
from heat_config_supervisor import logs  # isort: skip
from heat_config_supervisor import outputs  # isort: skip
from heat_config_supervisor import sending  # isort: skip

HOOK = test_hook.HOOK.replace('/usr/bin/env python3', sys.executable)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(hook, 'GRACE', 1.0)
    monkeypatch.setattr(control, 'PACE', 0.05)
    monkeypatch.setattr(control, 'MOST', 0.1)
    monkeypatch.setattr(logs, 'PACE', 0.1)


def followed(server, script, meanwhile=lambda: None, declared=(), **inputs):
    """Run a hook with its output sent; how it ended."""
    program = server.program('hooks/script', HOOK)
    given = json.loads(conftest.config(**{**test_logs.INPUTS, **inputs}))
    content = json.dumps({**given, 'config': script, 'outputs': declared})
    config = configs.read(content)
    output = live.Output(config, str(program))
    watch = outputs.Watch(config, output.note)
    inherited = {'inherited': output.inherited}
    order = hook.Order(output.command, content.encode(), **inherited)

    def begun():
        output.begin()
        watch.begin()
        meanwhile()

    end = hook.run(order, begun)
    watch.end()
    output.end()
    logs.finish(config)
    return end


def printed(http):
    return test_logs.joined(http.output()).get(0)


def test_what_a_hook_reads_is_sent_as_it_comes(server, http):
    file = server.path / 'go'
    script = f'echo one; until [ -e {file} ]; do sleep 0.1; done; echo two'

    def meanwhile():
        test_logs.until(lambda: printed(http) == b'one\n')
        file.touch()

    end = followed(server, script, meanwhile=meanwhile)
    assert json.loads(end.stdout)['deploy_stdout'] == 'one\ntwo\n'
    assert printed(http) == b'one\ntwo\n'


def test_outputs_that_are_too_large_are_told_of_meanwhile(
    server, http, monkeypatch, caplog
):
    folder = server.path / 'outputs'
    folder.mkdir()
    monkeypatch.setenv('HEAT_SCRIPT_OUTPUTS', str(folder))
    monkeypatch.setattr(outputs, 'PACE', 0.05)
    monkeypatch.setattr(sending, 'LIMIT', 5000)
    go = server.path / 'go'
    # Written in two parts, and not the only file.
    script = (
        f'cd {folder}; echo x > c1.other; echo start; '
        'head -c 3000 /dev/zero > c1.dump; sleep 0.3; '
        'head -c 3000 /dev/zero > c1.rows; '
        f'until [ -e {go} ]; do sleep 0.1; done; echo end'
    )

    def meanwhile():
        test_logs.until(lambda: b'write less' in (printed(http) or b''))
        go.touch()

    declared = [{'name': 'dump'}, {'name': 'rows'}, {'name': '../\0'}]
    followed(server, script, meanwhile=meanwhile, declared=declared)
    line = sending.too_large(6000)
    assert printed(http).decode() == f'start\n{line}\nend\n'
    assert line in caplog.text


def test_hidden_values_do_not_leave_the_server(server, http):
    script = 'printf pass; sleep 0.3; echo word'
    end = followed(server, script, deploy_password='password')
    assert json.loads(end.stdout)['deploy_stdout'] == 'password\n'
    assert printed(http) == b'******\n'


def test_a_hook_finds_itself_as_ever(server):
    text = f'#!{sys.executable}\nimport sys\nprint(sys.argv, sys.path[0])\n'
    text += 'print(__name__, __file__)\nsys.exit(3)\n'
    program = str(server.program('hooks/script', text))
    read, write = os.pipe()
    command = [sys.executable, str(live.LAUNCH), str(write), program]
    options = {'pass_fds': (write,), 'capture_output': True, 'text': True}
    found = subprocess.run(command, **options)
    assert found.returncode == 3
    assert found.stdout == (
        f"['{program}'] {server.path}/hooks\n__main__ {program}\n"
    )
    # Without a reader it goes on.
    os.close(read)
    server.program('hooks/script', HOOK)
    found = subprocess.run(command, input='{"config": "echo x"}', **options)
    os.close(write)
    assert json.loads(found.stdout)['deploy_stdout'] == 'x\n'


@pytest.mark.parametrize(
    'text', ['#!/bin/sh\necho python\n', '\x7fELF python', '']
)
def test_a_hook_that_is_no_python_runs_as_ever(server, http, text):
    program = str(server.program('hooks/script', text))
    config = configs.read(conftest.config(**test_logs.INPUTS))
    output = live.Output(config, program)
    assert (output.command, output.inherited) == ([program], ())
    output.begin()
    output.end()
    assert http.sent == []


def test_on_a_full_disk_a_config_runs_on(server, http, monkeypatch, caplog):
    full = mock.Mock(side_effect=OSError(28, 'No space left on device'))
    monkeypatch.setattr(os, 'pwrite', full)
    end = followed(server, 'seq 1 100000')
    assert json.loads(end.stdout)['deploy_stdout'].endswith('100000\n')
    assert 'Cannot store more of the output' in caplog.text


# Stopping


def waiting(server):
    """Return a command that runs on, and that stopped() waits for.

    It is there when it says so: a shell that gets a signal before it starts
    a command leaves that one without it.
    """
    return f"sh -c 'touch {server.path}/ready; exec sleep 60'"


def stopped(server, script):
    """Stop a hook when its script waits; how it ended."""
    stop = threading.Event()

    def begun():
        test_logs.until((server.path / 'ready').exists)
        stop.set()

    end = test_hook.run(server, script, begun=begun, stop=stop)
    return json.loads(end.result())


def test_what_must_stop_answers_with_what_there_was(server, monkeypatch):
    monkeypatch.setattr(hook, 'GRACE', 60.0)
    found = stopped(server, f'echo half; {waiting(server)}')
    assert found['deploy_stdout'] == 'half\n'
    assert found['deploy_status_code'] == 143
    assert found['deploy_stopped'] == 'when told'
    assert 'stopped on request' in found['deploy_stderr']


@pytest.mark.parametrize(
    'start',
    ['sleep 59 &', 'sleep 59 >/dev/null 2>&1 &', '(trap "" TERM; sleep 1) &'],
    ids=['keeps the output open', 'does not', 'ignores it and ends'],
)
def test_what_a_script_leaves_as_it_is_stopped_is_stopped_too(
    server, monkeypatch, start
):
    monkeypatch.setattr(hook, 'GRACE', 60.0)
    script = f"trap '{start} exit' TERM; {waiting(server)}"
    found = stopped(server, script)
    # By force, if it had got no SIGTERM.
    assert found['deploy_stopped'] == 'when told'


def test_what_ignores_sigterm_is_stopped_by_force(server, monkeypatch):
    # The hook returns within it what the script had printed.
    monkeypatch.setattr(hook, 'GRACE', 2.0)
    ready = server.path / 'ready'
    found = stopped(
        server,
        f"trap '' TERM; echo half; touch {ready}\nwhile :; do sleep 1; done",
    )
    assert found['deploy_stopped'] == 'by force'
    assert found['deploy_stdout'] == 'half\n'


@pytest.mark.parametrize(
    'start',
    [
        'sleep 60 &',
        'setsid sleep 60 &',
        '(setsid sh -c "sleep 60 & exec sleep 61" &) &',
        'setsid sh -c \'trap "" TERM; while :; do sleep 1; done\' &',
    ],
    ids=['forks', 'leaves its group', 'double-forks', 'daemon ignores'],
)
def test_what_it_has_started_goes_wherever_that_went(server, start):
    mark = f'MARK={server.path}'
    stopped(server, f'export {mark}\n{start}\n{waiting(server)}')
    for environ in pathlib.Path('/proc').glob('[0-9]*/environ'):
        with contextlib.suppress(OSError):
            assert mark.encode() not in environ.read_bytes()


def test_what_ends_in_the_moment_of_the_order_is_not_stopped(server):
    stop = threading.Event()
    started = server.path / 'started'
    text = f'#!/bin/sh\necho $$ >{started}.new; mv {started}.new {started}'

    def begun():
        test_logs.until(started.exists)
        status = pathlib.Path(f'/proc/{started.read_text().strip()}/status')
        test_logs.until(lambda: 'State:\tZ (' in status.read_text())
        stop.set()

    end = test_hook.run(server, '', text, begun, stop)
    assert (end.stopped, end.status) == (None, 0)


def controlled(http, objects):
    http.objects = objects
    config = configs.read(conftest.config(deploy_control_url=conftest.URL))
    found = control.Control(config)
    found.begin()
    return found


def test_no_fault_of_the_store_is_an_order(http):
    faults = [503, requests.ConnectionError(), 401, 403, 301, 500]
    found = controlled(http, [*faults, 200])
    assert found.requested.wait(30)
    assert len(http.got) == len(faults) + 1
    # It asks no longer than the config runs.
    found = controlled(http, [404])
    test_logs.until(lambda: len(http.got) > len(faults) + 1)
    found.end()
    found.thread.join(30)
    assert not found.thread.is_alive()
    assert not found.requested.is_set()
