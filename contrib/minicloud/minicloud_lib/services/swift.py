# SPDX-License-Identifier: Apache-2.0
"""Swift: proxy, account, container and object server in one process."""

import os
import signal
import sys
from typing import Any

import eventlet
from eventlet import hubs
from swift.common import utils
from swift.common import wsgi

utils.monkey_patch()

from swift.common import constraints  # noqa: E402
from swift.common import storage_policy  # noqa: E402
from swift.common.ring import builder  # noqa: E402

SERVERS = ('account', 'container', 'object', 'proxy')


def main(folder: str) -> None:
    # Its files are looked for in /etc/swift when the modules are imported.
    utils.set_swift_dir(folder)
    constraints.reload_constraints()
    storage_policy.reload_storage_policies()
    configurations = {
        server: wsgi.appconfig(os.path.join(folder, f'{server}.conf'))
        for server in SERVERS
    }
    for server in ('account', 'container', 'object'):
        _make_ring(folder, server, configurations[server])
    _keep_hub()
    # The proxy last: when its port is open the others are served.
    for server in SERVERS:
        conf = configurations[server]
        eventlet.spawn(
            wsgi.run_server,
            conf,
            utils.get_logger(conf, f'{server}-server', log_route=server),
            wsgi.get_socket(conf),
        )
    stop = eventlet.event.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    stop.wait()


def _keep_hub() -> None:
    """Let the first choice of a hub stand.

    Each server chooses one as it starts, and so drops the one that the
    servers before it run on.
    """
    choose = hubs.use_hub

    def once(*arguments: Any) -> None:
        # Threads have hubs of their own, and choose them here as well.
        if not hasattr(hubs._threadlocal, 'hub'):
            choose(*arguments)

    hubs.use_hub = once
    once(utils.get_hub())


def _make_ring(folder: str, server: str, conf: dict[str, str]) -> None:
    """One device that holds everything; its port may have changed."""
    devices = conf['devices']
    os.makedirs(os.path.join(devices, 'd1'), mode=0o700, exist_ok=True)
    ring = builder.RingBuilder(4, 1, 1)
    ring.add_dev(
        {
            'id': 0,
            'region': 1,
            'zone': 1,
            'ip': conf['bind_ip'],
            'port': int(conf['bind_port']),
            'device': 'd1',
            'weight': 1.0,
        }
    )
    ring.rebalance()
    ring.get_ring().save(os.path.join(folder, f'{server}.ring.gz'))


if __name__ == '__main__':
    main(sys.argv[1])
