# SPDX-License-Identifier: Apache-2.0
"""An action that is no part of the life cycle: by hand, and by the clock."""

import re
import time

import minicloud_client

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell
from demo_lib import stack
from demo_lib import watch

_RUN = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class Backups:
    """Runs BACKUP on the server of the stack ``web``."""

    def __init__(
        self,
        shown: screen.Screen,
        typed: shell.Shell,
        agent: minicloud_client.Agent,
    ) -> None:
        self._screen = shown
        self._shell = typed
        self._agent = agent

    def by_hand(self, watched: watch.Watch) -> None:
        self._shell.run('openstack software deployment action list web')
        self._shell.run(
            'openstack software deployment run start BACKUP --stack web'
            '\n--wait',
            progress=True,
        )
        watched.tell()
        self._require_backups(1)

    def by_clock(self, watched: watch.Watch, web: stack.Stack) -> None:
        self._screen.say(
            'The template has a schedule for every night. The next night is '
            'a minute away:'
        )
        self._shell.run(
            'openstack stack update web --existing -f value -c stack_status'
            "\n--parameter 'backups=* * * * *'"
        )
        watched.until('UPDATE_COMPLETE', 120)
        self._wait_for_a_night(watched, web)
        self._screen.say('heat-engine has started it. It is enough:')
        self._shell.run(
            'openstack software deployment schedule pause web nightly'
            '\n--note "the demo ends" -c when -c last_outcome -c paused'
        )
        listed = self._shell.run(
            'openstack software deployment run list --stack web'
            '\n-c ID -c Action -c State -c Duration'
        )
        latest = _RUN.findall(listed)[0]
        shown = self._shell.run(
            f'openstack software deployment run show {latest}'
        )
        errors.require(
            'schedule nightly' in shown, 'The clock has not started it'
        )
        self._require_backups(2)

    def forget(self) -> None:
        """Delete the runs, which outlive their stack."""
        runs = 'openstack software deployment run'
        listed = self._shell.run(f'{runs} list -f value -c ID')
        self._shell.run(f'{runs} delete {" ".join(listed.split())}')

    def _wait_for_a_night(
        self, watched: watch.Watch, web: stack.Stack
    ) -> None:
        """Wait until the schedule has run it."""
        begun = time.monotonic()
        while True:
            watched.tell()
            night = web.outputs()['night']
            errors.require(
                night in ('', 'starting', 'running', 'complete'),
                f'The nightly run ended wrongly: {night}',
            )
            # Not so late that the next one begins before the pause.
            if night == 'complete' and time.time() % 60 < 40:
                return
            spent = time.monotonic() - begun
            if spent > 180:
                raise errors.TooSlow(f'After 180 s the night is {night!r}')
            self._screen.wait(
                f'the run by the clock is {night or "not due"}', spent
            )
            time.sleep(0.5)

    def _require_backups(self, least: int) -> None:
        found = list((self._agent.path / 'tmp').glob('web-*/index.html'))
        errors.require(
            len(found) >= least,
            f'On the server there are only these backups: {found}',
        )
