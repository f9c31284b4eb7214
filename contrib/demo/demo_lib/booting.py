# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo of a server of Nova."""

import pathlib

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import stack
from demo_lib.tour import Step

TITLE = (
    'heat-plugins: Nova starts, rebuilds and deletes a server of a stack, '
    'which runs its software'
)

_NAME = 'hello'

#: Seconds for a server to answer on a busy machine.
_PATIENCE = 150


class Tour:
    """A stack whose server is one of Nova's, on a cloud of its own."""

    def __init__(
        self, cloud: minicloud_client.Cloud, shown: screen.Screen
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._shell = shell.Shell(cloud, shown)

    @property
    def steps(self) -> list[Step]:
        return [
            Step('A cloud with Nova starts on this machine', self.start, 900),
            Step('A stack is created, with its server', self.create, 240),
            Step('What Nova and its server have got', self.look_inside, 120),
            Step(
                'The server is rebuilt, and answers again', self.rebuild, 240
            ),
            Step('The stack is deleted, with its server', self.delete, 120),
        ]

    def start(self) -> None:
        self._cloud.down(purge=True)
        self._cloud.up(plugin=shell.FOLDER, extras=['compute'])
        self._screen.say(
            'There are Keystone, Swift, Mistral, Glance, Nova and Heat with '
            f'heat-plugins, in {self._cloud.path}.'
        )

    def create(self) -> None:
        self._shell.run(
            f'openstack stack create {_NAME}\n'
            '-t contrib/demo/server.yaml -c id -c stack_status'
        )
        self._wait('CREATE')
        self._expect('Hello, world, from the image agent')

    def look_inside(self) -> None:
        self._shell.run('openstack server list')
        drive = self._disk / 'config-2/openstack/latest'
        self._screen.say("Nova's own code has written its config drive:")
        self._shell.run(f'ls {drive}')

    def rebuild(self) -> None:
        self._shell.run(
            f'openstack stack update {_NAME} --existing\n'
            '--parameter image=agent-supervised -c stack_status'
        )
        self._wait('UPDATE')
        self._expect('Hello, world, from the image agent-supervised')
        self._shell.run('openstack server list')

    def delete(self) -> None:
        self._shell.run(f'openstack stack delete --yes --wait {_NAME}')
        left = self._shell.run('openstack server list -f value')
        errors.require(not left.strip(), 'Nova still has a server')

    @property
    def _stack(self) -> stack.Stack:
        return stack.Stack(self._cloud, _NAME, 'server')

    @property
    def _disk(self) -> pathlib.Path:
        """The folder of the server."""
        server = str(self._stack.outputs()['server'])
        return self._cloud.agent(server).path

    def _wait(self, action: str) -> None:
        """Wait until the stack has completed an action."""
        seconds = self._stack.until(action, _PATIENCE)
        self._screen.say(f'{action}_COMPLETE after {seconds:.0f} s.')

    def _expect(self, greeting: str) -> None:
        answer = self._shell.run(
            f'openstack stack output show {_NAME} greeting\n'
            '-f value -c output_value'
        )
        errors.require(
            answer.strip() == greeting, 'The server has answered otherwise'
        )
