# SPDX-License-Identifier: Apache-2.0
"""Tell servers what they must run, one or many.

Heat tells one server at a time, reads its whole table of resources to find
that, and does so for each deployment. Here a few statements serve hundreds,
and who tells a server while it is being told shares the next time. Servers
that read their metadata from the object store take a request each, some at a
time. Those with a Zaqar queue go Heat's own way.
"""

from collections import abc
import dataclasses
import functools
from http import cookiejar
import time
from typing import Any

from heat.db import api as db_api
from heat.db import models
from heat.engine import api as engine_api
from heat.engine import service_software_config
from oslo_config import cfg
from oslo_serialization import jsonutils
import requests
from requests import adapters
import sqlalchemy
from sqlalchemy import orm

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pool as pools
from heat_plugins import retrying
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows
from heat_plugins.objectstore import sharing

LOG = foreign.logger(__name__)

# What Heat stores with a server whose metadata it sends by a request.
_PUT_URL, _QUEUE = 'metadata_put_url', 'metadata_queue_id'

# Attempts to change metadata that another process changes, too.
_ATTEMPTS = 5

# The agent takes an object for what it has seen if it was changed in the same
# second, by its Last-Modified.
_SWIFT_GAP = 1.0

# When the objects of servers were written, by `time.monotonic`.
_written_at: dict[str, float] = {}

# Connections to keep for the next requests.
_CONNECTIONS = 64

# Each request insists by itself.
_requests = pools.Pool(attempts=1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Server:
    """The resource that stands for a server.

    :ivar number: of the resource, in the database.
    :ivar put_url: where the server reads its metadata, if in the object store.
    """

    number: int
    id: str
    metadata: dict[str, Any]
    version: int | None
    put_url: str | None
    has_queue: bool


def tell(
    context: heat_types.Context,
    server_ids: abc.Collection[str],
    reading_project: str | None = None,
) -> None:
    """Write to servers' metadata the configs of their deployments.

    A server whose metadata cannot be written does not delay the others. The
    log names it; the next call for it writes all.

    :param reading_project: whose queues the servers read, for Zaqar.
    :raises oslo_db.exception.DBError: the database did not answer.
    """
    wanted = dict.fromkeys(server_ids, context)
    if len(wanted) == 1:
        _tellings(context.project_id, reading_project).share(wanted)
    elif wanted:
        _tell(reading_project, wanted)


@functools.lru_cache(1024)
def _tellings(
    project_id: str, reading_project: str | None
) -> sharing.Batches[str, heat_types.Context]:
    """Return what tells servers together, which then all see the same."""
    return sharing.Batches(
        functools.partial(_tell, reading_project), lambda exc: False
    )


def _tell(
    reading_project: str | None,
    wanted: abc.Mapping[str, heat_types.Context],
) -> abc.Collection[str]:
    context = next(iter(wanted.values()))
    pending, others = set(wanted), set()
    for _attempt in range(_ATTEMPTS):
        changed: set[str] = set()
        for some in rows.batches(pending):
            servers = _find(context, some)
            others |= {one.id for one in servers if one.has_queue}
            changed |= _write(
                context, [one for one in servers if not one.has_queue]
            )
        pending = changed
        if not pending:
            break
    # Heat's own way insists longer.
    _requests.each(
        functools.partial(_request, context, reading_project),
        others | pending,
    )
    return ()


def _find(
    context: heat_types.Context, server_ids: abc.Sequence[str]
) -> list[_Server]:
    resource, stack, data = models.Resource, models.Stack, models.ResourceData
    query = (
        sqlalchemy.select(
            resource.id,
            resource.physical_resource_id,
            resource.rsrc_metadata,
            resource.atomic_key,
            resource.action,
            data.key,
            data.value,
        )
        .join(stack, stack.id == resource.stack_id)
        .join(
            data,
            sqlalchemy.and_(
                data.resource_id == resource.id,
                data.key.in_((_PUT_URL, _QUEUE)),
            ),
            isouter=True,
        )
        .where(
            resource.physical_resource_id.in_(server_ids),
            stack.tenant == context.project_id,
        )
        .order_by(resource.id)
    )
    found: dict[str, Any] = {}
    kept: dict[tuple[int, str], str] = {}
    with db_api.context_manager.reader.using(context) as session:
        for row in session.execute(query):
            # Heat, too, takes the first of several.
            found.setdefault(row.physical_resource_id, row)
            kept[row.id, row.key] = row.value
    return [
        _Server(
            number=row.id,
            id=row.physical_resource_id,
            metadata=row.rsrc_metadata or {},
            version=row.atomic_key,
            put_url=kept.get((row.id, _PUT_URL)),
            has_queue=(row.id, _QUEUE) in kept,
        )
        for row in found.values()
        if row.action != 'DELETE'
    ]


def _write(
    context: heat_types.Context, servers: abc.Sequence[_Server]
) -> set[str]:
    """Write the metadata of servers; return whose was changed meanwhile."""
    if not servers:
        return set()
    _leave_gap([one.id for one in servers if one.put_url])
    configs = _configs(context, [one.id for one in servers])
    made = [
        dataclasses.replace(
            one,
            metadata={**one.metadata, 'deployments': configs.get(one.id, [])},
        )
        for one in servers
    ]
    # One that was written, and not put, is put again.
    written = [
        new
        for new, old in zip(made, servers, strict=True)
        if new.put_url or new.metadata != old.metadata
    ]
    changed = _update(context, written)
    to_put = [one for one in written if one.put_url and one.id not in changed]
    _requests.each(_put, to_put)
    # Who has written meanwhile may have put before that.
    return changed | _outdated(context, to_put)


def _update(
    context: heat_types.Context, servers: abc.Sequence[_Server]
) -> set[str]:
    """Write metadata; return the ids of those whose version is another one."""
    resource = models.Resource
    statements = {
        one.id: sqlalchemy.update(resource)
        .where(
            resource.id == one.number,
            resource.engine_id.is_(None),
            resource.atomic_key == one.version,
        )
        .values(rsrc_metadata=one.metadata, atomic_key=_next(one))
        for one in servers
    }
    return statements.keys() - rows.change_each(context, statements)


def _outdated(
    context: heat_types.Context, servers: abc.Sequence[_Server]
) -> set[str]:
    """Return the ids of those that were written again since `_update`."""
    if not servers:
        return set()
    resource = models.Resource
    query = sqlalchemy.select(resource.id, resource.atomic_key).where(
        resource.id.in_([one.number for one in servers])
    )
    with db_api.context_manager.reader.using(context) as session:
        versions = {row.id: row.atomic_key for row in session.execute(query)}
    return {
        one.id for one in servers if versions.get(one.number) != _next(one)
    }


def _next(server: _Server) -> int:
    """Return the version of the metadata that is written to a server."""
    return (server.version or 0) + 1


def _leave_gap(server_ids: abc.Collection[str]) -> None:
    """Wait until none of these was written to in the last second."""
    now = time.monotonic()
    for each, at in list(_written_at.items()):
        if now - at >= _SWIFT_GAP:
            _written_at.pop(each, None)
    early = [_written_at[each] for each in server_ids if each in _written_at]
    if early:
        time.sleep(max(early) + _SWIFT_GAP - now)


def _put(server: _Server) -> None:
    """Write the object from which a server reads its metadata."""
    _written_at[server.id] = time.monotonic()
    try:
        retrying.insist(_put_once, server)
    except errors.ServiceError as exc:
        _log(server.id, exc)


def _put_once(server: _Server) -> None:
    try:
        answer = _session().put(
            server.put_url or '',
            jsonutils.dumps(server.metadata),
            timeout=cfg.CONF.metadata_put_timeout,
        )
    except requests.RequestException as exc:
        # It quotes the URL, which is signed.
        raise errors.Unavailable(type(exc).__name__) from None
    if answer.status_code >= 500:
        raise errors.Unavailable(f'HTTP {answer.status_code}')
    if answer.status_code >= 400:
        raise errors.ServiceError(f'HTTP {answer.status_code}')


@functools.lru_cache(1)
def _session() -> requests.Session:
    """Return what keeps connections, for all threads.

    Each of Heat's threads comes here sooner or later. With a connection of
    its own each would keep one open, and with TLS some memory as well.
    """
    session = requests.Session()
    # What a store sets for one project is not for the requests of another.
    session.cookies.set_policy(
        cookiejar.DefaultCookiePolicy(allowed_domains=())
    )
    adapter = adapters.HTTPAdapter(pool_maxsize=_CONNECTIONS)
    session.mount('https://', adapter)
    session.mount('http://', adapter)
    return session


def _log(server_id: str, exc: Exception) -> None:
    LOG.error(
        'Cannot update the metadata of server %(server)s: %(error)s',
        {'server': server_id, 'error': exc},
    )


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
    context: heat_types.Context, reading_project: str | None, server_id: str
) -> None:
    """Tell a server as Heat does."""
    try:
        service_software_config.SoftwareConfigService()._push_metadata_software_deployments(
            context, server_id, reading_project
        )
    except Exception as exc:
        _log(server_id, errors.ServiceError(type(exc).__name__))
