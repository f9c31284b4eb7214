# SPDX-License-Identifier: Apache-2.0
"""Keep the deployments of projects apart.

A user who creates a deployment through Heat's API may name any server, and any
project as ``stack_user_project_id``. Heat then counts the row as that
project's, too, and gives its config to the server, whose agent runs it as
root. Here a row counts for the project in which it was created, and for the
users that Heat has made for that project's stacks.
"""

from collections import abc
from typing import Any, TypeAlias

from heat.common import context as heat_context
from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api

from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows

_Function: TypeAlias = abc.Callable[..., Any]

# What replaces functions of Heat's; see `engine.patches`


def own_deployments(get_all: _Function) -> _Function:
    """Let a project list its own deployments alone."""

    def get_own(
        context: heat_types.Context, *args: Any, **kwargs: Any
    ) -> list[Any]:
        return _own(context, get_all(context, *args, **kwargs))

    return get_own


def own_deployment(get: _Function) -> _Function:
    """Let a project read its own deployments alone."""

    def get_own(context: heat_types.Context, deployment_id: str) -> Any:
        deployment = get(context, deployment_id)
        if context is not None and not _own(context, [deployment]):
            raise exception.NotFound(
                _('Deployment with id %s not found') % deployment_id
            )
        return deployment

    return get_own


def own_count(count_all: _Function) -> _Function:
    """Let a project's own deployments alone count against its limit."""

    def count_own(context: heat_types.Context) -> int:
        if context.is_admin:
            return int(count_all(context))
        return rows.own_count(context)

    return count_own


def _own(context: heat_types.Context, deployments: list[Any]) -> list[Any]:
    """Return which deployments are of the caller's project.

    For a user that Heat has made for stacks, these are the deployments of the
    project that has the stacks. Administrators see all.
    """
    foreign = {
        each.tenant
        for each in deployments
        if each.tenant != context.project_id
    }
    if context.is_admin or not foreign:
        return deployments
    own = resources.projects_with_users_in(
        context, context.project_id, foreign
    )
    own.add(context.project_id)
    return [each for each in deployments if each.tenant in own]


def as_server_project(tell: _Function) -> _Function:
    """Let an administrator's request act as the project of the server.

    Heat filters nothing for an administrator, so it would give a server what
    any project has created for it.
    """

    def tell_as_its_project(
        service: Any,
        cnxt: heat_types.Context,
        server_id: str,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if cnxt.is_admin and server_id:
            project_id = str(cnxt.project_id)
            server = db_api.resource_get_by_physical_resource_id(
                cnxt, server_id
            )
            if server is not None:
                project_id = resources.project_of_stack(cnxt, server.stack_id)
            cnxt = heat_types.in_project(cnxt, project_id, is_admin=False)
        return tell(service, cnxt, server_id, *args, **kwargs)

    return tell_as_its_project


def naming_own_project(create: _Function) -> _Function:
    """Let a deployment name no other project's users as its readers."""

    def create_checked(
        service: Any,
        cnxt: heat_types.Context,
        server_id: str,
        config_id: str | None,
        input_values: Any,
        action: str,
        status: str,
        status_reason: str,
        stack_user_project_id: str | None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        named = stack_user_project_id
        if not (
            named in (None, cnxt.project_id)
            or cnxt.is_admin
            # It may be that of the users of the caller's stacks.
            or resources.has_users_in(cnxt, named)
        ):
            raise exception.Invalid(
                reason=_(
                    '"stack_user_project_id" is neither the project nor that '
                    'of the users of one of its stacks'
                )
            )
        return create(
            service,
            cnxt,
            server_id,
            config_id,
            input_values,
            action,
            status,
            status_reason,
            stack_user_project_id,
            *args,
            **kwargs,
        )

    checked: _Function = heat_context.request_context(create_checked)
    return checked
