# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo of plans, in their order.

Each is announced in a line, shows what really happens, and raises
`errors.Surprise` if that is not what was announced.
"""

import contextlib
import json
import time

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import tour

#: What the demo is about.
TITLE = (
    'heat-plugins: templates become a plan, which is chosen, set and '
    'deployed step by step'
)

_PLAN = 'openstack deployment plan'

#: Seconds until servers have answered, on a busy machine.
_PATIENCE = 180


class Tour:
    """An operator's day with a plan, on a cloud of its own."""

    def __init__(
        self, cloud: minicloud_client.Cloud, shown: screen.Screen
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._shell = shell.Shell(cloud, shown)
        self._admins = shell.Shell(cloud, shown, 'admin')

    @property
    def steps(self) -> list[tour.Step]:
        return [
            tour.Step(
                'A cloud starts on this machine, with a real Heat',
                self.start,
                900,
            ),
            tour.Step('Machines become nodes', self.register, 240),
            tour.Step('Templates become a plan', self.create, 180),
            tour.Step(
                'The content of the deployment is chosen', self.choose, 240
            ),
            tour.Step('Parameters are set, and checked', self.set, 300),
            tour.Step('The machines for it are checked', self.check, 240),
            tour.Step('The plan is deployed to two servers', self.deploy, 480),
            tour.Step('It is changed, and deployed again', self.change, 480),
            tour.Step('All of it is deleted', self.delete, 300),
        ]

    def start(self) -> None:
        self._cloud.down(purge=True)
        self._cloud.minicloud('install', '--with', 'baremetal')
        self._cloud.up(extras=['baremetal'])
        self._screen.say(
            'Keystone, Swift, Mistral, Heat and Ironic are up. The files of a '
            'shop lie in contrib/examples/plan.'
        )

    def register(self) -> None:
        rack = 'contrib/examples/nodes/rack.yaml'
        self._admins.run(
            f'{_PLAN} node register {rack}\n'
            '--dry-run -c Name -c Action -c Changes'
        )
        self._screen.say(
            'Nothing has changed yet. An administrator may do it; a workflow '
            'of Mistral does it for him.'
        )
        self._admins.run(
            f'{_PLAN} node register {rack}\n--provide -c Name -c Action'
        )
        found = self._admins.run(
            f'{_PLAN} node list -c Name -c Driver -c State'
        )
        errors.require(
            found.count('available') == 2, 'Not both nodes are available'
        )

    def create(self) -> None:
        self._shell.run(f'{_PLAN} create shop --from contrib/examples/plan')
        self._screen.say(
            'Its password was made just now. It is in the plan, and no '
            'command prints it.'
        )

    def choose(self) -> None:
        self._shell.run(
            f'{_PLAN} capability list shop -c Group -c Environment -c Enabled'
        )
        self._fails(
            f'{_PLAN} capability set shop --enable environments/french.yaml',
            'The shop speaks one language; so English goes at the same time.',
        )
        self._shell.run(
            f'{_PLAN} capability set shop\n'
            '--enable environments/french.yaml '
            '--disable environments/english.yaml'
        )

    def set(self) -> None:
        self._fails(
            f'{_PLAN} parameter set shop WebCount=12',
            'Nothing was written: Heat has told what the templates allow.',
        )
        self._shell.run(f'{_PLAN} parameter set shop WebCount=2')
        self._shell.run(
            f'{_PLAN} parameter list shop -c Name -c Value -c Origin'
        )

    def check(self) -> None:
        self._shell.run(
            f'{_PLAN} validation list shop -c Validation -c Name -c Groups'
        )
        self._shell.run(
            f'{_PLAN} validation run shop\n'
            '--group before -c Validation -c State -c Duration'
        )
        self._screen.say(
            'Ansible did so, for Mistral. A plan may name groups that must '
            'pass before each deployment.'
        )

    def deploy(self) -> None:
        self._shell.run(f'{_PLAN} deploy shop --no-wait', show=False)
        self._screen.say(
            'A workflow of Mistral waits for the stack, which waits for its '
            'servers. Here they come.'
        )
        for number in range(2):
            stack_id = self._server_stack(number)
            self._shell.run(
                f'minicloud agent start web{number}\n'
                f'--stack {stack_id} --resource server',
                show=False,
            )
        self._shell.run(f'{_PLAN} status shop --wait -c status -c current')
        self._greeted('Bonjour')

    def change(self) -> None:
        self._shell.run(
            f'{_PLAN} capability set shop\n'
            '--enable environments/english.yaml '
            '--disable environments/french.yaml',
            show=False,
        )
        self._shell.run(f'{_PLAN} diff shop')
        self._shell.run(f'{_PLAN} deploy shop -c status -c current')
        self._greeted('Hello')

    def delete(self) -> None:
        self._fails(
            f'{_PLAN} delete shop', 'A plan is not deleted under its stack.'
        )
        self._shell.run('openstack stack delete --yes --wait shop')
        self._shell.run(f'{_PLAN} delete shop')
        found = self._shell.run(f'{_PLAN} list -f json')
        errors.require(json.loads(found) == [], 'A plan is left')

    def _fails(self, line: str, otherwise: str) -> None:
        """Show a command that is refused, and say what that means."""
        self._shell.refused(line)
        self._screen.say(otherwise)

    def _greeted(self, word: str) -> None:
        found = self._shell.run(
            'openstack stack output show shop greetings '
            '-f value -c output_value'
        )
        errors.require(
            found.count(word) == 2, f'Not both servers have said {word}'
        )

    def _server_stack(self, number: int) -> str:
        """Wait for the nested stack of a server; return its id."""
        session = self._cloud.session('demo')
        path = '/stacks/shop/resources?nested_depth=2'
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            answer = session.get('orchestration', path)
            found = answer.json()['resources'] if answer.ok else []
            for one in found:
                with contextlib.suppress(KeyError):
                    if (
                        one['resource_name'] == str(number)
                        and one['physical_resource_id']
                    ):
                        return str(one['physical_resource_id'])
            time.sleep(1)
        raise errors.TooSlow(f'Heat has made no server {number}')
