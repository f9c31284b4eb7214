# SPDX-License-Identifier: Apache-2.0
"""The parts that tie the core to a running heat-engine.

``database`` reads and writes Heat's tables. ``hubs`` holds what the
deployments of one root stack share in one process, ``process`` what all share.
``runs`` starts and follows runs. ``server_fleets`` and ``transports`` are what
a resource asks for; ``histories`` reads the row of a deployment, and settles
it by a signal. ``patches`` replaces parts of Heat.

All of them may read our options, which are registered here.
"""

from oslo_config import cfg

from heat_plugins import config

config.register_opts(cfg.CONF)
