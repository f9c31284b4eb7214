# SPDX-License-Identifier: Apache-2.0
"""What a functional test that fails shows of the services' logs."""

import os
import re
import shlex
import types

import pytest

from tests.functional import failure_logs

LOG = """\
2026-11-22 10:00:01.000 7 INFO heat [-] Creating stack1
  with a second line
2026-11-22 10:00:02.000 7 INFO heat [-] Creating stack12
  with a second line
2026-11-22 10:00:03.000 7 ERROR heat [-] No
Traceback (most recent call last):
  ValueError
2026-11-22 10:00:04.000 7 DEBUG heat [-] stack1 is done
"""


@pytest.fixture
def cloud(tmp_path, monkeypatch):
    (tmp_path / 'logs').mkdir()
    found = types.SimpleNamespace(path=tmp_path)
    monkeypatch.setattr(failure_logs, 'clouds', [found])
    return found


def test_lines_about_its_stacks_and_troubles_are_chosen_with_what_follows():
    lines = failure_logs.select(LOG, re.compile(r'\bstack1\b'))
    expected = LOG.splitlines()
    assert lines == [*expected[:2], *expected[4:]]


def test_the_end_of_what_was_logged_since_the_test_began_is_shown(cloud):
    log = cloud.path / 'logs/heat.log'
    log.write_text('2026-11-22 10:00:00 ERROR of the test before\n')
    failure_logs.begin()
    with log.open('a') as stream:
        stream.write(LOG)
    (cloud.path / 'logs/swift.log').write_text(
        ''.join(f'2026-11-22 ERROR {number}\n' for number in range(1000))
    )
    stack = types.SimpleNamespace(id='1234', name='stack1')
    shown = dict(failure_logs.sections([stack]))
    assert len(shown) == 2
    heat = shown[f'end of {log}']
    assert 'stack1 is done' in heat
    assert 'the test before' not in heat
    swift = shown[f'end of {cloud.path / "logs/swift.log"}'].splitlines()
    assert len(swift) == failure_logs.LINES
    assert swift[-1].endswith('999')


def test_the_command_that_repeats_it_runs_that_test_alone(monkeypatch):
    monkeypatch.setitem(os.environ, 'FUNCTIONAL_PROFILE', 'production')
    nodeid = 'tests/functional/test_a.py::test_b[c d]'
    words = shlex.split(failure_logs.command(nodeid))
    assert words[0] == 'FUNCTIONAL_PROFILE=production'
    assert words[-1] == nodeid
