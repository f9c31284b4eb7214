# SPDX-License-Identifier: Apache-2.0
"""Commands, shown and run as a user types them."""

import pathlib
import shlex
import subprocess

import minicloud_client

from demo_lib import errors
from demo_lib import screen

#: Where the commands are run: the folder that the user is in.
FOLDER = pathlib.Path(__file__).resolve().parents[3]

#: Seconds for one command.
_PATIENCE = 90


class Shell:
    """A shell in which the mini cloud's environment has been set.

    :param user: of the mini cloud.
    """

    def __init__(
        self,
        cloud: minicloud_client.Cloud,
        shown: screen.Screen,
        user: str = 'demo',
    ) -> None:
        self._cloud = cloud
        self._screen = shown
        self._user = user

    def run(self, line: str, show: bool = True, progress: bool = False) -> str:
        """Show and run a command; what it printed.

        :param line: the command; where it has a newline it goes on below.
        :param show: whether to show what it prints.
        :param progress: whether to show what it says meanwhile, too.
        :raises errors.Surprise: it failed; with all that it said.
        """
        done = self._done(line)
        if done.returncode:
            raise errors.Surprise(
                f'This ended with exit code {done.returncode}: {line}\n'
                f'{done.stdout}{done.stderr}'
            )
        if show:
            said = done.stderr if progress else ''
            self._screen.output(said + done.stdout)
        return done.stdout

    def refused(self, line: str) -> str:
        """Show and run a command that is refused; what it said.

        :raises errors.Surprise: it succeeded.
        """
        done = self._done(line)
        errors.require(done.returncode, f'This was not refused: {line}')
        self._screen.output(done.stderr)
        return done.stderr

    def _done(self, line: str) -> subprocess.CompletedProcess[str]:
        self._screen.command(line)
        try:
            return subprocess.run(
                shlex.split(line),
                cwd=FOLDER,
                env=self._cloud.env(self._user),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
            )
        except subprocess.TimeoutExpired as exc:
            raise errors.TooSlow(
                f'This did not end within {_PATIENCE} s: {line}'
            ) from exc
