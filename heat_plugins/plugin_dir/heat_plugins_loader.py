# SPDX-License-Identifier: Apache-2.0
"""The module that Heat finds in ``plugin_dirs``: types, and what they need.

Heat may find it where heat_plugins itself is not installed (a Heat in a
virtual environment also searches /usr/lib/heat), and an exception in here
stops heat-engine: so it imports heat_plugins late, and catches every
exception.
"""

from collections import abc
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)


def resource_mapping() -> abc.Mapping[str, type[Any]]:
    """Return a resource class for each type that heat_plugins can serve."""
    try:
        from heat_plugins import registry

        types = registry.load(cfg.CONF)
    except Exception as exc:
        LOG.warning(
            'heat_plugins cannot be loaded, so Heat keeps its own resource '
            'types: %(error)s: %(message)s',
            {'error': type(exc).__name__, 'message': exc},
        )
        return {}
    # The types load without what heat-engine itself needs, too.
    try:
        from heat_plugins.engine import patches

        patches.install(types.keys())
    except Exception as exc:
        LOG.warning(
            'heat-engine resumes no deployments of dead engines, and '
            'deployments that complete together delay their stack: '
            '%(error)s: %(message)s',
            {'error': type(exc).__name__, 'message': exc},
        )
    return types
