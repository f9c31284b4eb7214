# SPDX-License-Identifier: Apache-2.0
"""Heat: the engine, the API and the CloudFormation API."""

# Chooses threads over eventlet; it has to come before all else.
from minicloud_lib.services import heat_api  # isort: skip

import json
import os
import sys

# These two register options, so they come before the configuration is read.
from heat.common import config
from heat.common import messaging
from heat.db import migration
from heat.engine import environment
from heat.engine import resources
from heat.engine import template
from heat.rpc import api as rpc_api
from oslo_config import cfg

from minicloud_lib.services import broker
from minicloud_lib.services import counters
from minicloud_lib.services import serving
from minicloud_lib.services import sqlite

CONF = cfg.CONF


def main(*files: str) -> None:
    broker.install()
    heat_api.configure('heat-engine', *files)
    migration.db_sync()
    sqlite.prepare(CONF.database.connection)
    counters.write_to(os.environ['MINICLOUD_COUNTERS'])
    messaging.setup()
    config.startup_sanity_check()
    template._get_template_extension_manager()
    # Its import reads options, too.
    from heat.engine import service

    engine = service.EngineService(CONF.host, rpc_api.ENGINE_TOPIC)
    engine.start()
    _note_classes(os.environ['MINICLOUD_CLASSES'])
    apis = heat_api.apis()
    for api in apis:
        api.start()
    serving.until_stopped(*(api.stop for api in apis), engine.stop)


def _note_classes(path: str) -> None:
    """Write down which class serves each resource type."""
    # Its own list leaves hidden types out, and ours are among those.
    classes = {
        name: f'{info.value.__module__}.{info.value.__qualname__}'
        for name, info in resources.global_env().registry._registry.items()
        if isinstance(info, environment.ClassResourceInfo)
    }
    with open(path, 'w', encoding='utf-8') as stream:
        json.dump(classes, stream, indent=2, sort_keys=True)


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
