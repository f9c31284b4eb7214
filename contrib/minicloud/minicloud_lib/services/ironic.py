# SPDX-License-Identifier: Apache-2.0
"""Ironic: its API and a conductor, with hardware that does as it is told."""

import sys

from ironic.common import service as common_service
from ironic.common import wsgi_service  # noqa: F401  registers options
from ironic.conductor import rpc_service
from oslo_config import cfg

from minicloud_lib.services import serving
from minicloud_lib.services import sqlite

CONF = cfg.CONF


def main(conf: str) -> None:
    # Else the periodic tasks do not see the options.
    if 'ironic.conductor.manager' in sys.modules:
        raise RuntimeError('ironic.conductor.manager is imported already')
    common_service.prepare_service('ironic', ['ironic', '--config-file', conf])
    _make_tables()
    sqlite.prepare(CONF.database.connection)
    service = rpc_service.RPCService(
        CONF.host,
        'ironic.conductor.manager',
        'ConductorManager',
        embed_api=True,
    )
    service.start()
    serving.until_stopped(service.stop)


def _make_tables() -> None:
    """Make the tables at the first start; nothing here is ever upgraded."""
    # Its import reads options.
    from ironic.db import migration

    if migration.version() is None:
        migration.create_schema()


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
