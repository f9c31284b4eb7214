# SPDX-License-Identifier: Apache-2.0
"""Nova in one process: conductor, scheduler, compute and API; Placement."""

# Chooses threads over eventlet; it has to come before all else.
from nova import monkey_patch  # isort: skip

monkey_patch.patch(backend='threading')

import os  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402
from typing import Any  # noqa: E402

from cheroot import wsgi  # noqa: E402
from nova import context as nova_context  # noqa: E402
from nova import exception  # noqa: E402
from nova import objects  # noqa: E402
from nova import service  # noqa: E402
from nova.api.openstack import wsgi_app  # noqa: E402
from nova.compute import rpcapi as compute_rpcapi  # noqa: E402
from nova.conductor import rpcapi as conductor_rpcapi  # noqa: E402
import nova.conf  # noqa: E402
from nova.db import migration  # noqa: E402
from nova.objects import host_mapping  # noqa: E402
from nova.scheduler import rpcapi as scheduler_rpcapi  # noqa: E402
from placement import wsgi as placement_wsgi  # noqa: E402

from minicloud_lib.compute import driver  # noqa: E402
from minicloud_lib.compute import network  # noqa: E402
from minicloud_lib.services import broker  # noqa: E402
from minicloud_lib.services import serving  # noqa: E402
from minicloud_lib.services import sqlite  # noqa: E402

CONF = nova.conf.CONF

#: The cell that holds all servers but those that no host had room for.
_CELL = 'ce11ce11-0000-4000-8000-000000000001'

#: The parts of Nova that talk by messages, in the order in which they start.
_PARTS: dict[str, dict[str, Any]] = {
    'nova-conductor': {'topic': conductor_rpcapi.RPC_TOPIC},
    'nova-scheduler': {'topic': scheduler_rpcapi.RPC_TOPIC},
    'nova-compute': {
        'topic': compute_rpcapi.RPC_TOPIC,
        'topic_alt': compute_rpcapi.RPC_TOPIC_ALT,
    },
}


def main(nova_conf: str, placement_conf: str) -> None:
    # Nova looks for drivers in its own package only.
    sys.modules['nova.virt.minicloud'] = driver
    conf = pathlib.Path(nova_conf).parent
    paste = pathlib.Path(sys.prefix, 'etc/nova/api-paste.ini')
    os.environ['OS_NOVA_CONFIG_FILES'] = f'{paste};{nova_conf}'
    os.environ['OS_PLACEMENT_CONFIG_DIR'] = str(conf)
    broker.install()
    sys.argv[1:] = []
    wsgi_app.init_global_data([nova_conf], 'nova', 'nova')
    objects.register_all()
    _make_tables()
    placement = placement_wsgi.init_application()
    _prepare_databases()
    inner = serving.Api(
        wsgi.PathInfoDispatcher(
            [('/network', network.application), ('/', placement)]
        ),
        os.environ['MINICLOUD_PLACEMENT_URL'],
    )
    inner.start()
    for binary, topics in _PARTS.items():
        service.Service.create(binary=binary, **topics).start()
    host_mapping.discover_hosts(nova_context.get_admin_context())
    api = serving.Api(
        wsgi_app.init_application('osapi_compute', 'nova-api-os-compute'),
        os.environ['MINICLOUD_URL'],
    )
    api.start()
    # The parts would take four seconds each to end in order.
    serving.until_stopped(api.stop)


def _make_tables() -> None:
    """Do what nova-manage's api_db sync, map_cell0, create_cell do."""
    migration.db_sync(database='api')
    migration.db_sync(database='main')
    context = nova_context.get_admin_context()
    _ensure_cell(context, _CELL, 'cell1', CONF.transport_url, _url('nova'))
    cell0 = _ensure_cell(
        *(context, objects.CellMapping.CELL0_UUID, 'cell0'),
        *('none:///', _url('nova_cell0')),
    )
    with nova_context.target_cell(context, cell0) as inside:
        migration.db_sync(database='main', context=inside)


def _ensure_cell(
    context: Any, uuid: str, name: str, transport: str, database: str
) -> Any:
    try:
        return objects.CellMapping.get_by_uuid(context, uuid)
    except exception.CellMappingNotFound:
        cell = objects.CellMapping(
            context,
            uuid=uuid,
            name=name,
            transport_url=transport,
            database_connection=database,
        )
        cell.create()
        return cell


def _prepare_databases() -> None:
    for name in ('nova_api', 'nova', 'nova_cell0', 'placement'):
        sqlite.prepare(_url(name))


def _url(database: str) -> str:
    """Return the URL of a database, one of those next to Nova's."""
    own: str = CONF.database.connection
    return own.replace('/nova.sqlite', f'/{database}.sqlite')


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
