# SPDX-License-Identifier: Apache-2.0
"""Telling many servers what they must run.

Heat tells one server at a time, and reads its whole table of resources to
find that. Here a few statements serve hundreds. Servers that Heat tells
through Swift or Zaqar take a request each; these go Heat's own way, some at
a time.
"""

from collections import abc
from concurrent import futures
import dataclasses
from typing import Any

from heat.db import api as db_api
from heat.db import models
from heat.engine import api as engine_api
import sqlalchemy
from sqlalchemy import orm

from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.engine import in_process
from heat_plugins.engine import rows

LOG = foreign.logger(__name__)

# What Heat keeps with a server that it tells by a request.
_BY_REQUEST = ('metadata_put_url', 'metadata_queue_id')

# Requests at a time.
_WORKERS = 8

# Metadata that somebody else changes meanwhile is read anew.
_ATTEMPTS = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Server:
    """The resource that stands for a server.

    :ivar number: of the resource, in the database.
    """

    number: int
    id: str
    metadata: dict[str, Any]
    version: int | None
    by_request: bool


def tell(
    context: heat_types.Context,
    server_ids: abc.Collection[str],
    reading_project: str | None = None,
) -> None:
    """Write to servers' metadata the configs of their deployments.

    A server that cannot be told keeps none of the others waiting. The log
    says which; whoever tells it the next time writes all.

    :param reading_project: whose queues the servers read, for Zaqar.
    :raises oslo_db.exception.DBError: the database did not answer.
    """
    pending = set(server_ids)
    by_request: set[str] = set()
    for _attempt in range(_ATTEMPTS):
        changed: set[str] = set()
        for some in rows.batches(pending):
            servers = _find(context, some)
            by_request |= {one.id for one in servers if one.by_request}
            changed |= _write(
                context, [one for one in servers if not one.by_request]
            )
        if not changed:
            break
        pending = changed
    else:
        # Heat's own way insists longer.
        by_request |= pending
    if by_request:
        with futures.ThreadPoolExecutor(_WORKERS) as executor:
            for each in by_request:
                executor.submit(_request, context, each, reading_project)


def _find(
    context: heat_types.Context, server_ids: abc.Sequence[str]
) -> list[_Server]:
    resource, stack, data = models.Resource, models.Stack, models.ResourceData
    by_request = (
        sqlalchemy.select(data.id)
        .where(data.resource_id == resource.id, data.key.in_(_BY_REQUEST))
        .exists()
    )
    query = (
        sqlalchemy.select(
            resource.id,
            resource.physical_resource_id,
            resource.rsrc_metadata,
            resource.atomic_key,
            resource.action,
            by_request.label('by_request'),
        )
        .join(stack, stack.id == resource.stack_id)
        .where(
            resource.physical_resource_id.in_(server_ids),
            stack.tenant == context.project_id,
        )
        .order_by(resource.id)
    )
    found: dict[str, Any] = {}
    with db_api.context_manager.reader.using(context) as session:
        for row in session.execute(query):
            # Heat, too, takes the first of several.
            found.setdefault(row.physical_resource_id, row)
    return [
        _Server(
            number=row.id,
            id=row.physical_resource_id,
            metadata=row.rsrc_metadata or {},
            version=row.atomic_key,
            by_request=row.by_request,
        )
        for row in found.values()
        if row.action != 'DELETE'
    ]


def _write(
    context: heat_types.Context, servers: abc.Sequence[_Server]
) -> set[str]:
    """Write the metadata of servers; return whose was changed meanwhile."""
    configs = _configs(context, [one.id for one in servers])
    resource = models.Resource
    statements = {}
    for one in servers:
        metadata = {**one.metadata, 'deployments': configs.get(one.id, [])}
        if metadata == one.metadata:
            continue
        statements[one.id] = (
            sqlalchemy.update(resource)
            .where(
                resource.id == one.number,
                resource.engine_id.is_(None),
                resource.atomic_key == one.version,
            )
            .values(rsrc_metadata=metadata, atomic_key=(one.version or 0) + 1)
        )
    return statements.keys() - rows.change_each(context, statements)


def _configs(
    context: heat_types.Context, server_ids: abc.Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return what Heat has to tell servers, by their ids."""
    deployment = models.SoftwareDeployment
    query = (
        sqlalchemy.select(deployment)
        .join(deployment.config)
        .options(orm.contains_eager(deployment.config))
        .where(
            deployment.server_id.in_(server_ids),
            sqlalchemy.or_(
                deployment.tenant == context.project_id,
                deployment.stack_user_project_id == context.project_id,
            ),
        )
        .order_by(deployment.created_at)
    )
    found: dict[str, list[Any]] = {}
    with db_api.context_manager.reader.using(context) as session:
        for row in session.execute(query).scalars():
            found.setdefault(row.server_id, []).append(row.config)
    return {
        server_id: [
            engine_api.format_software_config(config)
            for config in sorted(configs, key=lambda one: one.name or '')
        ]
        for server_id, configs in found.items()
    }


def _request(
    context: heat_types.Context, server_id: str, reading_project: str | None
) -> None:
    try:
        in_process.tell(context, server_id, reading_project)
    except Exception as exc:
        LOG.error(
            'Server %(server)s was not told what it must run: %(error)s',
            {'server': server_id, 'error': type(exc).__name__},
        )
