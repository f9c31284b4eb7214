# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo of a server that boots."""

import time

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import stack
from demo_lib.tour import Step

TITLE = (
    'heat-plugins: a virtual machine of Debian boots as a server of a stack, '
    'and runs its software'
)

_NAME = 'hello'

#: Seconds for an image, or for a server to answer on a busy machine.
_PATIENCE = 900


class Tour:
    """A stack whose server is a virtual machine, on a cloud of its own."""

    def __init__(
        self, cloud: minicloud_client.Cloud, shown: screen.Screen
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._shell = shell.Shell(cloud, shown)

    @property
    def steps(self) -> list[Step]:
        return [
            Step('A cloud starts on this machine', self.start, 900),
            Step('There is an image for servers', self.build, 1200),
            Step('A stack is created, and its server boots', self.create, 990),
            Step('What has happened on the server', self.look_inside, 120),
            Step('The stack is deleted', self.delete, 120),
        ]

    def start(self) -> None:
        self._cloud.down(purge=True)
        self._cloud.up(plugin=shell.FOLDER)
        self._screen.say(
            'There are Keystone, Swift, Mistral and Heat with heat-plugins, '
            f'in {self._cloud.path}.'
        )

    def build(self) -> None:
        self._screen.say('The first time this takes some minutes.')
        self._shell.run(
            'minicloud server build', progress=True, patience=_PATIENCE
        )
        self._screen.say(
            'A machine has booted from it, and waits for its user data. Each '
            'server starts from this state.'
        )

    def create(self) -> None:
        begun = time.monotonic()
        self._shell.run(
            f'openstack stack create {_NAME}\n'
            '-t contrib/examples/hello.yaml -c id -c stack_status'
        )
        self._shell.run(
            f'minicloud server start web\n--stack {_NAME} --resource server',
            progress=True,
            patience=_PATIENCE,
        )
        self._screen.say('It has the user data of an OS::Nova::Server.')
        found = stack.Stack(self._cloud, _NAME, 'server')
        while (status := found.status) == 'CREATE_IN_PROGRESS':
            if time.monotonic() > begun + _PATIENCE:
                raise errors.TooSlow(f'{_NAME} is {status}')
            time.sleep(1)
        errors.require(
            status == 'CREATE_COMPLETE', f'{_NAME} has become {status}'
        )
        self._screen.say(
            f'From the create to outputs: {time.monotonic() - begun:.0f} s.'
        )
        said = self._shell.run(
            f'openstack stack output show {_NAME} greeting\n'
            '-f value -c output_value'
        )
        errors.require(
            said.strip() == 'Hello, world, from web',
            'The server has answered something else',
        )

    def look_inside(self) -> None:
        for command in (
            'uname -a',
            'cloud-init --version',
            'journalctl -u os-collect-config | grep -F "Completed /usr"',
        ):
            self._shell.run(f"minicloud server run web '{command}'")

    def delete(self) -> None:
        self._shell.run('minicloud server stop web --remove')
        self._shell.run(f'openstack stack delete --yes --wait {_NAME}')
