# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareConfig."""

from heat.engine.resources.openstack.heat import software_config

from heat_plugins.resources.software import checked_config


class SoftwareConfig(
    checked_config.CheckedConfig, software_config.SoftwareConfig
):
    """A script or manifest, with the inputs it takes and outputs it gives.

    The same as Heat's own, and checked: a stack is refused while it is
    validated, rather than failing on a server, if

    - two inputs, or two outputs, have one name;
    - an input has the name of one that every deployment may add itself:
      ``deploy_action``, ``deploy_auth_url``, ``deploy_password``,
      ``deploy_project_id``, ``deploy_queue_id``, ``deploy_region_name``,
      ``deploy_resource_name``, ``deploy_server_id``, ``deploy_signal_id``,
      ``deploy_signal_transport``, ``deploy_signal_verb``,
      ``deploy_stack_id``, ``deploy_user_id``, ``deploy_username``. A config
      may read them without declaring them;
    - the group is ``script`` and the name of an input contains ``=``, or
      the name of an input or output contains a NUL.

    What works but is hardly meant is logged by the engine as a warning: a
    script without a ``#!`` line, a group that resembles one of heat-agents'
    hooks, an output that every deployment has already, names with blanks
    around them.

    A config never changes: any change to its properties makes a new one.
    """
