# SPDX-License-Identifier: Apache-2.0
"""Database servers of a test's own, where their programs and drivers are.

Each is started once for a process of tests, in a folder of its own, and
listens on a socket there.
"""

import atexit
import functools
import importlib.util
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

# Where Debian has what only root's path leads to.
_PATH = os.pathsep.join(
    [
        os.environ.get('PATH', ''),
        '/usr/sbin',
        *map(str, sorted(pathlib.Path('/usr/lib/postgresql').glob('*/bin'))),
    ]
)

# MySQL's default of old: no emoji, and names may differ in case alone.
_CHARSET = 'utf8mb3'


class Missing(Exception):
    """There is no such server here; the message says what is missing."""


@functools.cache
def mariadb():
    """Start MariaDB; return the URL of its database."""
    _require('pymysql', 'mariadbd', 'mariadb-install-db', 'mariadb')
    folder = _folder()
    user = pwd.getpwuid(os.getuid()).pw_name
    _run(
        *('mariadb-install-db', '--no-defaults', '--skip-test-db'),
        *('--auth-root-authentication-method=normal', f'--user={user}'),
        f'--datadir={folder}/data',
    )
    socket = folder / 'socket'
    _serve(
        *('mariadbd', '--no-defaults', f'--user={user}'),
        *(f'--datadir={folder}/data', f'--socket={socket}'),
        *('--skip-networking', '--innodb-flush-log-at-trx-commit=0'),
        *(f'--character-set-server={_CHARSET}', '--performance-schema=0'),
    )
    _until(
        *('mariadb', '--no-defaults', '--user=root', f'--socket={socket}'),
        '--execute=CREATE DATABASE heat',
    )
    return (
        f'mysql+pymysql://root@localhost/heat?unix_socket={socket}'
        f'&charset={_CHARSET}'
    )


class PostgreSQL:
    """A server of one's own, which can be stopped and started.

    :ivar url: of its database.
    :raises Missing: the program or the driver is not there.
    """

    def __init__(self):
        _require('psycopg2', 'initdb', 'postgres', 'pg_isready', 'setpriv')
        folder = _folder()
        # It refuses to run as root.
        self._prefix = ()
        if os.getuid() == 0:
            account = pwd.getpwnam('nobody')
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._prefix = (
                *('setpriv', f'--reuid={account.pw_uid}'),
                *(f'--regid={account.pw_gid}', '--clear-groups'),
            )
        self._folder = folder
        self.url = f'postgresql+psycopg2://root@/heat?host={folder}'
        _run(
            *(*self._prefix, 'initdb', '--username=root', '--auth=trust'),
            f'{folder}/data',
        )
        self.start()
        _until('createdb', '--username=root', f'--host={folder}', 'heat')

    def start(self):
        self._server = _serve(
            *(*self._prefix, 'postgres', '-D', f'{self._folder}/data'),
            *('-k', f'{self._folder}', '-c', 'listen_addresses='),
            *('-c', 'fsync=off', '-c', 'max_connections=500'),
        )
        _until('pg_isready', f'--host={self._folder}')

    def stop(self):
        """Stop it as a restart does: connections end, transactions abort."""
        self._server.send_signal(signal.SIGINT)
        self._server.wait(30)


@functools.cache
def postgresql():
    """Start PostgreSQL; return the URL of its database."""
    return PostgreSQL().url


def _require(driver, *programs):
    if importlib.util.find_spec(driver) is None:
        raise Missing(f'the driver {driver}')
    for each in programs:
        if shutil.which(each, path=_PATH) is None:
            raise Missing(f'the program {each}')


def _folder():
    folder = pathlib.Path(tempfile.mkdtemp(prefix='database-'))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _run(*command):
    done = _popen(command, subprocess.run, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f'{command[0]}: {done.stdout}{done.stderr}')


def _popen(command, start, **options):
    program = shutil.which(command[0], path=_PATH)
    environment = {**os.environ, 'PATH': _PATH}
    return start([program, *command[1:]], env=environment, **options)


def _serve(*command):
    server = _popen(
        command,
        subprocess.Popen,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def stop():
        server.kill()
        server.wait()

    atexit.register(stop)
    return server


def _until(*command):
    """Repeat a command until the server answers."""
    for _ in range(300):
        done = _popen(command, subprocess.run, capture_output=True, text=True)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(done.stderr)
