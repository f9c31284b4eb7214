# SPDX-License-Identifier: Apache-2.0
"""The folders of the database server, and the databases in it."""

from collections.abc import Sequence
import getpass
import pathlib
import subprocess

from minicloud_lib import environment
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib.production import certificates
from minicloud_lib.settings import Settings

DATABASES = ('keystone', 'heat', 'mistral')

#: Keystone brings its own up to date as it starts.
_MIGRATIONS = {
    'heat.conf': (('heat-manage', 'db_sync'),),
    'mistral.conf': (
        ('mistral-db-manage', 'upgrade', 'head'),
        ('mistral-db-manage', 'populate'),
    ),
}


def database_folder(instance: layout.Instance) -> pathlib.Path:
    return instance.data / 'mariadb'


def socket(instance: layout.Instance) -> pathlib.Path:
    return instance.run / 'mariadb.sock'


def prepare(instance: layout.Instance) -> None:
    """Make what must be there before anything starts."""
    certificates.ensure(instance)
    folder = database_folder(instance)
    if not folder.exists():
        _run(
            instance,
            [
                *('mariadb-install-db', '--no-defaults', '--skip-test-db'),
                '--auth-root-authentication-method=normal',
                f'--user={getpass.getuser()}',
                f'--datadir={folder}',
            ],
        )


def fill(instance: layout.Instance, settings: Settings) -> None:
    """Make the databases, and their tables as the services want them."""
    password = settings.secrets['database']
    statements = ''.join(
        f'CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4;'
        f"CREATE USER IF NOT EXISTS '{name}'@'127.0.0.1' IDENTIFIED BY "
        f"'{password}';"
        f"GRANT ALL ON {name}.* TO '{name}'@'127.0.0.1';"
        for name in DATABASES
    )
    _run(
        instance,
        [
            *('mariadb', '--no-defaults', '--user=root'),
            f'--socket={socket(instance)}',
        ],
        statements,
    )
    stamp = instance.data / 'databases.json'
    wanted = {
        'packages': files.read_json(instance.home.venv / 'minicloud.json'),
        'plugin': settings.plugin_version,
    }
    if files.read_json(stamp) == wanted:
        return
    for conf, commands in _MIGRATIONS.items():
        # Others of the user may name another database.
        extras = instance.conf.glob(conf.replace('.conf', '-extra-*.conf'))
        options = [
            f'--config-file={path}'
            for path in (instance.conf / conf, *sorted(extras))
        ]
        for program, *arguments in commands:
            _run(
                instance,
                [
                    str(instance.home.venv / 'bin' / program),
                    *options,
                    *arguments,
                ],
            )
    files.write_json(stamp, wanted)


def _run(
    instance: layout.Instance, command: Sequence[str], text: str = ''
) -> None:
    result = subprocess.run(
        command,
        cwd=instance.data,
        env=environment.clean(instance.home, instance.data),
        input=text,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise errors.MinicloudError(
            f'{command[0]} failed:\n'
            + '\n'.join(
                (result.stdout + result.stderr).strip().splitlines()[-15:]
            )
        )
