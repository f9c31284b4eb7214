# SPDX-License-Identifier: Apache-2.0
"""The command ``openstack``, as a fork of a process that has it imported.

Started from its file it takes 1.5 s of processor time, nearly all of them for
imports, and the tests call it hundreds of times. So a server imports it once;
`call` is what stands in PATH in its place. Each call is a process with the
caller's arguments, environment, folder and standard streams; what it gets of
signals, and how it ends, goes through the socket.
"""

import atexit
from collections.abc import Iterator
import contextlib
import functools
import logging
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from typing import Any, NoReturn

# The command is started without it.
sys.path.insert(
    0, str(pathlib.Path(__file__).parents[2] / 'contrib/minicloud')
)

from minicloud_lib import forking

#: In the environment: the folder with the command, to be first in PATH.
FOLDER = 'FUNCTIONAL_OPENSTACK'

_PASSED_ON = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def serving() -> Iterator[None]:
    """Have the command in a folder named in this process's environment."""
    with tempfile.TemporaryDirectory(prefix='openstack-') as name:
        folder = pathlib.Path(name)
        program = folder / 'openstack'
        # -S: the site's packages would be most of its start.
        program.write_text(
            f'#!{sys.executable} -ES\n'
            'import runpy, sys\n'
            f'sys.argv[:1] = ["", {name!r}]\n'
            f'runpy.run_path({__file__!r}, run_name="call")\n'
        )
        program.chmod(0o700)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f'{name}/socket')
        # Calls that come before it has imported all wait here.
        listener.listen(100)
        os.environ[FOLDER] = name
        server = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        listener.close()
        try:
            yield
        finally:
            del os.environ[FOLDER]
            server.kill()
            server.wait()


# In place of the command ----------------------------------------------------


def call(folder: str, *arguments: str) -> NoReturn:
    """Have the server run it, and end as it ends."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(f'{folder}/socket')
    for number in _PASSED_ON:
        signal.signal(number, lambda got, _: connection.sendall(bytes([got])))
    status = forking.send(
        connection,
        arguments,
        env=os.environ,
        folder=os.getcwd(),
        files=[0, 1, 2],
    )
    if status is None:
        os._exit(1)
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


# The server -----------------------------------------------------------------


def _serve(listener: socket.socket) -> None:
    # It names itself after this, as it is imported.
    sys.argv = ['openstack']
    from openstackclient import shell

    # It imports what it finds among the entry points.
    with contextlib.suppress(SystemExit):
        shell.main(['software', 'deployment', 'run', 'show', '--help'])
    # Each call adds its own.
    logging.getLogger().handlers.clear()
    forking.serve(listener, functools.partial(_attend, shell.main))


def _attend(main: Any, connection: socket.socket) -> NoReturn:
    """Run the command in a child, and pass on what the caller is sent."""
    request, files = forking.receive(connection, 3)
    child = os.fork()
    if not child:
        connection.close()
        _run(main, files, request)
    for one in files:
        os.close(one)
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([ended, connection], [], [])
        if ended in ready:
            break
        # A caller that has been killed says nothing more.
        for number in connection.recv(1) or [signal.SIGKILL]:
            os.kill(child, number)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    with contextlib.suppress(OSError):
        connection.sendall(f'{code}\n'.encode())
    os._exit(0)


def _run(main: Any, files: list[int], request: dict[str, Any]) -> NoReturn:
    for number, one in enumerate(files):
        os.dup2(one, number)
        os.close(one)
    # What kind of files they are is looked at as they are opened.
    for number, name in enumerate(('stdin', 'stdout', 'stderr')):
        errors = getattr(sys, name).errors
        mode = 'w' if number else 'r'
        # By lines: whoever waits reads what it says meanwhile.
        stream = os.fdopen(number, mode, 1, errors=errors, closefd=False)
        setattr(sys, name, stream)
    forking.adopt(request)
    # Whoever started the tests in the background had it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv[1:] = request['arguments']
    try:
        code = main()
    except SystemExit as ending:
        code = ending.code
    except BaseException:
        traceback.print_exc()
        code = 1
    # All but to free the memory of what is imported, module by module.
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == 'call':
    call(*sys.argv[1:])
elif __name__ == '__main__':
    _serve(socket.socket(fileno=int(sys.argv[1])))
