# SPDX-License-Identifier: Apache-2.0
"""``python -m heat_plugins``: the plugin_dirs line for heat.conf."""

import pathlib
import re
import subprocess
import sys

from heat_plugins import __main__ as main

EXAMPLES = pathlib.Path(__file__).parents[2] / 'contrib/examples'

# Runs the command in a Python that cannot find Heat.
WITHOUT_HEAT = """
import runpy, sys
sys.modules['heat'] = None
runpy.run_module('heat_plugins', run_name='__main__', alter_sys=True)
"""


def run(*args, python=('-c', WITHOUT_HEAT)):
    done = subprocess.run(
        [sys.executable, '-P', *python, *args], capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_heats_default_directories_are_kept(tmp_path):
    heat_conf = tmp_path / 'heat.conf'
    heat_conf.write_text('[DEFAULT]\n')
    given = '--config-file', str(heat_conf)
    _, printed, _ = run(*given, python=('-m', 'heat_plugins'))
    own = re.escape(main.PLUGIN_DIR)
    heats = r'plugin_dirs = /usr/.*,/usr/local/lib/heat,'
    assert re.fullmatch(f'{heats}(?:.*,)?{own}\n', printed), printed


def test_without_heat_the_configured_directories_are_kept(tmp_path):
    heat_conf = tmp_path / 'heat.conf'
    # A missing file is named.
    code, printed, said = run('--config-file', str(heat_conf))
    assert (code, printed) == (1, '')
    (message,) = said.splitlines()
    assert str(heat_conf) in message
    line = f'plugin_dirs = /srv/a,/srv/b,{main.PLUGIN_DIR}\n'
    # The printed line prints itself.
    for given in ('plugin_dirs = /srv/a, /srv/b\n', line):
        heat_conf.write_text(f'[DEFAULT]\n{given}')
        assert run('--config-file', str(heat_conf)) == (0, line, '')
    # So does another spelling of our directory.
    spelled = main.PLUGIN_DIR + '/../plugin_dir/'
    assert main.plugin_dirs([spelled]) == [spelled]


def test_examples_are_listed_with_what_each_is_for(capsys):
    code, listed, _ = run('example')
    assert code == 0
    names = re.findall(r'^\S+', listed, re.M)
    assert names == sorted(path.stem for path in main.EXAMPLES.iterdir())
    assert 'hello            The first template: ' in listed
    code, printed, message = run('example', 'helo')
    assert (code, printed) == (2, '')
    assert "'existing-server', 'group', 'hello'" in message
    # Each prints as it is in the clone.
    for path in main.EXAMPLES.iterdir():
        main.main(['example', path.stem])
        text = (EXAMPLES / path.name).read_text()
        assert capsys.readouterr().out == text
