# SPDX-License-Identifier: Apache-2.0
"""Load resource types as heat-engine does, and print what came of it.

Run with the Python of an environment that has Heat, and --config-file. It
takes the steps of heat.cmd.engine.launch_engine up to the engine's service
object, which loads the plugins, and no further: that would need a database
and a message bus. On standard output: JSON with the class of each resource
type, the client plugins, and (logger, message) for each warning.
"""

import json
import logging
import sys

# Chooses the threading back end, before anything else of Heat.
import heat.cmd.engine  # noqa: F401 # isort: skip
from heat.engine import template
from oslo_config import cfg


class Collector(logging.Handler):
    """Keeps the warnings and what is worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.records = []

    def emit(self, record):
        """Keep the record."""
        self.records.append((record.name, record.getMessage()))


def probe():
    """Make the engine's service object; return what there is to tell."""
    collector = Collector()
    logging.getLogger().addHandler(collector)
    cfg.CONF(project='heat', prog='heat-engine')
    template._get_template_extension_manager()

    from heat.engine import clients
    from heat.engine import resources
    from heat.engine import service

    service.EngineService('host', 'engine')
    infos = resources.global_env().registry._registry.items()
    return {
        'classes': {
            name: f'{info.value.__module__}:{info.value.__qualname__}'
            for name, info in infos
            if isinstance(getattr(info, 'value', None), type)
        },
        'clients': sorted(clients._mgr.names()),
        'warnings': collector.records,
    }


if __name__ == '__main__':
    json.dump(probe(), sys.stdout)
