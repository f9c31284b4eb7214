# SPDX-License-Identifier: Apache-2.0
"""Keystone: its database, keys and first user at need, then its API."""

import os
import sys

from keystone.cmd import bootstrap
from keystone.common import fernet_utils
from keystone.common.sql import upgrades
import keystone.conf
from keystone.credential.providers import fernet as credential_fernet
from keystone.server import backends
from keystone.server.flask import core as flask_core

from minicloud_lib.services import serving
from minicloud_lib.services import sqlite

CONF = keystone.conf.CONF


def main(conf: str) -> None:
    url = os.environ['MINICLOUD_URL']
    # Keystone reads the command line, and this one is not for it.
    del sys.argv[1:]
    application = flask_core.initialize_application(
        name='public',
        config_files=[conf],
        post_log_configured_function=_prepare,
    )
    if not os.path.exists(_marker()):
        _bootstrap(url, os.environ['MINICLOUD_ADMIN'])
        open(_marker(), 'w').close()
    # What it keeps of a token is kept for the whole process, in
    # AuthContextMiddleware.token: of two requests at once, one is answered as
    # if it came from the other.
    api = serving.Api(application, url, threads=1)
    api.start()
    serving.until_stopped(api.stop)


def _prepare() -> None:
    upgrades.offline_sync_database_to_version()
    if CONF.database.connection.startswith('sqlite'):
        sqlite.prepare(CONF.database.connection)
    _make_keys()


def _make_keys() -> None:
    for folder, count, group in (
        (
            CONF.fernet_tokens.key_repository,
            CONF.fernet_tokens.max_active_keys,
            'fernet_tokens',
        ),
        (
            CONF.credential.key_repository,
            credential_fernet.MAX_ACTIVE_KEYS,
            'credential',
        ),
    ):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        repository = fernet_utils.FernetUtils(folder, count, group)
        if not os.listdir(folder):
            repository.initialize_key_repository()


def _marker() -> str:
    return os.path.join(CONF.fernet_tokens.key_repository, '../bootstrapped')


def _bootstrap(url: str, password: str) -> None:
    """Make the administrator; all that is there already is left alone."""
    # The API has loaded them already, and a second time is refused.
    load, backends.load_backends = backends.load_backends, dict
    try:
        strapper = bootstrap.Bootstrapper()
    finally:
        backends.load_backends = load
    strapper.admin_username = 'admin'
    strapper.admin_password = password
    strapper.project_name = 'admin'
    strapper.admin_role_name = 'admin'
    strapper.service_name = 'keystone'
    strapper.region_id = 'RegionOne'
    strapper.admin_url = url
    strapper.public_url = url
    strapper.internal_url = url
    strapper.bootstrap()


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
