# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareDeploymentGroup and OS::Heat::SoftwareDeployments."""

from heat.engine.resources.openstack.heat import software_deployment as base

from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_as_one


@deployment_schema.of_group
class SoftwareDeploymentGroup(
    group_as_one.OneMixin, base.SoftwareDeploymentGroup
):
    """Runs a software config on a group of servers.

    Each member is an OS::Heat::SoftwareDeployment with the properties of the
    group.
    """


@deployment_schema.of_group
class SoftwareDeployments(group_as_one.OneMixin, base.SoftwareDeployments):
    """The former name of OS::Heat::SoftwareDeploymentGroup."""
