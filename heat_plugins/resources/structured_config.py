# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::StructuredConfig."""

from heat.engine.resources.openstack.heat import structured_config

from heat_plugins.resources.software import checked_config


class StructuredConfig(
    checked_config.CheckedConfig, structured_config.StructuredConfig
):
    """A config whose body is a map, for tools that read YAML or JSON.

    The same as Heat's own. heat-engine checks its inputs, outputs and group
    like those of OS::Heat::SoftwareConfig, and in the group ``component`` the
    map's ``configs`` like those of OS::Heat::SoftwareComponent.
    """
