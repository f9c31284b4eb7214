# SPDX-License-Identifier: Apache-2.0
"""Services as forks of processes that have imported them already.

Imports are most of what the start of a service costs, and the tests start
services hundreds of times. In `serving` a process waits for each of some
services, with its modules imported; what starts such a service meanwhile gets
a fork of that process. Where there is none, it starts the service itself.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import functools
import gc
import importlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
from typing import Any, NoReturn

from minicloud_lib import environment
from minicloud_lib import forking
from minicloud_lib import layout

#: Swift is not among them: its forks would share the state of eventlet.
SERVICES = ('keystone', 'heat', 'mistral')

#: In the environment: the folder with their sockets.
FOLDER = 'MINICLOUD_WARM'

_PACKAGE = 'minicloud_lib.services'


@contextlib.contextmanager
def serving(home: layout.Home) -> Iterator[None]:
    """Have the processes, and their folder in this one's environment."""
    if not home.python.exists():
        yield
        return
    with (
        tempfile.TemporaryDirectory(prefix='minicloud-') as name,
        contextlib.ExitStack() as ends,
    ):
        folder = pathlib.Path(name)
        (folder / 'python').write_text(str(home.python))
        for service in SERVICES:
            process = _start(home, folder, service)
            ends.callback(process.wait)
            ends.callback(process.kill)
        os.environ[FOLDER] = name
        ends.callback(os.environ.pop, FOLDER)
        yield


def _start(
    home: layout.Home, folder: pathlib.Path, service: str
) -> subprocess.Popen[bytes]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / service))
        # Calls that come before it has imported all wait here.
        listener.listen(100)
        return subprocess.Popen(
            [home.python, '-m', __name__, service, str(listener.fileno())],
            env={
                **environment.clean(home),
                'PYTHONPATH': str(layout.SOURCE),
            },
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def fork(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str],
    folder: pathlib.Path,
    output: int,
) -> int | None:
    """Run a command as a fork; return its PID, or None if there is no such.

    :param output: a file descriptor for what it prints.
    """
    place = os.environ.get(FOLDER)
    if not place or len(command) < 3:
        return None
    python, option, module, *arguments = map(os.fspath, command)
    package, _, service = module.rpartition('.')
    if option != '-m' or package != _PACKAGE:
        return None
    sockets = pathlib.Path(place)
    try:
        if (sockets / 'python').read_text() != python:
            return None
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(sockets / service))
            return forking.send(
                connection, arguments, env=env, folder=folder, files=[output]
            )
    except OSError:
        return None


# In the process that waits --------------------------------------------------


def _serve(service: str, listener: socket.socket) -> None:
    module = importlib.import_module(f'{_PACKAGE}.{service}')
    if threading.active_count() > 1:
        raise RuntimeError(f'{service}: a fork would lack its threads')
    gc.freeze()
    forking.serve(listener, functools.partial(_become, module))


def _become(module: Any, connection: socket.socket) -> NoReturn:
    """Run the service as it would run if it had been started."""
    request, files = forking.receive(connection, 1)
    os.setsid()
    for number in (1, 2):
        os.dup2(files[0], number)
    os.close(files[0])
    connection.sendall(b'%d\n' % os.getpid())
    connection.close()
    forking.adopt(request)
    tempfile.tempdir = None
    sys.argv[:] = [module.__file__, *request['arguments']]
    module.serving.run(module.main, *request['arguments'])


if __name__ == '__main__':
    _serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
