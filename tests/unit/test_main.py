# SPDX-License-Identifier: Apache-2.0
"""``python -m heat_plugins``: the plugin_dirs line for heat.conf."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile

import testtools

from heat_plugins import __main__ as main

EXAMPLES = pathlib.Path(__file__).parents[2] / 'contrib/examples'

# Runs the command in a Python that cannot find Heat.
WITHOUT_HEAT = """
import runpy, sys
sys.modules['heat'] = None
runpy.run_module('heat_plugins', run_name='__main__', alter_sys=True)
"""


def run(*args):
    return subprocess.run(
        [sys.executable, *args], capture_output=True, text=True, check=False
    )


class MainTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.heat_conf = pathlib.Path(folder.name, 'heat.conf')

    def line(self, *python_args):
        """Run the command with heat.conf; return the line it prints."""
        done = run(*python_args, '--config-file', str(self.heat_conf))
        assert done.returncode == 0, done.stderr
        (line,) = done.stdout.splitlines()
        return line

    def test_heats_default_directories_are_kept(self):
        self.heat_conf.write_text('[DEFAULT]\n')
        line = self.line('-m', 'heat_plugins')
        assert line.startswith('plugin_dirs = /usr/'), line
        assert ',/usr/local/lib/heat,' in line
        assert line.endswith(f',{main.PLUGIN_DIR}'), line

    def test_without_heat_the_configured_directories_are_kept(self):
        self.heat_conf.write_text('[DEFAULT]\nplugin_dirs = /srv/a, /srv/b\n')
        assert (
            self.line('-c', WITHOUT_HEAT)
            == f'plugin_dirs = /srv/a,/srv/b,{main.PLUGIN_DIR}'
        )

    def test_the_printed_line_in_heat_conf_prints_itself(self):
        line = f'plugin_dirs = /srv/a,{main.PLUGIN_DIR}'
        self.heat_conf.write_text(f'[DEFAULT]\n{line}\n')
        assert self.line('-c', WITHOUT_HEAT) == line

    def test_a_missing_configuration_file_is_named(self):
        done = run('-c', WITHOUT_HEAT, '--config-file', str(self.heat_conf))
        assert done.returncode == 1
        assert done.stdout == ''
        (message,) = done.stderr.splitlines()
        assert str(self.heat_conf) in message


class ExampleTest(testtools.TestCase):
    def example(self, *args):
        done = run('-P', '-c', WITHOUT_HEAT, 'example', *args)
        return done.returncode, done.stdout, done.stderr

    def test_they_are_listed_with_what_each_is_for(self):
        code, listed, _ = self.example()
        assert code == 0
        names = [
            line.split()[0]
            for line in listed.splitlines()
            if not line.startswith(' ')
        ]
        assert names == sorted(path.stem for path in main.EXAMPLES.iterdir())
        assert 'hello            The first template: ' in listed

    def test_each_prints_as_it_is_in_the_clone(self):
        for path in main.EXAMPLES.iterdir():
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                main.main(['example', path.stem])
            text = (EXAMPLES / path.name).read_text()
            assert printed.getvalue() == text

    def test_a_name_of_none_is_refused_with_those_that_exist(self):
        code, printed, message = self.example('helo')
        assert (code, printed) == (2, '')
        assert "'helo'" in message
        assert "'existing-server', 'group', 'hello'" in message


class PluginDirsTest(testtools.TestCase):
    def test_another_spelling_of_our_directory_counts(self):
        spelled = main.PLUGIN_DIR + '/../plugin_dir/'
        assert main.plugin_dirs([spelled]) == [spelled]
