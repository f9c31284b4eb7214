# SPDX-License-Identifier: Apache-2.0
"""Actions on deployment plans: ``plan.*``.

The quick ones answer a call of Mistral's API for an action. The long
ones, which create, update and delete a plan, have workflows of the same
names, and so has ``plan.deploy``.

A result of more than 64 KiB comes as a reference: a map of ``container``,
``object`` and ``bytes``, for a text of JSON in the object store. An error is a
map of ``code`` and ``message``.
"""

import time
from typing import Any

from oslo_config import cfg

from heat_plugins import config
from heat_plugins.clients import heat_plans
from heat_plugins.clients import mistral_plans
from heat_plugins.clients import swift
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import sessions
from heat_plugins.objectstore import parcels
from heat_plugins.plans import plan_operations
from heat_plugins.plans import plan_service
from heat_plugins.plans.rendering import rendering

CONF = cfg.CONF


def core(context: Any) -> plan_operations.PlanOperations:
    """Return the operations on plans, with the credentials of a context."""
    cloud = sessions.cloud(context.security)
    return plan_operations.PlanOperations(
        plan_service.Plans(
            swift.connect(cloud),
            mistral_plans.MistralRegistry(cloud),
            heat_plans.PlanStacks(cloud),
            limits=limits(),
        )
    )


def limits() -> rendering.RenderingLimits:
    """Return the operator's limits for rendering Jinja templates."""
    config.register_opts(CONF)
    options = CONF[config.GROUP]
    return rendering.RenderingLimits(
        seconds=options.plan_render_seconds,
        memory=options.plan_render_memory * 1024**2,
        output=options.plan_render_output * 1024**2,
    )


def _call(context: Any, operation: str, arguments: dict[str, Any]) -> Any:
    """Do an operation on plans; a large result is a reference."""
    plans = core(context)
    result = getattr(plans, operation)(**arguments)
    if operation == 'deploy':
        # The workflow reads this result, and cannot follow a reference.
        return result
    return parcels.pack(
        plans.plans.store, arguments.get('plan'), result, time.time()
    )


_action = making.ActionMaker(__name__, _call)

Create = _action(plan_operations.PlanOperations.create)
Update = _action(plan_operations.PlanOperations.update)
Delete = _action(plan_operations.PlanOperations.delete)
List = _action(plan_operations.PlanOperations.list)
Show = _action(plan_operations.PlanOperations.show)
GetCapabilities = _action(plan_operations.PlanOperations.get_capabilities)
UpdateCapabilities = _action(
    plan_operations.PlanOperations.update_capabilities
)
GetParameters = _action(plan_operations.PlanOperations.get_parameters)
UpdateParameters = _action(plan_operations.PlanOperations.update_parameters)
ListRoles = _action(plan_operations.PlanOperations.list_roles)
Preview = _action(plan_operations.PlanOperations.preview)
Start = _action(plan_operations.PlanOperations.start)
Look = _action(plan_operations.PlanOperations.look)
Deploy = _action(plan_operations.PlanOperations.deploy)
Status = _action(plan_operations.PlanOperations.status)
Cancel = _action(plan_operations.PlanOperations.cancel)
Diff = _action(plan_operations.PlanOperations.diff)
