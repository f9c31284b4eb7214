# SPDX-License-Identifier: Apache-2.0
"""What Heat's database knows of a server: the resources that stand for it."""

from collections.abc import Mapping
import contextlib
import dataclasses
from typing import Any

from heat.db import api as db_api
from heat.db import models
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins.engine import heat_types

# Where Heat keeps the id of the Zaqar queue that a server reads.
_QUEUE = 'metadata_queue_id'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource that has a server's id as its physical one.

    :ivar stack_id: of the stack that has the resource.
    :ivar root_stack_id: of the stack that has the resource.
    :ivar metadata: of the resource.
    :ivar has_queue: whether its server is told of configs through Zaqar.
    """

    name: str
    stack_id: str
    stack_name: str
    root_stack_id: str
    metadata: Mapping[str, Any]
    has_queue: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server:
    """A server of the project.

    :ivar resources: none if no stack has it, and perhaps several: anybody
        can give the id to a resource of his own as `external_id`.
    """

    id: str
    resources: tuple[Resource, ...]

    @property
    def has_queue(self) -> bool:
        return any(each.has_queue for each in self.resources)


def find(context: heat_types.Context, server_id: str) -> Server:
    """Look for a server in the stacks of a project.

    Heat's table has no index for physical ids, so each call reads it whole:
    ask once, and keep the answer.
    """
    resource, stack, data = models.Resource, models.Stack, models.ResourceData
    has_queue = (
        sqlalchemy.select(data.id)
        .where(data.resource_id == resource.id, data.key == _QUEUE)
        .exists()
    )
    query = (
        sqlalchemy.select(
            resource.name,
            resource.stack_id,
            stack.name.label('stack_name'),
            resource.root_stack_id,
            resource.rsrc_metadata,
            has_queue.label('has_queue'),
        )
        .join(stack, stack.id == resource.stack_id)
        .where(
            resource.physical_resource_id == server_id,
            stack.tenant == context.project_id,
        )
    )
    with db_api.context_manager.reader.using(context) as session:
        rows = session.execute(query).all()
    return Server(
        id=server_id,
        resources=tuple(
            Resource(
                name=row.name,
                stack_id=row.stack_id,
                stack_name=row.stack_name,
                root_stack_id=row.root_stack_id,
                metadata=row.rsrc_metadata or {},
                has_queue=row.has_queue,
            )
            for row in rows
        ),
    )


def path(
    context: heat_types.Context, server: Server, root_stack_id: str
) -> str:
    """Return a server's name for people: its resource's path in the stack.

    :param root_stack_id: of the stack whose reader is told.
    :returns: a path such as ``group.0.server``; the server's id if that
        stack has no resource for it, or the database does not say.
    """
    names: list[str] = []
    for each in server.resources:
        if each.root_stack_id == root_stack_id:
            with contextlib.suppress(db_exception.DBError):
                names = [*_above(context, each.stack_id), each.name]
                break
    return '.'.join(names) or server.id


def _above(context: heat_types.Context, stack_id: str) -> list[str]:
    """Return the names of the resources that a stack is nested in."""
    stack = models.Stack
    names: list[str] = []
    with db_api.context_manager.reader.using(context) as session:
        above: str | None = stack_id
        while above is not None:
            query = sqlalchemy.select(
                stack.owner_id, stack.parent_resource_name
            ).where(stack.id == above)
            row = session.execute(query).one_or_none()
            above = row and row.owner_id
            if row and row.owner_id:
                names.insert(0, row.parent_resource_name)
    return names
