# SPDX-License-Identifier: Apache-2.0
"""The command heat-plugins-status, up to what its checks find."""

import json
import os
import subprocess
import sys

import pytest

WITHOUT_HEAT = """
import runpy, sys
sys.modules['heat'] = None
runpy.run_module('heat_plugins.status', run_name='__main__', alter_sys=True)
"""

# Runs the command in a fork for each line, as Heat takes seconds to import.
FORKS = """
import json, os, sys
import heat.cmd.engine
from heat_plugins import registry, status
from heat_plugins.checks import features
for line in sys.stdin:
    args, release, out, err = json.loads(line)
    if (pid := os.fork()) == 0:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(os.open(out, os.O_WRONLY) if out else writer, 1)
        os.dup2(os.open(err, os.O_WRONLY), 2)
        if release:
            registry.release = lambda: release
        sys.exit(status.main(args))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print(code, flush=True)
"""

PYTHON = sys.executable, '-W', 'ignore', '-c'


@pytest.fixture(scope='module')
def forks():
    pipes = dict.fromkeys(('stdin', 'stdout'), subprocess.PIPE)
    env = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    made = subprocess.Popen([*PYTHON, FORKS], text=True, env=env, **pipes)
    yield made
    made.communicate()


@pytest.fixture
def command(forks, tmp_path):
    """Return what runs the command: its exit code, output and errors."""

    def run(*args, release=None, is_read=True):
        out, err = tmp_path / 'out', tmp_path / 'err'
        for path in (out, err):
            path.write_text('')
        given = [*map(str, args)], release, str(out) * is_read, str(err)
        print(json.dumps(given), file=forks.stdin, flush=True)
        code = int(forks.stdout.readline())
        return code, out.read_text(), err.read_text()

    return run


@pytest.fixture
def heat_conf(tmp_path):
    file = tmp_path / 'heat.conf'
    file.write_text('[DEFAULT]\nplugin_dirs =\n')
    return file


def test_a_heat_that_is_missing_or_too_old_is_told_in_one_line(command):
    line = [*PYTHON, WITHOUT_HEAT, 'upgrade', 'check']
    done = subprocess.run(line, capture_output=True, text=True)
    for found, said in (
        ((done.returncode, done.stdout, done.stderr), 'one has no Heat'),
        (command('upgrade', 'check', release=22), 'Heat 24 (2025.1) or later'),
    ):
        code, printed, message = found
        assert (code, printed, message.count('\n')) == (255, '', 1)
        assert said in message


def test_who_reads_it_may_stop_early(command, heat_conf):
    given = '--config-file', heat_conf, 'feature', 'list'
    assert command(*given, is_read=False) == (255, '', '')


def test_a_heat_conf_that_is_empty_or_not_there_is_a_failure(
    command, heat_conf
):
    none = heat_conf.with_name('none')
    code, _, said = command('--config-file', none, 'upgrade', 'check')
    assert code == 255
    assert str(none) in said
    # An option may stand after the subcommand, too.
    given = 'upgrade', 'check', f'--config-file={heat_conf}'
    code, printed, said = command(*given)
    assert (code, said) == (2, '')
    assert '| Check: Resource types' in printed
    assert '| Result: Failure' in printed
    assert printed.count('| Details: Skipped') == 2


def test_options_of_the_command_may_stand_anywhere(command, heat_conf):
    off = heat_conf.with_name('off.conf')
    off.write_text('[heat_plugins]\nrescue_interval = 0\n')
    code, printed, said = command(
        # A cloud that has a subcommand's name, and gives no token.
        *(f'--config-file={heat_conf}', 'feature', '--os-cloud', 'upgrade'),
        *('list', '--config-file', off, '-f', 'json'),
    )
    assert code == 0, said
    rows = json.loads(printed)
    reasons = {row['name']: row['reason'] for row in rows}
    assert 'cloud upgrade' in reasons['Plans'].lower()
    # The last file counts.
    assert 'No engine keeps' in reasons['Schedules']
