# SPDX-License-Identifier: Apache-2.0
"""The command heat-plugins-status, up to what its checks find."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import testtools

# Runs the command in a Python that cannot find Heat.
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

NO_PLUGINS = '[DEFAULT]\nplugin_dirs =\n'


def environment():
    """Return an environment with no OS_* variable."""
    names = [name for name in os.environ if not name.startswith('OS_')]
    return {name: os.environ[name] for name in names}


def run(*args):
    """Run Python."""
    return subprocess.run(
        [sys.executable, *args],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )


def command(*args):
    """Run the command."""
    return run('-W', 'ignore', '-m', 'heat_plugins.status', *map(str, args))


class CommandTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.heat_conf = pathlib.Path(folder.name, 'heat.conf')

    def features(self, *args):
        """Return the rows of the table of features, by name."""
        done = command(*args, '-f', 'json')
        assert done.returncode == 0, done.stderr
        return {row['name']: row for row in json.loads(done.stdout)}

    def test_a_heat_that_is_missing_or_too_old_is_told_in_one_line(self):
        for given, said in (
            ((WITHOUT_HEAT, 'upgrade', 'check'), 'this one has no Heat'),
            ((OLD_HEAT,), 'needs Heat 24 (2025.1) or later'),
        ):
            done = run('-W', 'ignore', '-c', *given)
            assert (done.returncode, done.stdout) == (255, '')
            (message,) = done.stderr.splitlines()
            assert said in message

    def test_who_reads_it_may_stop_early(self):
        self.heat_conf.write_text(NO_PLUGINS)
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, 'w') as stdout:
            done = subprocess.run(
                [
                    *(sys.executable, '-m', 'heat_plugins.status'),
                    *('--config-file', str(self.heat_conf), 'feature', 'list'),
                ],
                stdout=stdout,
                stderr=subprocess.PIPE,
                check=False,
            )
        assert (done.returncode, done.stderr) == (255, b'')

    def test_a_heat_conf_that_cannot_be_read_is_named(self):
        done = command('--config-file', self.heat_conf, 'upgrade', 'check')
        assert done.returncode == 255
        assert str(self.heat_conf) in done.stderr

    def test_an_empty_heat_conf_is_told_of_in_a_table_that_says_failure(self):
        self.heat_conf.write_text(NO_PLUGINS)
        # An option may stand after the subcommand, too.
        named = f'--config-file={self.heat_conf}'
        done = command('upgrade', 'check', named)
        assert done.returncode == 2, done.stderr
        assert done.stderr == ''
        assert '| Check: Resource types' in done.stdout
        assert '| Result: Failure' in done.stdout
        assert done.stdout.count('| Details: Skipped') == 2

    def test_options_of_the_command_may_stand_anywhere(self):
        self.heat_conf.write_text(NO_PLUGINS)
        off = self.heat_conf.with_name('off.conf')
        off.write_text(f'{NO_PLUGINS}[heat_plugins]\nrescue_interval = 0\n')
        rows = self.features(
            *(f'--config-file={self.heat_conf}', 'feature', '--os-cloud'),
            # A subcommand's name.
            *('upgrade', 'list', '--config-file', off),
        )
        assert 'cloud upgrade' in rows['Plans']['reason'].lower()
        # The last file counts.
        assert 'No engine keeps' in rows['Schedules']['reason']

    def test_why_a_cloud_gives_no_token_is_told_by_the_features_too(self):
        self.heat_conf.write_text(NO_PLUGINS)
        given = ('--config-file', self.heat_conf, '--os-cloud', 'nosuch')
        rows = self.features(*given, 'feature', 'list')
        assert 'nosuch' in rows['Plans']['reason']
