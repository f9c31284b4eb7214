# SPDX-License-Identifier: Apache-2.0
"""Metadata of deleted servers, which Heat leaves in the object store.

A server with POLL_TEMP_URL reads its metadata from an object, in a container
of its name, by a URL that is valid until 2038. Heat 24 to 27 leave both when
they delete the server: ``_delete_temp_url`` of server_base.py calls
``does_endpoint_exist`` with its arguments swapped, so Heat believes that there
is no object store.

A container is a server's if each of its objects names itself as metadata of
that server. The server is certainly deleted if no resource of Heat's database
uses the objects, the events of its stack tell the container's name and the ID
of the server that was created under this name, Nova answers 404 to a request
for that server, and lists no server of the container's name.
"""

from collections import abc
import contextlib
import dataclasses
import itertools
from typing import Any
from urllib import parse

from heat.common import context as heat_context
from keystoneauth1 import session as ks_session

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.checks import cloud
from heat_plugins.checks import object_store
from heat_plugins.clients import nova
from heat_plugins.engine.database import former_servers
from heat_plugins.objectstore import stores

#: The most objects of a container to read, and the most bytes of each. A
#: server has one; another for each time that its transport has changed.
OBJECTS, BYTES = 10, 16 * 1024 * 1024

_NO_EVENTS = (
    "Heat's database has no event that tells the ID of its server. Delete it "
    'if you know that the server is gone.'
)
_DEPLOYED = (
    'It was of an OS::Heat::DeployedServer, whose machine may still read it. '
    'Delete it if no agent runs there.'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Leftover:
    """A container with the metadata of a server that Heat has no longer.

    :ivar doubt: why the server is perhaps not deleted, with the remedy; empty
        if it certainly is.
    """

    container: str
    objects: tuple[str, ...]
    doubt: str = ''


@cloud.reported
def check(report: cloud.CheckReport, session: ks_session.Session) -> None:
    """Name the containers of deleted servers, in the user's project."""
    try:
        found = find(session)
    except errors.ServiceError as exc:
        # Other checks fail for that, and name the remedy.
        report.unsure(f'Not checked: {exc}.')
        return
    certain = [each.container for each in found if not each.doubt]
    if certain:
        report.warn(
            'Heat has left the metadata of deleted servers, with a URL that '
            f'is valid until 2038, in containers {bounds.listed(certain)}. '
            '"heat-plugins-status leftover remove" removes them; see "What '
            'Heat leaves in Swift" in the page on servers that change.'
        )
    doubtful = len(found) - len(certain)
    if doubtful:
        report.good(
            f'Of {wording.counted(doubtful, "container")} it is not certain; '
            'see "heat-plugins-status leftover list".'
        )
    if not found:
        report.good('Heat has left none in this project.')


def find(session: ks_session.Session) -> list[Leftover]:
    """Return the containers of servers that Heat has no longer, by name.

    :raises errors.ServiceError: the object store cannot be read, or Heat's
        database.
    """
    store = _store(session)
    # Heat notes the name of an object before it writes the object. So what is
    # read here before the database, and is not in there, was deleted.
    written = dict(_written(store))
    if not written:
        return []
    project_id = str(store.project_id or session.get_project_id())
    with _reading_database():
        context = heat_context.get_admin_context()
        used = former_servers.objects_in_use(
            context, set().union(*written.values())
        )
        unused = {
            name: objects
            for name, objects in written.items()
            if used.isdisjoint(objects)
        }
        pasts = former_servers.pasts(context, project_id, unused)
    servers = _Servers(session)
    return [
        Leftover(
            container=name,
            objects=objects,
            doubt=_doubt(name, pasts.get(name), servers),
        )
        for name, objects in sorted(unused.items())
        if name not in pasts or not pasts[name].is_there
    ]


def remove(session: ks_session.Session, leftover: Leftover) -> None:
    """Delete a container with the objects that were found in it.

    :raises errors.ServiceError: it remains; `errors.Conflict` if something
        else was written into it meanwhile.
    """
    store = _store(session)
    for name in leftover.objects:
        store.delete_object(leftover.container, name)
    with contextlib.suppress(errors.NoObject):
        store.delete_container(leftover.container)


def _store(session: ks_session.Session) -> stores.ObjectStore:
    return stores.ObjectStore(object_store.connect(session))


def _written(
    store: stores.ObjectStore,
) -> abc.Iterator[tuple[str, tuple[str, ...]]]:
    """Yield containers with nothing but metadata of a server, and objects."""
    for container in store.iterate('', ''):
        name = container.name
        if not former_servers.is_made_up(name):
            continue
        with contextlib.suppress(errors.NoObject):
            entries = [*itertools.islice(store.iterate(name, ''), OBJECTS + 1)]
            if 0 < len(entries) <= OBJECTS and all(
                _is_metadata(store, name, entry) for entry in entries
            ):
                yield name, tuple(entry.name for entry in entries)


def _is_metadata(
    store: stores.ObjectStore, container: str, entry: stores.Entry
) -> bool:
    """Say whether an object names itself as the metadata of a server."""
    if entry.size > BYTES:
        return False
    try:
        content = store.get_object(container, entry.name, BYTES)
        url = parse.urlsplit(_own_url(bounds.read_json(content)))
    except (errors.TooLarge, ValueError):
        return False
    path = parse.unquote(url.path)
    return path.endswith(f'/{container}/{entry.name}')


def _own_url(metadata: Any) -> str:
    """Return the URL by which a server reads its metadata.

    :raises ValueError: there is none.
    """
    try:
        return str(metadata['os-collect-config']['request']['metadata_url'])
    except (LookupError, TypeError) as exc:
        raise ValueError from exc


@contextlib.contextmanager
def _reading_database() -> abc.Iterator[None]:
    try:
        yield
    except Exception as exc:
        # The database's message may quote its password.
        raise errors.ServiceError(
            "Cannot read Heat's database ([database] connection), which "
            f'fails with {type(exc).__name__}'
        ) from None


class _Servers:
    """Nova's servers in the project, listed when first asked for."""

    def __init__(self, session: ks_session.Session) -> None:
        self._cloud = cloud.reach(session, 'nova')
        self._names: dict[str, str] | None = None

    def like(self, name: str, ids: abc.Set[str]) -> list[str]:
        """Return the IDs of servers of a name, or that are among some.

        :raises errors.ServiceError: Nova does not tell.
        """
        # The list comes first: it fails where what answers is not Nova, and
        # would answer 404 to all else.
        if self._names is None:
            self._names = nova.servers(self._cloud)
        named = {each for each, its in self._names.items() if its == name}
        there = {each for each in ids if nova.is_there(self._cloud, each)}
        return sorted(named | there)


def _doubt(
    container: str, past: former_servers.Past | None, servers: _Servers
) -> str:
    """Say why a server is perhaps not deleted; '' if it certainly is."""
    if past is not None and past.is_deployed:
        return _DEPLOYED
    if past is None:
        return _NO_EVENTS
    try:
        like = servers.like(container, past.servers)
    except errors.ServiceError as exc:
        return f'Cannot ask Nova for its server: {exc}.'
    if like:
        return f'Nova still has server {bounds.listed(like)}.'
    return ''
