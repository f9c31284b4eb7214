# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo of a cloud without an object store and Mistral."""

import time

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import stack
from demo_lib.tour import Step

TITLE = (
    'heat-plugins: a cloud without an object store and Mistral deploys '
    'software, and runs actions and schedules'
)

_COMMAND = 'openstack software deployment'

#: Seconds for a server to answer on a busy machine.
_PATIENCE = 150


class Tour:
    """What such a cloud can do, and what it says of the rest."""

    def __init__(
        self, cloud: minicloud_client.Cloud, shown: screen.Screen
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._shell = shell.Shell(cloud, shown)

    @property
    def steps(self) -> list[Step]:
        return [
            Step(
                'A cloud starts with a real Heat, without object store and '
                'Mistral',
                self.start,
                900,
            ),
            Step('A server is switched on, and runs CREATE', self.create, 240),
            Step('Actions and scripts run on the live server', self.run, 240),
            Step('A schedule runs now', self.schedule, 120),
            Step('What needs the object store says so', self.refuse, 60),
            Step('The stack is deleted', self.delete, 120),
        ]

    def start(self) -> None:
        self._cloud.down(purge=True)
        self._cloud.up(plugin=shell.FOLDER, omitted=['mistral', 'swift'])
        self._shell.run(
            f'{_COMMAND} feature list -c Feature -c "Has services"'
        )

    def create(self) -> None:
        self._shell.run(
            'openstack stack create -t contrib/examples/software.yaml web'
            '\n-f value -c stack_status'
        )
        self._shell.run(
            'minicloud agent start web --stack web --resource web_server'
        )
        seconds = self._web.until('CREATE', _PATIENCE)
        self._screen.say(
            f'CREATE_COMPLETE after {seconds:.0f} s: the server has sent its '
            'results to heat-api-cfn.'
        )

    def run(self) -> None:
        for what in ('BACKUP --stack web', '--stack web -- uptime'):
            first, _, script = what.partition(' -- ')
            told = self._shell.run(
                f'{_COMMAND} run start {first} --wait'
                '\n-c state -c reason -c outputs'
                + (f' -- {script}' if script else ''),
                progress=True,
            )
            errors.require('complete' in told, 'The run is not complete')

    def schedule(self) -> None:
        self._shell.run(
            f'{_COMMAND} schedule run web nightly'
            '\n-c when -c last_at -c last_outcome'
        )
        # The limit of the step ends this at last.
        while (night := self._web.outputs()['night']).endswith('ing'):
            time.sleep(0.5)
        errors.require(night == 'complete', f'Its run is {night}')
        self._shell.run(
            f'{_COMMAND} run list --stack web'
            '\n-c Action -c State -c Created -c Duration'
        )

    def refuse(self) -> None:
        told = self._shell.refused(
            f'{_COMMAND} run start REINDEX --stack web --follow'
        )
        errors.require('no object store' in told, 'It does not say why')

    def delete(self) -> None:
        runs = f'{_COMMAND} run'
        listed = self._shell.run(f'{runs} list -f value -c ID', show=False)
        self._shell.run(f'{runs} delete {" ".join(listed.split())}')
        self._shell.run('openstack stack delete --yes --wait web')

    @property
    def _web(self) -> stack.Stack:
        return stack.Stack(self._cloud, 'web', 'web_server')
