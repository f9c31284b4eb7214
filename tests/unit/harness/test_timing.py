# SPDX-License-Identifier: Apache-2.0
"""``make`` tells how long its targets took."""

import pathlib
import re
import sys

import pytest

from tests import timing

MAKEFILE = pathlib.Path(timing.__file__).parents[1] / 'Makefile'


@pytest.fixture
def file(tmp_path):
    return tmp_path / 'new' / 'times.json'


def run(file, target, code):
    command = [sys.executable, '-c', f'raise SystemExit({code})']
    return timing.main(['run', str(file), target, *command])


def test_the_last_run_of_each_target_is_kept(file):
    assert run(file, 'lint', 0) == 0
    assert run(file, 'unit', 3) == 3
    assert run(file, 'lint', 1) == 1
    known = timing.read(file)
    assert {name: one['ok'] for name, one in known.items()} == {
        'lint': False,
        'unit': False,
    }
    assert list(file.parent.iterdir()) == [file]


def test_each_timed_target_has_a_description():
    makefile = MAKEFILE.read_text()
    (timed,) = re.findall(r'TIMED := ((?:.*\\\n)*.*)', makefile)
    described = {line.split()[1] for line in timing.table(makefile, {})}
    assert described == set(timed.replace('\\', '').split())
