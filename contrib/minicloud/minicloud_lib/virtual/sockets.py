# SPDX-License-Identifier: Apache-2.0
"""Talk to QEMU (QMP) and to the agent that QEMU has inside of a machine.

Both take a JSON object per command, and answer with one per line.
"""

import base64
from collections.abc import Iterator
import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import socket
import time
from typing import Any

from minicloud_lib import errors

#: How often the end of a command inside of a machine is asked for.
_POLL_SECONDS = 0.2

_numbers = itertools.count(1)


class Silent(errors.MinicloudError):
    """A socket does not answer: the machine, or its agent, is down."""


class Refused(errors.MinicloudError):
    """A command was answered with an error."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """How a command ended inside of a machine."""

    code: int
    stdout: str
    stderr: str


class _Connection:
    """A socket of a machine, with a time limit for each answer."""

    def __init__(self, path: pathlib.Path, seconds: float) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(seconds)
        # The path of a socket is limited to 108 bytes, ours are not.
        try:
            folder = os.open(path.parent, os.O_PATH)
        except OSError as error:
            raise Silent(f'{path}: {error.strerror}') from error
        try:
            self._socket.connect(f'/proc/self/fd/{folder}/{path.name}')
        except OSError as error:
            self._socket.close()
            raise Silent(f'{path}: {error}') from error
        finally:
            os.close(folder)
        self._lines = self._socket.makefile('rb')

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def send(self, message: bytes) -> None:
        try:
            self._socket.sendall(message)
        except OSError as error:
            raise Silent(f'{self._path}: {error}') from error

    def read(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except OSError as error:
            raise Silent(f'{self._path}: {error}') from error
        if not line:
            raise Silent(f'{self._path}: closed')
        # The answer to a sync begins with a byte that JSON never has.
        found: dict[str, Any] = json.loads(line.lstrip(b'\xff'))
        return found

    def command(self, name: str, arguments: dict[str, Any]) -> Any:
        """Send a command; return its result.

        :raises Refused: if it is answered with an error.
        """
        message = {'execute': name, 'arguments': arguments}
        self.send(json.dumps(message).encode() + b'\n')
        while True:
            answer = self.read()
            if 'return' in answer:
                return answer['return']
            if 'error' in answer:
                raise Refused(f'{name}: {answer["error"]["desc"]}')
            # All else is an event, which no caller waits for.


class Monitor:
    """Commands to the QEMU of a machine."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    def execute(
        self, command: str, /, seconds: float = 30, **arguments: Any
    ) -> Any:
        """Let QEMU execute a command of QMP; return its result."""
        with contextlib.closing(_Connection(self._path, seconds)) as found:
            found.read()
            found.command('qmp_capabilities', {})
            return found.command(command, arguments)


class Inside:
    """Commands inside of a machine, as root, whatever its network does."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def _connected(self, seconds: float) -> Iterator[_Connection]:
        with contextlib.closing(_Connection(self._path, seconds)) as found:
            # What the agent was told, and has not answered, by others.
            number = next(_numbers) + os.getpid() * 1000
            sync = {
                'execute': 'guest-sync-delimited',
                'arguments': {'id': number},
            }
            found.send(b'\xff' + json.dumps(sync).encode() + b'\n')
            while found.read().get('return') != number:
                pass
            yield found

    def answers(self, seconds: float = 2) -> bool:
        try:
            with self._connected(seconds):
                return True
        except (Silent, ValueError):
            return False

    def set_clock(self, seconds_since_epoch: float) -> None:
        with self._connected(30) as found:
            found.command(
                'guest-set-time', {'time': int(seconds_since_epoch * 10**9)}
            )

    def run(
        self, command: str, seconds: float = 60, stdin: bytes = b''
    ) -> Result:
        """Run a command of the shell, and wait for its end.

        :raises Silent: if the agent does not answer, or the command runs
            for longer than that.
        """
        deadline = time.monotonic() + seconds
        with self._connected(min(seconds, 30)) as found:
            arguments = {
                'path': '/bin/sh',
                'arg': ['-c', command],
                'capture-output': True,
                'input-data': base64.b64encode(stdin).decode(),
            }
            pid = found.command('guest-exec', arguments)['pid']
            while True:
                state = found.command('guest-exec-status', {'pid': pid})
                if state['exited']:
                    break
                if time.monotonic() > deadline:
                    raise Silent(f'not done in {seconds:g} s: {command}')
                time.sleep(_POLL_SECONDS)
        return Result(
            # None for a command that a signal has ended.
            code=state.get('exitcode', -1),
            stdout=_text(state.get('out-data', '')),
            stderr=_text(state.get('err-data', '')),
        )


def _text(data: str) -> str:
    return base64.b64decode(data).decode('utf-8', 'replace')
