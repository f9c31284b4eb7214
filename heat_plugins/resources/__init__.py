# SPDX-License-Identifier: Apache-2.0
"""Heat resource types; the rooms below have what several of them share.

All of them may read our options, which are registered here.
"""

from oslo_config import cfg

from heat_plugins import config

config.register_opts(cfg.CONF)
