# SPDX-License-Identifier: Apache-2.0
"""Glance: its API, with a store of files."""

import os
import pathlib
import sys

from alembic import command
from glance.common import config
from glance.common import wsgi_app
from glance.db.sqlalchemy import alembic_migrations
from oslo_config import cfg

from minicloud_lib.services import serving
from minicloud_lib.services import sqlite

CONF = cfg.CONF


def main(conf: str) -> None:
    os.environ['OS_GLANCE_CONFIG_DIR'] = str(pathlib.Path(conf).parent)
    # The tables must be there before the application.
    config.set_config_defaults()
    CONF([], project='glance', default_config_files=[conf])
    command.upgrade(alembic_migrations.get_alembic_config(), 'heads')
    sqlite.prepare(CONF.database.connection)
    api = serving.Api(wsgi_app.init_app(), os.environ['MINICLOUD_URL'])
    api.start()
    serving.until_stopped(api.stop)


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
