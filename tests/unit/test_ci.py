# SPDX-License-Identifier: Apache-2.0
"""What CI runs, and what it makes of what goes wrong."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests import pythons
from tests import rest

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Says what pytest says in the end, of each of the runs.
MAKE = """\
#!/bin/sh
echo "make $*"
case "$2" in
    '' | venv) exit ;;
    test-rest) exec python3 -m tests.rest run ;;
    --keep-going) closing='1 failed, 20 passed' ;;
    *) closing='20 passed, 3 skipped, 1 rerun' ;;
esac
echo "== $closing in 1.50s (0:00:01) =="
case "$closing" in *failed*) exit 2 ;; esac
"""

#: Says its version, and runs the fake of minicloud in a shell.
PYTHON = """\
#!/bin/sh
[ "$1" != -c ] || { echo VERSION; exit; }
exec sh "$@"
"""

#: What .ci/run and what it starts may find on PATH, with the fakes.
PROGRAMS = ('dirname', 'mktemp', 'nice', 'rm', 'sh', 'tee', 'touch')
MODULES = ('__init__', 'rest', 'pythons')


@pytest.fixture
def run(tmp_path):
    """Return what runs it: its exit code and output.

    It takes the exit code of an installation, and whether a test fails.
    """

    def program(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    for name in ('.ci/run', *(f'tests/{n}.py' for n in MODULES)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    program('bin/python3', f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for version in pythons.SUPPORTED:
        program(f'bin/python{version}', PYTHON.replace('VERSION', version))
    for name in PROGRAMS:
        (tmp_path / 'bin' / name).symlink_to(shutil.which(name))

    def ended(installed=0, *, fails=False):
        made = MAKE if fails else MAKE.replace('1 failed, 20', '20')
        program('bin/make', made)
        program('contrib/minicloud/minicloud', f'exit {installed}\n')
        done = subprocess.run(
            [tmp_path / '.ci/run'],
            env={'PATH': f'{tmp_path}/bin', 'PYENV_ROOT': str(tmp_path)},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    return ended


def test_all_is_run_and_summed_up_in_the_last_line(run):
    code, output = run()
    assert code == 0
    assert re.findall(
        r'make --no-print-directory (--keep-going test|[\w-]+)', output
    ) == [
        *('venv', '--keep-going test', 'test-rest', 'functional'),
        *('test-heats', 'test-production', 'test-rgw', 'test-server'),
        'test-browser',
    ]
    assert 'Not run' not in output
    assert output.splitlines()[-2:] == [
        '6 of the tests tried once more',
        '140 passed, 0 failed',
    ]
    # A failure of "make test" counts, and the rest runs.
    code, output = run(fails=True)
    assert code == 1
    assert 'make --no-print-directory test-server' in output
    assert output.splitlines()[-1] == '140 passed, 1 failed'


def test_packages_may_be_lacking_but_no_installation_fails(run):
    code, output = run(4)
    assert code == 0
    for name in ('production', 'rgw', 'server', 'browser'):
        why = 'Not run, as its packages are unavailable: "make test-'
        assert f'{why}{name}"' in output
        assert f'directory test-{name}' not in output
    assert output.splitlines()[-1] == '60 passed, 0 failed'
    for installed in (1, 2, 127):
        code, output = run(installed)
        assert code == 1, installed
        assert 'Not run, as its installation has failed' in output
        assert 'directory test-production' not in output


def test_closing_lines_alone_count():
    log = (
        'said: 3 passed in 1.50s\n'
        '=========== 2 passed, 1 error in 3.10s ===========\n'
        'FAILED tests/a.py - 4 failed, 9 passed\n'
        '= 1 failed, 20 passed, 4 xpassed, 1 rerun in 61.0s (0:01:01) =\n'
        '=========== no tests ran in 0.10s ===========\n'
    )
    assert rest.summary(log) == [
        '1 of the tests tried once more',
        '22 passed, 2 failed',
    ]


def test_an_index_that_cannot_be_reached_is_named_in_one_line():
    url = 'http://127.0.0.1:9/query'
    done = subprocess.run(
        [ROOT / '.ci/audit', sys.executable],
        env={**os.environ, 'OSV_URL': url},
        capture_output=True,
        text=True,
    )
    said = f'pip-audit: not run, as {url} cannot be reached\n'
    assert (done.returncode, done.stdout) == (0, said)
