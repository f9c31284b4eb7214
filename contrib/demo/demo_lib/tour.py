# SPDX-License-Identifier: Apache-2.0
"""The steps of the demo, in their order.

Each is announced in a line, shows what really happens, and raises
`errors.Surprise` if that is not what was announced.
"""

from collections.abc import Callable
import dataclasses
import time

import minicloud_client

from demo_lib import backups
from demo_lib import errors
from demo_lib import evidence
from demo_lib import live
from demo_lib import news
from demo_lib import screen
from demo_lib import server
from demo_lib import shell
from demo_lib import stack
from demo_lib import watch

_SOFTWARE = 'contrib/examples/software.yaml'

_LATER = 'Good morning, world'
_TOO_LONG = 'Good morning to everybody who has got up this early'
_SHORTER = 'Good morning, all'

#: For how long to show that deployments wait, in seconds.
_LOOK = 6


@dataclasses.dataclass(frozen=True)
class Step:
    """A step.

    :ivar title: the line that announces it.
    :ivar seconds: after which it has hung.
    """

    title: str
    run: Callable[[], None]
    seconds: int


class Tour:
    """A user's day with a stack, on a cloud of its own."""

    def __init__(
        self, cloud: minicloud_client.Cloud, shown: screen.Screen
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._shell = shell.Shell(cloud, shown)
        self._agent = cloud.agent('web')
        self._before: dict[str, list[str]] = {}
        self._watch: watch.Watch
        self._stack: stack.Stack
        self._news = news.News(cloud, shown, self._shell)
        self._backups = backups.Backups(shown, self._shell, self._agent)
        self._live = live.Live(shown, self._shell)

    @property
    def steps(self) -> list[Step]:
        return [
            Step(
                'A cloud starts on this machine, with a real Heat',
                self.start,
                900,
            ),
            Step(
                'A workflow is created, to run by the clock and on demand',
                self._news.schedule,
                120,
            ),
            Step(
                'A stack is created; its software waits for a server',
                self.create,
                240,
            ),
            Step('The server is switched on, and runs it', self.deploy, 240),
            Step(
                'An input changes, and the server runs it again',
                self.update,
                240,
            ),
            Step('A deployment fails, and says why', self.fail, 240),
            Step('The next update repairs it', self.repair, 240),
            Step(
                'The workflow runs: by hand, by its webhook, by the clock',
                self._news.run,
                240,
            ),
            Step(
                'A user runs an action that is no part of the life cycle',
                self.back_up,
                120,
            ),
            Step(
                'A user follows a long action live, and stops it',
                self.reindex,
                120,
            ),
            Step(
                'The clock runs it: a schedule of the template',
                self.back_up_at_night,
                240,
            ),
            Step('Everything is deleted, without leftovers', self.delete, 240),
        ]

    def start(self) -> None:
        begun = time.monotonic()
        # What an earlier demo has left, with KEEP=1 or after a failure.
        self._cloud.down(purge=True)
        self._cloud.up(plugin=shell.FOLDER)
        spent = time.monotonic() - begun
        self._screen.say(
            f'After {spent:.0f} s there are Keystone, Swift, Mistral and '
            f'Heat, in {self._cloud.path}.'
        )
        served = self._cloud.resource_classes()
        types = evidence.our_types()
        errors.require(types, 'setup.cfg names no resource types')
        for name in types:
            errors.require(
                served.get(name, '').startswith('heat_plugins.'),
                f'{name} is served by {served.get(name)}, not by heat-plugins',
            )
        short = ', '.join(name.rpartition('::')[2] for name in types)
        self._screen.say(
            f'Heat has loaded the {len(types)} types of heat-plugins: {short}.'
        )
        self._before = evidence.left_over(self._cloud)

    def create(self) -> None:
        self._shell.run(
            f'openstack stack create -t {_SOFTWARE} web'
            '\n-f value -c stack_status'
        )
        self._stack = stack.Stack(self._cloud, 'web', 'web_server')
        self._watch = watch.Watch(
            self._cloud, self._screen, self._stack, self._agent
        )
        since = self._first_listing()
        self._screen.say(
            'The server is off, so its software waits. Heat polls Swift for '
            'the results:'
        )
        self._watch.hold(_LOOK)
        self._shell.run(
            'openstack stack resource list web'
            '\n-c resource_name -c resource_type -c resource_status'
        )
        asked = self._cloud.swift_requests(since)
        seconds = time.time() - since
        # Another one may have come since.
        listings = evidence.listings(self._cloud, self._stack.id, since)
        others = [one for one in asked if one not in listings]
        errors.require(
            not others,
            f'Swift has seen more than listings of the container: {others}',
        )
        self._screen.say(
            f'In these {seconds:.0f} s Swift has seen {len(asked)} requests, '
            'each of them a listing of one container.'
        )
        statuses = {
            one['resource_status']
            for one in self._stack.deployments().values()
        }
        errors.require(
            statuses == {'CREATE_IN_PROGRESS', 'INIT_COMPLETE'},
            f'The deployments do not wait, but are {statuses}',
        )

    def _first_listing(self) -> float:
        """Wait until Heat has started to look for a signal; when it did."""
        deadline = time.monotonic() + 30
        while True:
            found = evidence.listings(self._cloud, self._stack.id)
            if found:
                return float(found[0]['time'])
            if time.monotonic() > deadline:
                raise errors.TooSlow(
                    'Heat has not polled for a signal within 30 s; the stack '
                    f'is {self._stack.status}'
                )
            time.sleep(0.2)

    def deploy(self) -> None:
        self._shell.run(
            'minicloud agent start web --stack web --resource web_server'
            '\n--supervised'
        )
        self._screen.say(
            'Now os-collect-config and heat-agents run, as they do on a '
            'server in the field, with heat-config-supervisor.'
        )
        runs = self._watch.until('CREATE_COMPLETE', 120)
        self._require_runs(
            runs, {('page', 'CREATE'), ('inspection', 'CREATE')}
        )
        self._screen.say('What they have sent are the outputs of the stack:')
        for output in ('said', 'checksum', 'actions'):
            self._show_output(output)
        actions = self._stack.outputs()['actions']
        errors.require(
            actions == ['CREATE', 'UPDATE', 'BACKUP', 'REINDEX', 'DELETE'],
            f'The component offers {actions}',
        )

    def update(self) -> None:
        checksum = self._stack.outputs()['checksum']
        self._update(f'greeting={_LATER}')
        runs = self._watch.until('UPDATE_COMPLETE', 120)
        self._require_runs(
            runs, {('page', 'UPDATE'), ('inspection', 'UPDATE')}
        )
        said = self._show_output('said')
        errors.require(_LATER in said, f'The output is still {said!r}')
        errors.require(
            self._stack.outputs()['checksum'] != checksum,
            'The checksum is that of the page before',
        )

    def fail(self) -> None:
        self._screen.say('This greeting is longer than the page has room for.')
        self._update(f'greeting={_TOO_LONG}')
        self._watch.until('UPDATE_FAILED', 120)
        told = self._shell.run('openstack stack failures list web')
        for part in ('error output "problem" has a value', 'characters of 40'):
            errors.require(part in told, f'It does not say {part!r}')

    def repair(self) -> None:
        before = self._stack.deployments()
        self._update(f'greeting={_SHORTER}')
        runs = self._watch.until('UPDATE_COMPLETE', 120)
        self._require_runs(
            runs, {('page', 'UPDATE'), ('inspection', 'UPDATE')}
        )
        after = self._stack.deployments()
        for name, one in before.items():
            errors.require(
                after[name]['physical_resource_id']
                == one['physical_resource_id'],
                f'{name} was replaced',
            )
        self._screen.say('The failed deployment was repeated, not replaced.')
        said = self._show_output('said')
        errors.require(_SHORTER in said, f'The output is {said!r}')

    def back_up(self) -> None:
        self._backups.by_hand(self._watch)

    def reindex(self) -> None:
        self._live.reindex()
        self._watch.tell()

    def back_up_at_night(self) -> None:
        self._backups.by_clock(self._watch, self._stack)

    def delete(self) -> None:
        self._backups.forget()
        self._shell.run('openstack stack delete --yes web news')
        runs = self._watch.until('DELETE_COMPLETE', 120)
        self._require_runs(runs, {('page', 'DELETE')})
        folder = self._agent.path / 'tmp/web'
        errors.require(not folder.exists(), f'The page is still in {folder}')
        self._wait_for_no_stacks()
        after = evidence.left_over(self._cloud)
        for kind, found in after.items():
            errors.require(
                found == self._before[kind],
                f'Of each {kind} there are still {found}, '
                f'and were {self._before[kind]}',
            )
        self._screen.say(
            'Heat, Swift, Keystone and Mistral have no leftovers: no '
            + ', no '.join(after)
            + '.'
        )

    def _wait_for_no_stacks(self) -> None:
        session = self._cloud.session('demo')
        deadline = time.monotonic() + 60
        while True:
            answer = session.get('orchestration', '/stacks')
            errors.require(answer.ok, f'Heat answers {answer}')
            names = [one['stack_name'] for one in answer.json()['stacks']]
            if not names:
                return
            if time.monotonic() > deadline:
                raise errors.TooSlow(f'These stacks are still there: {names}')
            time.sleep(0.5)

    def _update(self, parameter: str) -> None:
        self._shell.run(
            'openstack stack update web --existing -f value -c stack_status'
            f"\n--parameter '{parameter}'"
        )

    def _show_output(self, name: str) -> str:
        return self._shell.run(
            f'openstack stack output show web {name} -f value -c output_value'
        )

    def _require_runs(
        self, runs: list[server.Run], expected: set[tuple[str, str]]
    ) -> None:
        """Check that the agent has run this, each once, with success."""
        found = sorted((run.name, run.action) for run in runs)
        errors.require(
            found == sorted(expected),
            f'The agent has run {found}, and not {sorted(expected)}',
        )
        for run in runs:
            code = run.result.get('deploy_status_code')
            errors.require(code == 0, f'{run.name} has ended with {code}')
