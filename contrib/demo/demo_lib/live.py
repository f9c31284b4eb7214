# SPDX-License-Identifier: Apache-2.0
"""An action that takes long: its output while it runs, and its end."""

from demo_lib import errors
from demo_lib import screen
from demo_lib import shell

_COMMAND = 'openstack software deployment'

# How many lines of its output to show before it is stopped; it has 120.
_LINES = 5

# The exit code of a command that waits for a run which is cancelled.
_CANCELLED = 5


class Live:
    """Runs REINDEX on the server of the stack ``web``, and stops it."""

    def __init__(self, shown: screen.Screen, typed: shell.Shell) -> None:
        self._screen = shown
        self._shell = typed

    def reindex(self) -> None:
        run = self._shell.run(
            f'{_COMMAND} run start REINDEX --stack web -f value -c id'
        ).strip()
        self._screen.say(
            'It takes two minutes. The server sends what it prints meanwhile:'
        )
        with self._shell.background(f'{_COMMAND} run logs {run} -f') as logs:
            lines = logs.stdout or ()
            expected = [f'part {number} of 120\n' for number in range(1, 121)]
            for line in lines:
                self._screen.output(line)
                if line in expected:
                    errors.require(
                        line == expected.pop(0),
                        f'The line before this one is missing: {line}',
                    )
                if len(expected) == 120 - _LINES:
                    break
            stopped = self._shell.run(
                f'{_COMMAND} run cancel {run} --wait -f value -c reason'
            )
            for line in lines:
                self._screen.output(line)
        errors.require(
            logs.returncode == _CANCELLED,
            f'The command that follows it has ended with {logs.returncode}',
        )
        errors.require(
            stopped.endswith('; stopped\n'),
            f'The server has not stopped it: {stopped}',
        )
