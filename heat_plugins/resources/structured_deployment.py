# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::StructuredDeployment, and its groups under their two names."""

from heat.engine.resources.openstack.heat import structured_config as base

from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_as_one


@deployment_schema.of_deployment
class StructuredDeployment(
    deployment.DeploymentMixin, base.StructuredDeployment
):
    """Runs a structured config on a server, with inputs put into it.

    Like OS::Heat::SoftwareDeployment; before the delivery, heat-engine
    replaces each ``{get_input: NAME}`` in the config by the input's value.
    """


@deployment_schema.of_group
class StructuredDeploymentGroup(
    group_as_one.OneMixin, base.StructuredDeploymentGroup
):
    """Runs a structured config on a group of servers.

    Each member is an OS::Heat::StructuredDeployment with the properties of
    the group.
    """


@deployment_schema.of_group
class StructuredDeployments(group_as_one.OneMixin, base.StructuredDeployments):
    """The former name of OS::Heat::StructuredDeploymentGroup."""
