# SPDX-License-Identifier: Apache-2.0
"""The commands of the tutorial work, one after the other, in one shell.

The page brings its cloud up and down, and what it leaves in Mistral goes with
that, so the cloud is one of this test's own.
"""

import subprocess
import sys

import pytest

from tests import pages
from tests.functional import base
from tests.functional import conftest

pytestmark = pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='the page starts the profile small'
)


def script():
    """Return what the page lets its reader type; it ends at an error."""
    lines = ['set -e', 'trap \'echo "Failed: $BASH_COMMAND" >&2\' ERR']
    for block in pages.blocks(pages.read('tutorial')):
        for command in block.splitlines():
            if 'got up this early' in command:
                # As the page says.
                command = f'if {command}; then exit 1; fi'
            elif command.startswith('openstack object list'):
                # "After a few seconds", says the page.
                command = f'until {command}; do sleep 1; done'
            lines.append(command)
    return '\n'.join(lines)


@pytest.fixture
def own_cloud(request):
    yield from conftest.clouds(request, 'tutorial', plugin=None)


@pytest.mark.long
@pytest.mark.timeout(480)
def test_every_command_of_the_page_works(own_cloud, tmp_path):
    # The page writes a file to where its reader is.
    (tmp_path / 'contrib').symlink_to(base.ROOT / 'contrib')
    # The Python with which the reader has installed the mini cloud.
    python = tmp_path / 'bin/python3'
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o700)
    env = own_cloud.env()
    env['PATH'] = f'{python.parent}:{env["PATH"]}'
    said = tmp_path / 'said'
    # To a file: whatever the page leaves running would hold a pipe open.
    with said.open('w') as file:
        done = subprocess.run(
            ['bash', '-c', script()],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=420,
        )
    assert done.returncode == 0, said.read_text()
    for part in ('UPDATE_FAILED', 'part 3 of 120', 'begun; stopped'):
        assert part in said.read_text()
    assert 'part 120 of 120' not in said.read_text()
    assert (tmp_path / 'web.svg').exists()
