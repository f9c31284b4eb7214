# SPDX-License-Identifier: Apache-2.0
"""Heat's two APIs, without an engine."""

# Chooses threads over eventlet; it has to come before all else.
from oslo_service import backend  # isort: skip

backend.init_backend(backend.BackendType.THREADING)

import os  # noqa: E402
import sys  # noqa: E402

from heat.common import config  # noqa: E402
from heat.common import messaging  # noqa: E402

# Registers options, so it comes before the configuration is read.
from heat.rpc import api as rpc_api  # noqa: E402, F401
from oslo_config import cfg  # noqa: E402
from oslo_log import log as logging  # noqa: E402

from minicloud_lib.services import serving  # noqa: E402

CONF = cfg.CONF


def main(*files: str) -> None:
    configure('heat-api', *files)
    messaging.setup()
    served = apis()
    for api in served:
        api.start()
    serving.until_stopped(*(api.stop for api in served))


def configure(name: str, *files: str) -> None:
    logging.register_options(CONF)
    CONF(
        [part for file in files for part in ('--config-file', file)],
        project='heat',
        prog=name,
    )
    logging.setup(CONF, name)
    logging.set_defaults()


def apis() -> list[serving.Api]:
    """The one that is looked at for readiness comes last."""
    return [
        serving.Api(
            config.load_paste_app('heat-api-cfn'),
            os.environ['MINICLOUD_CFN_URL'],
        ),
        serving.Api(
            config.load_paste_app('heat-api'), os.environ['MINICLOUD_URL']
        ),
    ]


if __name__ == '__main__':
    serving.run(main, *sys.argv[1:])
