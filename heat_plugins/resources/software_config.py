# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareConfig."""

from heat.engine.resources.openstack.heat import software_config

from heat_plugins.resources.software import checked_config


class SoftwareConfig(
    checked_config.CheckedConfig, software_config.SoftwareConfig
):
    """A script or manifest, with the inputs it takes and outputs it gives.

    The same as Heat's own, with checks: heat-engine refuses a stack, before it
    fails on a server, if

    - two inputs, or two outputs, have one name;
    - an input has the name of one that every deployment has:
      ``deploy_action``, ``deploy_auth_url``, ``deploy_password``,
      ``deploy_project_id``, ``deploy_queue_id``, ``deploy_region_name``,
      ``deploy_resource_name``, ``deploy_server_id``, ``deploy_signal_id``,
      ``deploy_signal_transport``, ``deploy_signal_verb``, ``deploy_stack_id``,
      ``deploy_user_id``, ``deploy_username``. A script can read these without
      a declaration;
    - the group is ``script`` and the name of an input contains ``=``, or
      the name of an input or output contains a NUL.

    heat-engine logs a warning for probable mistakes: a script without a ``#!``
    line, a group that resembles one of heat-agents' hooks, an output that
    every deployment has already, and names with blanks around them.

    A config never changes: a change of its properties replaces it.
    """
