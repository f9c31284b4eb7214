# SPDX-License-Identifier: Apache-2.0
"""The pages "First success" and "Tutorial" work, as they are typed.

The one takes what a release has, without a clone. The other brings its cloud
up and down, and what it leaves in Mistral goes with that: a cloud of its own.
"""

import os
import subprocess
import sys

import pytest

from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import servers
from tests.unit import environments

pytestmark = [conftest.signed_by_heat, conftest.trusted, pytest.mark.long]


@pytest.fixture
def cleared(cloud):
    """Delete the page's stack, and the container that Heat leaves of it."""
    yield
    demo = cloud.session()

    def stacks():
        answer = demo.get('orchestration', '/stacks?name=first')
        return answer.json()['stacks']

    for each in stacks():
        demo.delete('orchestration', f'/stacks/first/{each["id"]}')
    base.until(lambda: not stacks())
    for each in demo.get('object-store', '?format=json').json() or ():
        if each['name'].startswith('first-server-'):
            base.delete_container(demo, each['name'])


def test_every_command_of_the_page_works(cloud, cleared, tmp_path):
    # A release's files, and an environment in ``venv``.
    laptop = tmp_path
    made = environments.Environment(laptop / 'venv')
    for name, module in (
        ('pip', 'pip'),
        ('openstack', 'openstackclient.shell'),
    ):
        program = made.prefix / 'bin' / name
        program.write_text(f'#!/bin/sh\nexec {made.python} -m {module} "$@"\n')
        program.chmod(0o700)
    for path in (environments.wheel(), environments.sdist()):
        (laptop / path.name).symlink_to(path)
    install, create, join, *rest = pages.blocks(pages.read('first-success'))
    machine = servers.machine(cloud, 'first-machine')

    env = cloud.env()
    env['PATH'] = f'{laptop}/venv/bin:{env["PATH"]}'
    # All that the wheel needs is there.
    env['PIP_NO_INDEX'] = '1'

    def typed(*blocks):
        script = ''.join(blocks).replace(
            '/opt/heat-plugins', f'{laptop}/machine'
        )
        return servers.type_script(script, laptop, env, machine.path)

    where = typed(
        install, 'python -c "import heat_plugins as p; print(p.__file__)"\n'
    )
    assert where.splitlines()[-1].startswith(str(laptop))
    typed(create)
    # "The stack does not have its URL yet: repeat the command".
    typed(f'until {{ {join} }}; do sleep 1; done')
    with machine:
        said = typed(*rest)
    assert os.uname().nodename in said.splitlines()
    assert 'load average' in said
    hello = (laptop / 'hello.yaml').read_text()
    assert hello == (base.ROOT / 'contrib/examples/hello.yaml').read_text()


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


def test_every_command_of_the_tutorial_works(own_cloud, tmp_path):
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
