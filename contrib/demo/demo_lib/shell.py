# SPDX-License-Identifier: Apache-2.0
"""Commands, shown and run as a user types them."""

from collections.abc import Iterator
import contextlib
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

    def run(
        self,
        line: str,
        show: bool = True,
        progress: bool = False,
        patience: float = _PATIENCE,
    ) -> str:
        """Show and run a command; what it printed.

        :param line: the command; where it has a newline it continues below.
        :param show: whether to show what it prints.
        :param progress: whether to show what it says meanwhile, too.
        :param patience: seconds that it may take.
        :raises errors.Surprise: it failed; with all that it said.
        """
        done = self._done(line, patience)
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

    @contextlib.contextmanager
    def background(self, line: str) -> Iterator[subprocess.Popen[str]]:
        """Show a command, and run it in the background.

        Its caller must read what it prints to the end.
        """
        self._screen.command(f'{line} &')
        with subprocess.Popen(
            shlex.split(line),
            cwd=FOLDER,
            env=self._cloud.env(self._user),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                yield process
                process.wait(_PATIENCE)
            finally:
                process.kill()

    def _done(
        self, line: str, patience: float = _PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        self._screen.command(line)
        try:
            return subprocess.run(
                shlex.split(line),
                cwd=FOLDER,
                env=self._cloud.env(self._user),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=patience,
            )
        except subprocess.TimeoutExpired as exc:
            raise errors.TooSlow(
                f'This did not end within {patience:g} s: {line}'
            ) from exc
