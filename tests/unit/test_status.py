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

OLD_HEAT = """
from heat_plugins import registry, status
registry.release = lambda: 22
raise SystemExit(status.main(['upgrade', 'check']))
"""


def run(*args, **options):
    """Run Python, with no OS_* variable."""
    return subprocess.run(
        [sys.executable, '-W', 'ignore', *map(str, args)],
        **{'stdout': subprocess.PIPE, **options},
        stderr=subprocess.PIPE,
        text=True,
        env={k: v for k, v in os.environ.items() if not k.startswith('OS_')},
    )


def command(*args, **options):
    return run('-m', 'heat_plugins.status', *args, **options)


@pytest.fixture
def heat_conf(tmp_path):
    file = tmp_path / 'heat.conf'
    file.write_text('[DEFAULT]\nplugin_dirs =\n')
    return file


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ((WITHOUT_HEAT, 'upgrade', 'check'), 'this one has no Heat'),
        ((OLD_HEAT,), 'needs Heat 24 (2025.1) or later'),
    ],
)
def test_a_heat_that_is_missing_or_too_old_is_told_in_one_line(given, said):
    done = run('-c', *given)
    assert (done.returncode, done.stdout) == (255, '')
    (message,) = done.stderr.splitlines()
    assert said in message


def test_who_reads_it_may_stop_early(heat_conf):
    reader, writer = os.pipe()
    os.close(reader)
    given = ('--config-file', heat_conf, 'feature', 'list')
    with open(writer, 'w') as stdout:
        done = command(*given, stdout=stdout)
    assert (done.returncode, done.stderr) == (255, '')


def test_a_heat_conf_that_is_empty_or_not_there_is_a_failure(heat_conf):
    none = heat_conf.with_name('none')
    done = command('--config-file', none, 'upgrade', 'check')
    assert done.returncode == 255
    assert str(none) in done.stderr
    # An option may stand after the subcommand, too.
    done = command('upgrade', 'check', f'--config-file={heat_conf}')
    assert (done.returncode, done.stderr) == (2, '')
    assert '| Check: Resource types' in done.stdout
    assert '| Result: Failure' in done.stdout
    assert done.stdout.count('| Details: Skipped') == 2


def test_options_of_the_command_may_stand_anywhere(heat_conf):
    off = heat_conf.with_name('off.conf')
    off.write_text('[heat_plugins]\nrescue_interval = 0\n')
    done = command(
        # A cloud that has a subcommand's name, and gives no token.
        *(f'--config-file={heat_conf}', 'feature', '--os-cloud', 'upgrade'),
        *('list', '--config-file', off, '-f', 'json'),
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    reasons = {row['name']: row['reason'] for row in rows}
    assert 'cloud upgrade' in reasons['Plans'].lower()
    # The last file counts.
    assert 'No engine keeps' in reasons['Schedules']
