# SPDX-License-Identifier: Apache-2.0
"""Which resources engines have locked, and had when they died.

And how those are taken from them. Heat looks for such a lock only once it
wants the resource itself; one statement here tells of all stacks.
"""

from collections import abc
import dataclasses
from typing import TypeAlias

from heat.common import context as heat_context
from heat.common import service_utils
from heat.db import api as db_api
from heat.db import models
from heat.engine import resource
from heat.engine import stack as parser
from heat.objects import service as service_objects
import sqlalchemy

from heat_plugins.engine.database import rows

#: Why a resource has failed that was taken away; with the engine's id.
_REASON = 'Engine %s has died'

Key: TypeAlias = tuple[int, int | None, bool]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Held:
    """A resource that an engine is working on, or was when it died.

    :ivar id: its number in the database.
    :ivar engine_id: None if it was taken away from an engine that has died,
        or none has started with it.
    :ivar version: changes with each change of its row.
    :ivar reason: why it has failed, if it has.
    :ivar has_begun: False if an engine has made it, and it is not known
        whether another one was told to begin with it.
    :ivar stack_has_failed: as it was looked for, which takes a while.
    """

    id: int
    name: str
    stack_id: str
    engine_id: str | None
    version: int | None
    reason: str
    has_begun: bool = True
    stack_has_failed: bool = False

    @property
    def key(self) -> Key:
        """What tells it from itself after a change."""
        return self.id, self.version, self.stack_has_failed


def dead_engines(
    context: heat_context.RequestContext, engine_ids: abc.Set[str | None]
) -> abc.Set[str | None]:
    """Return which of some engines neither report nor answer."""
    suspects = engine_ids - {None}
    if suspects:
        suspects -= _reporting(context)
    return {
        engine_id
        for engine_id in suspects
        # It may have trouble with the database alone.
        if not service_utils.engine_alive(context, engine_id)
    }


def held(context: heat_context.RequestContext) -> list[Held]:
    """Return what engines are working on, or were when they died.

    This includes what was taken from them and not checked again yet, and
    replacements that no engine has started.
    """
    row, stack, deployment = (
        models.Resource,
        models.Stack,
        models.SoftwareDeployment,
    )
    # Of several of a name that a traversal has made, each in the place of one
    # before.
    is_last = ~rows.is_made_anew(stack.raw_template_id)
    in_work = sqlalchemy.and_(
        row.status == 'IN_PROGRESS', row.engine_id.is_not(None)
    )
    is_to_go_on = sqlalchemy.and_(
        stack.status == 'IN_PROGRESS',
        # Otherwise its replacement is in progress.
        sqlalchemy.or_(
            row.action == 'DELETE',
            sqlalchemy.and_(row.replaced_by.is_(None), is_last),
        ),
    )
    # If the stack has failed before anybody checked it.
    is_on_server = sqlalchemy.and_(
        stack.status == 'FAILED',
        sqlalchemy.exists().where(
            rows.is_of_resource(), deployment.status == 'IN_PROGRESS'
        ),
    )
    taken = sqlalchemy.and_(
        row.status == 'FAILED',
        row.engine_id.is_(None),
        row.status_reason.like(_REASON % '%'),
        sqlalchemy.or_(is_to_go_on, is_on_server),
    )
    # Heat commits a replacement before it sends who is to begin with it.
    unbegun = sqlalchemy.and_(
        stack.status == 'IN_PROGRESS',
        row.action == 'INIT',
        row.engine_id.is_(None),
        row.replaces.is_not(None),
        row.current_template_id == stack.raw_template_id,
        is_last,
    )
    query = (
        sqlalchemy.select(
            row.id,
            row.name,
            row.stack_id,
            row.engine_id,
            row.atomic_key,
            row.status_reason,
            row.action,
            stack.status.label('stack_status'),
        )
        .join(stack, row.stack_id == stack.id)
        .where(
            sqlalchemy.or_(in_work, taken, unbegun),
            stack.status.in_(('IN_PROGRESS', 'FAILED')),
            stack.convergence.is_(True),
            stack.deleted_at.is_(None),
        )
    )
    with db_api.context_manager.reader.using(context) as session:
        return [
            Held(
                id=found.id,
                name=found.name,
                stack_id=found.stack_id,
                engine_id=found.engine_id,
                version=found.atomic_key,
                reason=(
                    _REASON % found.engine_id
                    if found.engine_id
                    else found.status_reason
                ),
                has_begun=found.action != 'INIT',
                stack_has_failed=found.stack_status == 'FAILED',
            )
            for found in session.execute(query)
        ]


def _reporting(
    context: heat_context.RequestContext,
) -> abc.Set[str]:
    """Return the engines that have reported to the database recently."""
    return {
        row.engine_id
        for row in service_objects.Service.get_all(context)
        if service_utils.format_service(row)[service_utils.SERVICE_STATUS]
        == 'up'
    }


def load(held: Held) -> tuple[parser.Stack, resource.Resource, object]:
    """Return the stack of a resource, the resource, and what it refers to.

    Its references are weak, so the caller must keep the last as long as it.
    """
    context = heat_context.get_admin_context()
    stack = parser.Stack.load(
        context, stack_id=held.stack_id, use_stored_context=True
    )
    # Else Heat deletes the trust of a stack by one Keystone client, and fails
    # to log in by another one for what it deletes after that.
    stack.context.user_id = stack.context.trustor_user_id
    # By its own template: that of a stack in deletion is empty.
    found, *scope = resource.Resource.load(
        stack.context, held.id, stack.current_traversal, False, {}
    )
    return stack, found, scope


def take_away(context: heat_context.RequestContext, held: Held) -> bool:
    """Take a resource from a dead engine; of several that try, one does.

    One that was taken before gets another version: the others wait again.
    """
    return change(
        context,
        held,
        engine_id=None,
        status='FAILED',
        status_reason=held.reason,
    )


def change(
    context: heat_context.RequestContext, held: Held, **values: object
) -> bool:
    """Change a resource, and its version, unless another process has."""
    changed: bool = db_api.resource_update(
        context,
        held.id,
        values,
        held.version,
        expected_engine_id=held.engine_id,
    )
    return changed
