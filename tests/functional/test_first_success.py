# SPDX-License-Identifier: Apache-2.0
"""The page "First success" works with what a release has, without a clone."""

import os

import pytest

from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import servers
from tests.unit import environments

pytestmark = [conftest.signed_by_heat, conftest.trusted, pytest.mark.long]


@pytest.fixture
def cleared(cloud):
    """Delete the page's stack, and the container that Heat leaves of it.

    A run that was cut short may have left them, too.
    """
    demo = cloud.session()
    _clear(demo)
    yield
    _clear(demo)


def _clear(demo):
    def stacks():
        answer = demo.get('orchestration', '/stacks?name=first')
        return answer.json()['stacks']

    for each in stacks():
        demo.delete('orchestration', f'/stacks/first/{each["id"]}')
    base.until(lambda: not stacks())
    for each in demo.get('object-store', '?format=json').json() or ():
        if each['name'].startswith('first-server-'):
            base.delete_container(demo, each['name'])


@pytest.mark.timeout(300)
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
    # "The server is not complete yet: repeat the command", says the page.
    typed(f'until {{ {join} }}; do sleep 1; done')
    with machine:
        said = typed(*rest)
    assert os.uname().nodename in said.splitlines()
    assert 'load average' in said
    hello = (laptop / 'hello.yaml').read_text()
    assert hello == (base.ROOT / 'contrib/examples/hello.yaml').read_text()
