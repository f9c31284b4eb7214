# SPDX-License-Identifier: Apache-2.0
"""Write to servers' metadata the configs that they must run.

Heat tells one server at a time, reads its whole table of resources to find
that, and does so for each deployment. Here a few statements serve hundreds,
and threads that change one server's metadata at the same time share a write.
Servers that read their metadata from the object store take a request each,
some at a time. Heat itself serves those with a Zaqar queue.
"""

from collections import abc
import dataclasses
import functools
from http import cookiejar
import time
from typing import TypeAlias

from heat.engine import api as engine_api
from heat.engine import service_software_config
from oslo_config import cfg
from oslo_serialization import jsonutils
import requests
from requests import adapters

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.objectstore import sharing

LOG = foreign.logger(__name__)

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


# A server, and the resource through which it is told.
_Server: TypeAlias = tuple[str, heat_values.ServerResource]


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
        tellings(context.project_id, reading_project).share(wanted)
    elif wanted:
        _tell(reading_project, wanted)


@functools.lru_cache(1024)
def tellings(
    project_id: str, reading_project: str | None
) -> sharing.Batches[str, heat_types.Context]:
    """Return the batches that tell the servers of one project together."""
    return sharing.Batches(
        functools.partial(_tell, reading_project), lambda exc: False
    )


@rows.retried
def _tell(
    reading_project: str | None,
    wanted: abc.Mapping[str, heat_types.Context],
) -> abc.Collection[str]:
    """Write servers' configs to where they read them."""
    context = next(iter(wanted.values()))
    pending, others = set(wanted), set()
    for _attempt in range(_ATTEMPTS):
        # Heat, too, takes the first of several.
        servers = [
            (each, server.resources[0])
            for each, server in resources.find_all(context, pending).items()
            if server.resources and not server.resources[0].is_deleting
        ]
        others |= {each for each, part in servers if part.has_queue}
        pending = _write(
            context, [each for each in servers if not each[1].has_queue]
        )
        if not pending:
            break
    # Heat's own way insists longer.
    _requests.each(
        functools.partial(_request, context, reading_project),
        others | pending,
    )
    return ()


def _write(
    context: heat_types.Context, servers: abc.Sequence[_Server]
) -> set[str]:
    """Write the metadata of servers; return those changed meanwhile."""
    if not servers:
        return set()
    _leave_gap([each for each, part in servers if part.put_url])
    configs = rows.configs_of(context, [each for each, _ in servers])
    changed = [
        (each, dataclasses.replace(part, metadata=metadata))
        for each, part in servers
        if (
            metadata := {
                **part.metadata,
                'deployments': [
                    engine_api.format_software_config(config)
                    for config in sorted(
                        configs[each], key=lambda config: config.name or ''
                    )
                ],
            }
        )
        # One that was written, and not put, is put again.
        != part.metadata
        or part.put_url
    ]
    written = resources.write_metadata(context, [each for _, each in changed])
    to_put = [
        (each, part)
        for each, part in changed
        if part.put_url and part.number in written
    ]
    _requests.each(_put, to_put)
    # Who has written meanwhile may have put before that.
    now: abc.Mapping[int, int | None] = {}
    if to_put:
        now = resources.versions(context, [each.number for _, each in to_put])
    return {
        each
        for each, part in changed
        if part.number not in written
        or (part.put_url and now.get(part.number) != part.next_version)
    }


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
    server_id, part = server
    _written_at[server_id] = time.monotonic()
    try:
        retrying.insist(_put_once, part)
    except errors.ServiceError as exc:
        _log(server_id, exc)


def _put_once(part: heat_values.ServerResource) -> None:
    """PUT a server's metadata at its signed URL."""
    try:
        answer = session().put(
            part.put_url or '',
            jsonutils.dumps(part.metadata),
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
def session() -> requests.Session:
    """Return the session that keeps connections for all threads.

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
    """Log that a server was not told."""
    LOG.error(
        'Cannot update the metadata of server %(server)s: %(error)s',
        {'server': server_id, 'error': exc},
    )


def _request(
    context: heat_types.Context, reading_project: str | None, server_id: str
) -> None:
    """Have Heat write a server's metadata, and notify the server.

    :param reading_project: of the stack's user, who reads the metadata.
    """
    try:
        service_software_config.SoftwareConfigService()._push_metadata_software_deployments(
            context, server_id, reading_project
        )
    except Exception as exc:
        _log(server_id, errors.ServiceError(type(exc).__name__))
