# SPDX-License-Identifier: Apache-2.0
"""Mistral's event engine, as a process of its own in production.

It does not fork, as mistral-server does: Python 3.13.0 starts no thread in a
child if its parent has made the thread's object, and Mistral's does.
"""

# Chooses threads over eventlet; it has to come before all else.
import mistral.cmd  # isort: skip  # noqa: F401

import functools
import sys
from typing import Any

from mistral import config
from mistral.api import app  # noqa: F401  registers options
from mistral.event_engine import event_engine_server
from mistral.rpc import base as rpc
from oslo_config import cfg
from oslo_log import log as logging

from minicloud_lib.services import serving


def main(*files: str) -> None:
    config.parse_args(
        [part for file in files for part in ('--config-file', file)]
    )
    logging.setup(cfg.CONF, 'Mistral')
    rpc.get_transport()
    engine = service()
    engine.start()
    serving.until_stopped(engine.stop)


def service() -> Any:
    """Return the service, which oslo.service or its caller starts."""
    server = event_engine_server.get_oslo_service()
    # Its loop asks without a pause, and takes a whole core for that.
    queue = server._event_engine.event_queue
    queue.get_nowait = functools.partial(queue.get, timeout=0.5)
    return server


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
