# SPDX-License-Identifier: Apache-2.0
"""The commands, as 55-heat-config and an image have them."""

import ast
import io
import os
import pathlib
import subprocess
import sys
from unittest import mock

import pytest

from tests.unit import agent
from tests.unit.agent import conftest

from heat_config_supervisor import delivery  # isort: skip
from heat_config_supervisor import main  # isort: skip
from heat_config_supervisor import results  # isort: skip


ENVIRONMENT = (
    agent.ADD_ON / 'heat-config-supervisor/os-refresh-config/environment.d'
    '/54-heat-config-supervisor.bash'
)


@pytest.fixture
def call(monkeypatch, capfdbinary):
    """Call a command with a standard input; its code and its outputs."""

    def called(content, *arguments):
        stdin = io.TextIOWrapper(io.BytesIO(content.encode()))
        monkeypatch.setattr(main.sys, 'stdin', stdin)
        code = main.main(list(arguments))
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return called


@pytest.fixture
def go_on(monkeypatch):
    found = mock.Mock()
    monkeypatch.setattr(delivery, 'go_on', found)
    return found


def test_each_hook_has_somebody_who_stands_in_for_it(server):
    server.program('hooks/script', '#!/bin/sh\ncat; echo err >&2; exit 3\n')
    server.program('hooks/my-hook', '#!/bin/sh\n')
    assert main.main(['prepare']) == 0
    wrappers = server.state / 'hooks'
    assert {'script', 'my-hook'} <= {one.name for one in wrappers.iterdir()}
    content = conftest.config(**{'name': 'x'})
    found = subprocess.run(
        [wrappers / 'script'], input=content, capture_output=True, text=True
    )
    assert (found.returncode, found.stdout) == (3, content)
    assert found.stderr == 'err\n'
    (server.path / 'hooks/my-hook').unlink()
    assert main.main(['prepare']) == 0
    assert not (wrappers / 'my-hook').exists()


def test_what_was_left_behind_is_seen_to(server, go_on, caplog):
    server.begun('c1')
    results.running().put('c1', {})
    assert main.main(['prepare']) == 0
    assert list(results.pending()) == ['c1']
    go_on.assert_called_once_with()
    assert 'c1 was interrupted' in caplog.text


def test_a_hook_runs_between_its_beginning_and_its_result(
    server, call, http, go_on
):
    program = server.program(
        'hooks/script',
        f'#!/bin/sh\nls {server.state}/running\necho "{conftest.URL}" >&2\n',
    )
    file = server.begun('c1')
    code, out, err = call(file.read_text(), 'hook', str(program))
    assert code == 0
    assert out.startswith('c1.json\n')
    assert 's3cret' not in err
    assert 'temp_url_sig=***' in err
    # Between the two it may be interrupted as well.
    assert list(results.running()) == ['c1']
    assert call('{"a": 1}', 'notify', str(file))[0] == 0
    assert list(results.running()) == []
    assert http.sent[0].body == {'a': 1}


def test_a_loss_of_power_leaves_what_a_result_needs(
    server, call, http, monkeypatch
):
    synced = []

    def sync(number):
        path = pathlib.Path(os.readlink(f'/proc/self/fd/{number}'))
        synced.append(path.relative_to(server.path))

    program = server.program('hooks/script', '#!/bin/sh\n')
    monkeypatch.setattr(os, 'fsync', sync)
    call(server.begun('c1').read_text(), 'hook', str(program))
    assert [str(path) for path in synced] == [
        'deployed/c1.json',
        'deployed',
        'state/running/.c1',
        'state/running',
    ]


def test_without_a_config_or_a_disk_all_is_as_ever(server, call, http):
    program = server.program('hooks/script', '#!/bin/sh\ncat\nexit 4\n')
    assert call('[1]', 'hook', str(program)) == (4, '[1]', '')
    server.program('notifier', '#!/bin/sh\ncat >"$0.in"\nexit 5\n')
    server.state.write_text('a file in the way')
    assert call('{"a": 1}', 'notify', str(server.begun()))[0] == 5
    assert (server.path / 'notifier.in').read_text() == '{"a": 1}'
    assert http.sent == []


def test_it_runs_on_the_oldest_python_that_it_names():
    for file in agent.PROGRAMS.rglob('*.py'):
        ast.parse(file.read_text(), feature_version=(3, 9))


def test_it_is_installed_below_any_folder(tmp_path):
    subprocess.run(
        [agent.ADD_ON / 'install'],
        env={'PATH': os.environ['PATH'], 'DESTDIR': str(tmp_path)},
        check=True,
        capture_output=True,
    )
    libexec = tmp_path / 'usr/libexec'
    step = libexec / 'os-refresh-config/configure.d/54-heat-config-supervisor'
    assert os.access(step, os.X_OK)
    program = libexec / 'heat-config-supervisor/heat-config-supervisor'
    unit = tmp_path / 'etc/systemd/system/heat-config-supervisor.service'
    said = f'ExecStart=/{program.relative_to(tmp_path)} deliver'
    assert said in unit.read_text()
    wanted = unit.parent / 'multi-user.target.wants' / unit.name
    assert wanted.resolve() == unit
    found = subprocess.run([sys.executable, program], capture_output=True)
    assert (found.returncode, b'usage' in found.stderr) == (2, True)


@pytest.mark.parametrize('installed', [True, False])
def test_the_environment_changes_only_where_it_is_installed(
    tmp_path, installed
):
    programs = agent.PROGRAMS if installed else tmp_path
    given = {'PATH': os.environ['PATH'], 'HEAT_CONFIG_HOOKS': '/hooks'}
    given['HEAT_CONFIG_SUPERVISOR'] = str(programs)
    given['HEAT_CONFIG_SUPERVISOR_STATE'] = '/state'
    command = ['bash', '-uec', 'source "$0"; env', ENVIRONMENT]
    found = subprocess.check_output(command, env=given, text=True)
    hooks = '/state/hooks' if installed else '/hooks'
    assert f'\nHEAT_CONFIG_HOOKS={hooks}\n' in f'\n{found}'
    notify = f'HEAT_CONFIG_NOTIFY={programs}/notify\n'
    for line in (notify, 'HEAT_CONFIG_SUPERVISED_HOOKS=/hooks\n'):
        assert (line in found) == installed
