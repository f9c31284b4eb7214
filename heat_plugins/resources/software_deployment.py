# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareDeployment."""

from heat.engine.resources.openstack.heat import software_deployment as base

from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_schema


@deployment_schema.of_deployment
class SoftwareDeployment(deployment.DeploymentMixin, base.SoftwareDeployment):
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
