# SPDX-License-Identifier: Apache-2.0
"""The six types of deployments; what they do is in the room ``software``."""

from heat.engine.resources import signal_responder
from heat.engine.resources.openstack.heat import software_deployment
from heat.engine.resources.openstack.heat import structured_config

from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_as_one


@deployment_schema.of_deployment
class SoftwareDeployment(
    deployment.DeploymentMixin, software_deployment.SoftwareDeployment
):
    """Runs a software config on a server, and waits for its result.

    Each life-cycle action in ``actions`` (or, for a component, with a config
    in the component) delivers a config to the server. The resource is
    IN_PROGRESS until the server has sent the result, and FAILED if the exit
    status is not 0 or an output with ``error_output`` has a value.

    With TEMP_URL_POLL the server needs no credentials, and sends its result to
    the object store. The results are attributes: the outputs that the config
    declares, ``deploy_stdout``, ``deploy_stderr`` and ``deploy_status_code``.
    After a cancelled or timed-out action there are none until the next action.
    """


@deployment_schema.of_group
class SoftwareDeploymentGroup(
    group_as_one.GroupAsOne,
    software_deployment.SoftwareDeploymentGroup,
    signal_responder.SignalResponder,
):
    """Runs a software config on a group of servers.

    Each member is an OS::Heat::SoftwareDeployment with the properties of the
    group.
    """


@deployment_schema.of_group
class SoftwareDeployments(
    group_as_one.GroupAsOne,
    software_deployment.SoftwareDeployments,
    signal_responder.SignalResponder,
):
    """The former name of OS::Heat::SoftwareDeploymentGroup."""

    support_status = deployment_schema.renamed(
        software_deployment.SoftwareDeployments, SoftwareDeploymentGroup
    )


@deployment_schema.of_deployment
class StructuredDeployment(
    deployment.DeploymentMixin, structured_config.StructuredDeployment
):
    """Runs a structured config on a server, with inputs put into it.

    Like OS::Heat::SoftwareDeployment; before the delivery, heat-engine
    replaces each ``{get_input: NAME}`` in the config by the input's value.
    """


@deployment_schema.of_group
class StructuredDeploymentGroup(
    group_as_one.GroupAsOne,
    structured_config.StructuredDeploymentGroup,
    signal_responder.SignalResponder,
):
    """Runs a structured config on a group of servers.

    Each member is an OS::Heat::StructuredDeployment with the properties of
    the group.
    """


@deployment_schema.of_group
class StructuredDeployments(
    group_as_one.GroupAsOne,
    structured_config.StructuredDeployments,
    signal_responder.SignalResponder,
):
    """The former name of OS::Heat::StructuredDeploymentGroup."""

    support_status = deployment_schema.renamed(
        structured_config.StructuredDeployments, StructuredDeploymentGroup
    )
