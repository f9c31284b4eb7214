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
    own = f'--user={user}', f'--datadir={folder}/data'
    own += '--innodb-log-file-size=4M', '--innodb-buffer-pool-size=32M'
    _until(
        *('mariadb-install-db', '--no-defaults', '--skip-test-db', *own),
        '--auth-root-authentication-method=normal',
        attempts=1,
    )
    socket = f'{folder}/socket'
    _serve(
        *('mariadbd', '--no-defaults', *own, f'--socket={socket}'),
        *('--skip-networking', '--innodb-flush-log-at-trx-commit=0'),
        *(f'--character-set-server={_CHARSET}', '--performance-schema=0'),
    )
    _until(
        *('mariadb', '--no-defaults', '--user=root', f'--socket={socket}'),
        '--execute=CREATE DATABASE heat',
    )
    where = f'unix_socket={socket}&charset={_CHARSET}'
    return f'mysql+pymysql://root@localhost/heat?{where}'


class PostgreSQL:
    """A server of one's own, which can be stopped and started.

    :ivar url: of its database.
    :raises Missing: the program or the driver is not there.
    """

    def __init__(self):
        _require('psycopg2', 'initdb', 'postgres', 'pg_isready', 'setpriv')
        self._folder = folder = _folder()
        # It refuses to run as root.
        self._prefix = ()
        if os.getuid() == 0:
            account = pwd.getpwnam('nobody')
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._prefix = (
                *('setpriv', f'--reuid={account.pw_uid}'),
                *(f'--regid={account.pw_gid}', '--clear-groups'),
            )
        self.url = f'postgresql+psycopg2://root@/heat?host={folder}'
        _until(
            *(*self._prefix, 'initdb', '--username=root', '--auth=trust'),
            *('--no-sync', f'{folder}/data'),
            attempts=1,
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


def _start(start, name, *arguments, **options):
    program = shutil.which(name, path=_PATH)
    environment = {**os.environ, 'PATH': _PATH}
    return start([program, *arguments], env=environment, **options)


def _serve(*command):
    quiet = dict.fromkeys(('stdout', 'stderr'), subprocess.DEVNULL)
    server = _start(subprocess.Popen, *command, **quiet)
    atexit.register(server.wait)
    atexit.register(server.kill)
    return server


def _until(*command, attempts=300):
    """Repeat a command until the server answers."""
    for _ in range(attempts):
        found = {'capture_output': True, 'text': True}
        done = _start(subprocess.run, *command, **found)
        if done.returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError(f'{command[0]}: {done.stdout}{done.stderr}')
