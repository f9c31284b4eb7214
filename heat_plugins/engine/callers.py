# SPDX-License-Identifier: Apache-2.0
"""Who sends a signal, as far as heat-engine knows.

It handles signals in the name of the stack's owner. Of the request it keeps
the context that the stack was loaded with, which the stack's definition holds
in each Heat from 24 on.
"""

from typing import Any

from heat.common import context as heat_context
from oslo_config import cfg

from heat_plugins.deployments import signallers
from heat_plugins.engine import heat_types

for _name in ('heat_stack_user_role', 'stack_user_domain_id'):
    cfg.CONF.import_opt(_name, 'heat.common.config')


def of(stack: heat_types.Stack) -> signallers.Signaller:
    """Return who sends the signal that a stack was loaded for."""
    context: Any = getattr(stack.defn, '_context', None)
    # A stored context is the owner's, also for the signal of another user.
    if isinstance(context, heat_context.StoredContext):
        return signallers.UNKNOWN
    user_id = getattr(context, 'user_id', None)
    if user_id is None:
        return signallers.UNKNOWN
    return signallers.Signaller(
        user_id=user_id,
        is_of_project=context.is_admin or _is_of_project(context, stack),
    )


def _is_of_project(
    context: heat_types.Context, stack: heat_types.Stack
) -> bool:
    domain = cfg.CONF.stack_user_domain_id
    return (
        context.project_id == stack.tenant_id
        and (domain is None or context.user_domain_id != domain)
        # Without such a domain Heat makes the users in the project itself.
        and cfg.CONF.heat_stack_user_role not in context.roles
    )
