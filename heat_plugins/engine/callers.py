# SPDX-License-Identifier: Apache-2.0
"""Who sends a signal, as far as heat-engine knows.

It handles signals in the name of the stack's owner. Of the request it keeps
the context that the stack was loaded with, which the stack's definition holds
in each Heat from 24 on. What that user may do, the policy says that
heat-engine's own configuration names.
"""

from typing import Any

from heat.common import context as heat_context
from heat.common import exception
from oslo_config import cfg

from heat_plugins import foreign
from heat_plugins.deployments import signallers
from heat_plugins.engine import heat_types

LOG = foreign.logger(__name__)

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
    is_user = is_of_project(context, stack)
    return signallers.Signaller(
        user_id=user_id,
        is_of_project=is_user,
        may_update=is_user and _may_update(context, stack),
    )


def _may_update(context: Any, stack: heat_types.Stack) -> bool:
    """Ask Heat's policy, as heat-api does when a user updates the stack."""
    scope, action = signallers.POLICY.split(':')
    # An administrator may be of another project.
    project = context.project_id if context.is_admin else stack.tenant_id
    try:
        return bool(
            context.policy.enforce(
                context,
                action,
                scope=scope,
                target={'project_id': project},
                is_registered_policy=True,
            )
        )
    except exception.Forbidden:
        return False
    except Exception as exc:
        LOG.warning(
            'Cannot ask the policy %(policy)s about the sender of a signal; '
            'refusing the signal: %(error)s',
            {'policy': signallers.POLICY, 'error': exc},
        )
        return False


def is_of_project(
    context: heat_types.Context, stack: heat_types.Stack
) -> bool:
    """Say whether a request is of an administrator, or a project's user.

    Servers act as users that Heat has made.
    """
    domain = cfg.CONF.stack_user_domain_id
    is_user = (
        context.project_id == stack.tenant_id
        and (domain is None or context.user_domain_id != domain)
        # Without such a domain Heat makes the users in the project itself.
        and cfg.CONF.heat_stack_user_role not in context.roles
    )
    return bool(context.is_admin or is_user)
