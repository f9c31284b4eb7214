# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareDeployment."""

from heat.engine.resources.openstack.heat import software_deployment as base

from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_schema


class SoftwareDeployment(deployment.DeploymentMixin, base.SoftwareDeployment):
    """Runs a software config on a server, and waits for its result.

    Each of the life-cycle actions that ``actions`` lists (or, for a
    component, that the component has a config for) hands a config to the
    server; the resource is IN_PROGRESS until the server has signalled its
    result, and FAILED if it reports an exit status other than 0 or a value
    for an output that is declared as ``error_output``.

    With TEMP_URL_POLL the server needs no credentials and reaches nothing
    but the object store. The results are attributes: the outputs that the
    config declares, ``deploy_stdout``, ``deploy_stderr`` and
    ``deploy_status_code``; after a cancelled or timed-out action there are
    none until the next.
    """

    properties_schema = deployment_schema.properties_schema(
        base.SoftwareDeployment.properties_schema
    )

    attributes_schema = deployment_schema.attributes_schema(
        base.SoftwareDeployment.attributes_schema
    )
