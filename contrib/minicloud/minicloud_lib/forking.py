# SPDX-License-Identifier: Apache-2.0
"""A program as a fork of a process that has imported it already.

A process listens on a Unix socket. Who wants the program sends one request:
files, and in a line of JSON the arguments, the environment and the folder.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
import json
import os
import signal
import socket
import time
from typing import Any, NoReturn


def send(
    connection: socket.socket,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    folder: str | os.PathLike[str],
    files: Iterable[int],
) -> int | None:
    """Send a request; return the number that is the answer, None without."""
    socket.send_fds(connection, [b'!'], [*files])
    request = {
        'arguments': arguments,
        'environment': dict(env),
        'folder': os.fspath(folder),
    }
    connection.sendall(json.dumps(request).encode() + b'\n')
    answer = connection.makefile().readline()
    return int(answer) if answer else None


def serve(
    listener: socket.socket,
    attend: Callable[[socket.socket], NoReturn],
) -> None:
    """Fork for each connection, until the parent has ended.

    :param attend: serves a connection, in the fork.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getppid()
    listener.settimeout(5)
    while os.getppid() == parent:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            continue
        if not os.fork():
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            attend(connection)
        connection.close()


def receive(
    connection: socket.socket, number: int
) -> tuple[dict[str, Any], list[int]]:
    """Return a request and its files.

    :param number: of files.
    """
    _, files, _, _ = socket.recv_fds(connection, 1, number)
    request = b''
    while not request.endswith(b'\n'):
        request += connection.recv(1 << 16)
    return json.loads(request), files


def adopt(request: Mapping[str, Any]) -> None:
    """Take the folder and the environment of a request."""
    os.chdir(request['folder'])
    os.environ.clear()
    os.environ.update(request['environment'])
    time.tzset()
