# SPDX-License-Identifier: Apache-2.0
"""Load resource types as heat-engine does, and print what came of it.

Run with the Python of an environment that has Heat. For each line of standard
input, the path of a heat.conf, a fork makes the engine's service object, which
loads the plugins; to start it would need a database and a message bus. On
standard output: a line of JSON with the class of each resource type, the
client plugins, (logger, message) for each warning, and how many threads look
for deployments of dead engines: once all is loaded, in a forked process once
its engine has started, in its parent, and once that has started one, too.
"""

import json
import logging
import os
import random
import sys
import threading

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


def probe(heat_conf):
    """Make the engine's service object; return what there is to tell."""
    collector = Collector()
    logging.getLogger().addHandler(collector)
    arguments = ['--config-file', heat_conf]
    cfg.CONF(arguments, project='heat', prog='heat-engine')
    template._get_template_extension_manager()

    from heat.engine import clients
    from heat.engine import resources
    from heat.engine import service

    service.EngineService.start = lambda self: None
    # Scans wait for a time by chance; they would find a database without
    # tables, and warn.
    random.uniform = lambda least, most: 3600.0
    engine = service.EngineService('host', 'engine')
    looking = [_looking(), _looking_in_child(engine), _looking()]
    engine.start()
    looking.append(_looking())
    infos = resources.global_env().registry._registry.items()
    return {
        'classes': {
            name: f'{info.value.__module__}:{info.value.__qualname__}'
            for name, info in infos
            if isinstance(getattr(info, 'value', None), type)
        },
        'clients': sorted(clients._mgr.names()),
        'warnings': collector.records,
        'looking': looking,
    }


def _looking():
    return [one.name for one in threading.enumerate()].count(
        'heat-plugins-rescue'
    )


def _looking_in_child(engine):
    """Return how many threads look in a worker, as Heat forks it."""
    reads, writes = os.pipe()
    if os.fork() == 0:
        try:
            engine.start()
            os.write(writes, b'%d' % _looking())
        finally:
            os._exit(0)
    os.close(writes)
    return int(os.read(reads, 9))


def main():
    """Answer each line; with an empty one if an engine does not start."""
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            print(json.dumps(probe(line.strip())), flush=True)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            print(flush=True)


if __name__ == '__main__':
    main()
