# SPDX-License-Identifier: Apache-2.0
"""The senders of signals and the readers of URLs, with their rights.

Heat lets every user of a stack's domain signal every resource of the stack:
so does the holder of the credentials of any of its servers. It also lets every
user of the project, with no more than the role reader. So a signal that starts
something, or the result of a server that a user sends in its place, needs a
user who may update the stack, as Heat's policy says. What servers may do, each
resource type says.

heat-engine handles signals in the name of the stack's owner. Of the request it
keeps the context that the stack was loaded with, which the stack's definition
holds in each Heat from 24 on. What that user may do, the policy says that
heat-engine's own configuration names.
"""

import dataclasses
from typing import Any

from heat.common import context as heat_context
from heat.common import exception
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import heat_types

LOG = foreign.logger(__name__)

for _name in ('heat_stack_user_role', 'stack_user_domain_id'):
    cfg.CONF.import_opt(_name, 'heat.common.config')

#: The property that lets servers start actions.
BY_SERVERS = 'trigger_by_servers'

#: The policy of Heat that lets a user signal something that counts.
POLICY = 'stacks:update'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signaller:
    """The sender of a signal.

    :ivar user_id: None if heat-engine cannot know it.
    :ivar is_of_project: whether it is a user of the stack's project, or an
        administrator; False if heat-engine cannot know it.
    :ivar may_update: whether Heat's policy lets that user update the stack.
    """

    user_id: str | None
    is_of_project: bool
    may_update: bool = False

    @property
    def is_of_server(self) -> bool:
        """Whether it has credentials of the stack, as its servers do."""
        return self.user_id is not None and not self.is_of_project


UNKNOWN = Signaller(user_id=None, is_of_project=False)


def of(stack: heat_types.Stack) -> Signaller:
    """Return the sender of the signal that a stack was loaded for."""
    context = _request(stack)
    if context is None:
        return UNKNOWN
    is_user = is_of_project(context, stack)
    return Signaller(
        user_id=context.user_id,
        is_of_project=is_user,
        may_update=is_user and _is_permitted(context, stack, in_doubt=False),
    )


def may_not_update(stack: heat_types.Stack) -> bool:
    """Say whether the user of a request certainly may not update the stack.

    In doubt, such as without a user's request, the answer is False: an update
    that heat-engine resumes has no request, and must get the same answer.
    """
    context = _request(stack)
    # heat-engine sends stored credentials, with a trust, to other engines.
    if context is None or context.trust_id:
        return False
    return not _is_permitted(context, stack, in_doubt=True)


def _request(stack: heat_types.Stack) -> Any:
    """Return the context of the request that a stack was loaded for.

    None if heat-engine does not know whose it is: a stored context is the
    owner's, also for the signal of another user.
    """
    context: Any = getattr(stack.defn, '_context', None)
    if isinstance(context, heat_context.StoredContext):
        return None
    return context if getattr(context, 'user_id', None) else None


def enforce(context: Any, project_id: str) -> bool:
    """Ask Heat's policy, as heat-api does when a user updates a stack.

    :raises exception.Forbidden: that user may not.
    """
    scope, action = POLICY.split(':')
    return bool(
        context.policy.enforce(
            context,
            action,
            scope=scope,
            target={'project_id': project_id},
            is_registered_policy=True,
        )
    )


def _is_permitted(
    context: Any, stack: heat_types.Stack, *, in_doubt: bool
) -> bool:
    """Say whether Heat's policy permits a user to update a stack.

    :param in_doubt: the answer if the policy cannot be read.
    """
    # An administrator may be of another project.
    project = context.project_id if context.is_admin else stack.tenant_id
    try:
        return enforce(context, project)
    except exception.Forbidden:
        return False
    except Exception as exc:
        LOG.warning(
            'Cannot ask the policy %(policy)s about the sender of a request; '
            '%(consequence)s: %(error)s',
            {
                'policy': POLICY,
                'consequence': 'showing it trigger URLs'
                if in_doubt
                else 'refusing the signal',
                'error': exc,
            },
        )
        return in_doubt


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


def check_may_start(signaller: Signaller, *, servers_may: bool) -> None:
    """Refuse a signal that starts something its sender may not start.

    :param servers_may: whether servers of the stack may start it.
    :raises errors.Refused: the sender may not.
    """
    if signaller.is_of_project:
        check_may_update(signaller)
    elif not servers_may:
        why = 'heat-engine cannot tell whose credentials sent it'
        if signaller.is_of_server:
            why = "it was sent with credentials of the stack's servers"
        raise errors.Refused(
            f'{why}. To permit that, set property "{BY_SERVERS}"'
        )


def check_may_update(signaller: Signaller) -> None:
    """Refuse a signal of a user of the project with read access only.

    :raises errors.Refused: Heat's policy does not permit the user to update
        the stack.
    """
    if not signaller.may_update:
        raise errors.Refused(
            f'its sender may not update the stack (policy {POLICY} of Heat)'
        )
