# SPDX-License-Identifier: Apache-2.0
"""Who sends a signal, and what that lets them do.

Heat lets every user of a stack's domain signal every resource of the stack:
so does whoever holds the credentials of any of its servers. heat-engine
handles signals in the name of the stack's owner. Of the request it keeps the
context that the stack was loaded with, which the stack's definition holds in
each Heat from 24 on.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

from heat.common import context as heat_context
from heat.common.i18n import _
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins.engine import heat_types
from heat_plugins.resources import deployment_schema

if TYPE_CHECKING:
    _Resource = heat_types.Resource
else:
    _Resource = object

for _name in ('heat_stack_user_role', 'stack_user_domain_id'):
    cfg.CONF.import_opt(_name, 'heat.common.config')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signaller:
    """Who sends a signal.

    :ivar user_id: None if heat-engine cannot know it.
    :ivar is_of_project: whether it is a user of the stack's project, or an
        administrator; False if heat-engine cannot know it.
    """

    user_id: str | None
    is_of_project: bool

    @property
    def is_of_server(self) -> bool:
        """Whether it has credentials of the stack, as its servers do."""
        return self.user_id is not None and not self.is_of_project


UNKNOWN = Signaller(user_id=None, is_of_project=False)


def of(stack: heat_types.Stack) -> Signaller:
    """Return who sends the signal that a stack was loaded for."""
    context: Any = getattr(stack.defn, '_context', None)
    # A stored context is the owner's, whoever sends the signal.
    if isinstance(context, heat_context.StoredContext):
        return UNKNOWN
    user_id = getattr(context, 'user_id', None)
    if user_id is None:
        return UNKNOWN
    return Signaller(
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


class Signalled(_Resource):
    """The part of a resource that asks who signals it.

    :ivar signaller: who does, if another resource hands the signal on.
    """

    signaller: Signaller | None = None

    def _signaller(self) -> Signaller:
        return self.signaller or of(self.stack)

    def _check_may_trigger(self) -> None:
        """Refuse a trigger that the template lets no server send.

        :raises errors.Refused: it came with credentials of the stack, or
            perhaps did.
        """
        signaller = self._signaller()
        if signaller.is_of_project or any(
            self.properties[name] for name in deployment_schema.CONSENTS
        ):
            return
        why = _('heat-engine cannot tell whose credentials sent it')
        if signaller.is_of_server:
            why = _("it was sent with credentials of the stack's servers")
        raise errors.Refused(
            _('%(why)s. To permit that, set property "%(property)s"')
            % {'why': why, 'property': deployment_schema.TRIGGER_BY_SERVERS}
        )
