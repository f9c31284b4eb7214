# SPDX-License-Identifier: Apache-2.0
"""Heat: the engine, the API and the CloudFormation API."""

# Chooses threads over eventlet; it has to come before all else.
from oslo_service import backend  # isort: skip

backend.init_backend(backend.BackendType.THREADING)

import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

# These two register options, so they come before the configuration is read.
from heat.common import config  # noqa: E402
from heat.common import messaging  # noqa: E402
from heat.db import migration  # noqa: E402
from heat.engine import environment  # noqa: E402
from heat.engine import resources  # noqa: E402
from heat.engine import template  # noqa: E402
from heat.rpc import api as rpc_api  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_log import log as logging  # noqa: E402

from minicloud_lib.services import broker  # noqa: E402
from minicloud_lib.services import counters  # noqa: E402
from minicloud_lib.services import serving  # noqa: E402
from minicloud_lib.services import sqlite  # noqa: E402

CONF = cfg.CONF


def main(*files: str) -> None:
    broker.install()
    logging.register_options(CONF)
    CONF(
        [part for file in files for part in ('--config-file', file)],
        project='heat',
        prog='heat-engine',
    )
    logging.setup(CONF, 'heat-engine')
    logging.set_defaults()
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
    apis = [
        serving.Api(
            config.load_paste_app('heat-api'), os.environ['MINICLOUD_URL']
        ),
        serving.Api(
            config.load_paste_app('heat-api-cfn'),
            os.environ['MINICLOUD_CFN_URL'],
        ),
    ]
    # The one that is looked at for readiness comes last.
    for api in reversed(apis):
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
