# SPDX-License-Identifier: Apache-2.0
"""Watch a stack and its server until the stack is where it should be."""

import time

import minicloud_client

from demo_lib import errors
from demo_lib import evidence
from demo_lib import screen
from demo_lib import server
from demo_lib import stack

_PAUSE = 0.4

# How long the last PUT may take to show in Swift's log, in seconds.
_LOG_DELAY = 5


class Watch:
    """Tells each thing that happens, once.

    :param agent: what plays the server.
    """

    def __init__(
        self,
        cloud: minicloud_client.Cloud,
        shown: screen.Screen,
        watched: stack.Stack,
        agent: minicloud_client.Agent,
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._stack = watched
        self._agent = agent
        self._signals: set[str] = set()
        # The deployments in progress, and since when.
        self._waiting: dict[str, float] = {}
        #: What the agent has run, by signal.
        self.runs: dict[str, server.Run] = {}

    def until(self, status: str, seconds: float) -> list[server.Run]:
        """Watch until the stack has a status.

        :returns: what the agent has run meanwhile.
        :raises errors.Surprise: it has come to another status.
        """
        known = set(self.runs)
        begun = time.monotonic()
        while True:
            # First, so that what led to it is told before it.
            reached = self._stack.status
            self.tell()
            spent = time.monotonic() - begun
            if not reached.endswith('_IN_PROGRESS'):
                break
            if spent > seconds:
                raise errors.TooSlow(
                    f'Stack {self._stack.name} is {reached} after '
                    f'{spent:.0f} s'
                )
            waits = '; '.join(self._stack.waits())
            self._screen.wait(waits or f'the stack is {reached}', spent)
            time.sleep(_PAUSE)
        errors.require(
            reached == status,
            f'Stack {self._stack.name} is {reached}, and not {status}',
        )
        self._screen.say(
            f'Stack {self._stack.name} is {reached} after {spent:.1f} s.'
        )
        deadline = time.monotonic() + _LOG_DELAY
        while not self.runs.keys() <= self._signals:
            if time.monotonic() > deadline:
                raise errors.Surprise('A result has not reached Swift')
            time.sleep(_PAUSE)
            self.tell()
        return [run for key, run in self.runs.items() if key not in known]

    def hold(self, seconds: float) -> None:
        """Watch for some time."""
        begun = time.monotonic()
        while (spent := time.monotonic() - begun) < seconds:
            self.tell()
            self._screen.wait('; '.join(self._stack.waits()), spent)
            time.sleep(_PAUSE)

    def tell(self) -> None:
        """Say what has been run, has reached Swift, and was waited for."""
        runs = server.runs(self._agent.path)
        for signal, run in runs.items():
            if signal not in self.runs:
                self.runs[signal] = run
                self._screen.say(str(run) + '.')
        signals = evidence.signals(self._cloud, self._stack.id)
        for signal, request in signals.items():
            if signal in self._signals or signal not in self.runs:
                continue
            evidence.check_signal(request)
            self._signals.add(signal)
            self._screen.say(
                f'Its PUT has reached Swift: {request["status"]}, '
                f'{request["received"]} bytes, by {request["agent"]}, '
                'no credentials.'
            )
        self._tell_waits()

    def _tell_waits(self) -> None:
        now = time.monotonic()
        for name, one in self._stack.deployments().items():
            status = one['resource_status']
            if status.endswith('_IN_PROGRESS'):
                self._waiting.setdefault(name, now)
            elif name in self._waiting:
                spent = now - self._waiting.pop(name)
                self._screen.say(
                    f'{name} is {status}: it has waited {spent:.0f} s.'
                )
