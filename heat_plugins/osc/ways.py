# SPDX-License-Identifier: Apache-2.0
"""The two ways to work on plans, nodes and validations.

They call the same operations of the core, and have the same results.
"""

from typing import Any

from heat_plugins import foreign
from heat_plugins.clients import heat
from heat_plugins.clients import ironic
from heat_plugins.clients import mistral_api
from heat_plugins.clients import mistral_executions
from heat_plugins.clients import mistral_registry
from heat_plugins.clients import swift
from heat_plugins.nodes import node_operations
from heat_plugins.osc import common
from heat_plugins.osc import local_way
from heat_plugins.osc import remote_way
from heat_plugins.plans import local as local_names
from heat_plugins.plans import plan_operations
from heat_plugins.plans import plan_service
from heat_plugins.validations import validation_operations

LOG = foreign.logger(__name__)


def way(manager: Any, local: bool) -> local_way.Local:
    """Return a way.

    :param local: whether it goes past Mistral's actions.
    """
    cloud = common.cloud(manager)
    store = swift.connect(cloud)
    stacks = heat.Heat(cloud)
    if local and not mistral_api.is_there(cloud):
        LOG.info(
            'The catalogue has no Mistral; keeping names and locks of plans '
            'in the object store'
        )
        names: Any = local_names.Names(store)
    else:
        names = mistral_registry.Registry(cloud)
    plans = plan_service.Plans(store, names, stacks)
    return (local_way.Local if local else remote_way.Remote)(
        store=store,
        plans=plan_operations.Operations(plans),
        nodes=node_operations.Operations(ironic.Baremetal(cloud), store),
        validations=validation_operations.Operations(plans, stacks),
        executions=mistral_executions.Executions(cloud),
    )
