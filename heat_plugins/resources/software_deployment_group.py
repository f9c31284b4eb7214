# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareDeploymentGroup and OS::Heat::SoftwareDeployments."""

from heat.engine.resources.openstack.heat import software_deployment as base

from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_as_one


class SoftwareDeploymentGroup(
    group_as_one.OneMixin, base.SoftwareDeploymentGroup
):
    """Runs a software config on a group of servers.

    Each member is an OS::Heat::SoftwareDeployment with the properties of the
    group.
    """

    properties_schema = deployment_schema.group_properties_schema(
        base.SoftwareDeploymentGroup.properties_schema
    )

    attributes_schema = deployment_schema.group_attributes_schema(
        base.SoftwareDeploymentGroup.attributes_schema
    )


class SoftwareDeployments(group_as_one.OneMixin, base.SoftwareDeployments):
    """The former name of OS::Heat::SoftwareDeploymentGroup."""

    properties_schema = SoftwareDeploymentGroup.properties_schema

    attributes_schema = SoftwareDeploymentGroup.attributes_schema
