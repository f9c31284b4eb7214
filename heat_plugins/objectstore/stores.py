# SPDX-License-Identifier: Apache-2.0
"""Requests to the object store: Swift's API, which Ceph's gateway has too.

`ObjectStore` sends each request through a `wire.Transport`; `wire` says why
that is not swiftclient's.
"""

from collections import abc
import contextlib
import dataclasses
from email import utils as email_utils
import functools
import itertools
import re
from typing import Any
from urllib import parse

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.objectstore import wire

# The most entries that one listing request asks for. Swift refuses more than
# its container_listing_limit (10000 by default); Ceph's gateway gives fewer
# without a word, where rgw_max_listing_results (1000 or 5000) says so, and
# then a page that is not full does not mean that it is the last.
PAGE = 1000

#: The most entries that a listing collects, unless its caller says otherwise:
#: 50 requests, and some 25 MB of memory.
MOST = 50000

_VERSION = re.compile(r'v[0-9]+(\.[0-9]+)?')


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ListedObject:
    """An object in a listing.

    :ivar etag: the MD5 of its content, in hex, unless it is a manifest.
    """

    name: str
    size: int
    etag: str = ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fetched:
    """An object with its content.

    :ivar age: for how many seconds it was there when it was fetched, by the
        store's own clock and to the second; 0 where the store does not say.
    """

    content: bytes = dataclasses.field(repr=False)
    age: float


# 498 is Swift's, to a client that asks too often.
_KINDS: abc.Mapping[int, type[errors.ServiceError]] = {
    404: errors.NoObject,
    498: errors.Unavailable,
}


_ROLE = (
    'needs a role in this project that the object store accepts, such as '
    'member (operator_roles of Swift, rgw_keystone_accepted_roles of Ceph), '
    'or a read ACL of the container'
)

# Why a user may not read, by the status of the answer.
_HINTS = {
    401: f'. The token is invalid; or, on Ceph, the user {_ROLE}',
    403: f'. The user {_ROLE}',
}


class ObjectStore:
    """One account of an object store.

    :ivar now: the time by its own clock; see `wire.Clock`.
    """

    def __init__(self, transport: wire.Transport) -> None:
        self._transport = transport
        self.now = wire.Clock()

    @property
    def url(self) -> str:
        """The storage URL: scheme, host, prefix and, if any, account."""
        return self._transport.storage_url().rstrip('/')

    @property
    def project_id(self) -> str | None:
        """The ID of the project that owns the account; None if unknown.

        The storage URL does not tell it on Ceph.
        """
        return self._transport.project_id()

    @property
    def cluster_url(self) -> str:
        """The part of the storage URL before ``/v1``.

        It is the same for all accounts of a cluster; ``/info`` lies there
        (on Ceph too, where the storage URL is ``/swift/v1``).
        """
        parts = parse.urlsplit(self.url)
        segments = itertools.takewhile(
            lambda segment: not _VERSION.fullmatch(segment),
            parts.path.split('/'),
        )
        path = '/'.join(segments)
        return parse.urlunsplit((parts.scheme, parts.netloc, path, '', ''))

    @property
    def names_account(self) -> bool:
        """Whether the storage URL has an account after its version.

        Ceph's gateway has none there unless it is told to. Then it cannot
        tell whose key has signed a TempURL where each project has containers
        of its own (``rgw keystone implicit tenants``).
        """
        return not _VERSION.fullmatch(self.url.rpartition('/')[2])

    def info(self) -> abc.Mapping[str, Any] | None:
        """Return the content of ``/info``, or None if there is none."""
        response = self._transport.send(
            wire.Request(
                method='GET',
                url=f'{self.cluster_url}/info',
                authenticated=False,
                limit=1024 * 1024,
            )
        )
        if response.status >= 500:
            raise self._error('GET', '/info', response)
        if response.status != 200:
            return None
        try:
            info = bounds.read_json(response.body)
        except ValueError:
            return None
        return info if isinstance(info, dict) else None

    def head_account(self) -> abc.Mapping[str, str]:
        """Return the headers of the account, with names in lower case."""
        return self._call('HEAD', '').headers

    def post_account(self, headers: abc.Mapping[str, str]) -> None:
        """Set headers of the account; an empty value removes one."""
        self._call('POST', '', headers=headers)

    def head_container(self, container: str) -> abc.Mapping[str, str]:
        """Return the headers of a container, with names in lower case."""
        return self._call('HEAD', container).headers

    def put_container(
        self, container: str, headers: abc.Mapping[str, str]
    ) -> None:
        """Create a container, or set headers of an existing one."""
        self._call('PUT', container, headers=headers)

    def post_container(
        self, container: str, headers: abc.Mapping[str, str]
    ) -> None:
        """Set headers of a container; an empty value removes one."""
        self._call('POST', container, headers=headers)

    def delete_container(self, container: str) -> None:
        """Delete a container.

        :raises errors.Conflict: it is not empty.
        """
        self._call('DELETE', container)

    def list_objects(
        self, container: str, prefix: str, most: int = MOST
    ) -> list[ListedObject]:
        """List all objects below a prefix.

        :raises errors.TooManyObjects: there are more than `most`.
        """
        entries = [
            *itertools.islice(self.iterate(container, prefix), most + 1)
        ]
        if len(entries) > most:
            where = f' under {prefix}' if prefix else ''
            raise errors.TooManyObjects(
                f'Container {container} holds more than {most} '
                f'objects{where}, which is the limit. Delete those that are '
                'not needed'
            )
        return entries

    def first_names(self, container: str, prefix: str, most: int) -> list[str]:
        """List the first objects below a prefix; none without a container."""
        try:
            return [
                entry.name
                for entry in itertools.islice(
                    self.iterate(container, prefix), most
                )
            ]
        except errors.NoObject:
            return []

    def iterate(
        self,
        container: str,
        prefix: str,
        after: str = '',
    ) -> abc.Iterator[ListedObject]:
        """List objects below a prefix, page by page.

        A page is read when its first entry is asked for.

        :param after: a name; those up to it are left out.
        """
        query = {'format': 'json', 'prefix': prefix, 'limit': str(PAGE)}
        if after:
            query['marker'] = after
        while True:
            page = self._entries(container, query)
            if page and page[-1].name == query.get('marker'):
                raise errors.Unavailable(
                    f'The listing of container {container} cannot be read '
                    'beyond its first page',
                    200,
                )
            yield from page
            if len(page) < PAGE:
                return
            query['marker'] = page[-1].name

    def _entries(
        self, container: str, query: abc.Mapping[str, str]
    ) -> list[ListedObject]:
        """Read a page of a container's listing, or of the account's."""
        page = self._call('GET', container, query=query)
        try:
            return [
                ListedObject(
                    name=str(item['name']),
                    size=int(item['bytes']),
                    etag=str(item.get('hash', '')),
                )
                for item in bounds.read_json(page.body or b'[]')
            ]
        except (ValueError, OverflowError, TypeError, KeyError) as exc:
            what = f'container {container}' if container else 'the account'
            raise errors.Unavailable(
                f'The listing of {what} is invalid: {type(exc).__name__}',
                page.status,
            ) from exc

    def get_object(self, container: str, name: str, limit: int) -> bytes:
        """Return the content of an object; see `fetch`."""
        return self.fetch(container, name, limit).content

    def fetch(self, container: str, name: str, limit: int) -> Fetched:
        """Fetch an object, and never more than `limit` bytes of it.

        :raises errors.TooLarge: it is larger.
        :raises errors.NoObject: it is not there.
        """
        # The holder of a URL may PUT a manifest that names other objects of
        # the account; we want what was PUT, not what it points to.
        response = self._call(
            'GET', container, name, {'multipart-manifest': 'get'}, limit=limit
        )
        if response.truncated:
            raise errors.TooLarge(f'it is larger than {limit} bytes')
        try:
            then, now = (
                email_utils.parsedate_to_datetime(response.headers[header])
                for header in ('last-modified', 'date')
            )
            age = max(0.0, (now - then).total_seconds())
        except (KeyError, TypeError, ValueError):
            age = 0.0
        return Fetched(content=response.body, age=age)

    def put_object(
        self,
        container: str,
        name: str,
        body: bytes,
        *,
        lifetime: int | None = None,
    ) -> None:
        """Write an object, also over an existing one.

        :param lifetime: seconds after which the store deletes it itself.
        :raises errors.NoObject: there is no such container.
        """
        expiry = {} if lifetime is None else {'X-Delete-After': str(lifetime)}
        self._call('PUT', container, name, headers=expiry, body=body)

    def has_object(self, container: str, name: str) -> bool:
        """Say whether there is an object of a name."""
        try:
            self._call('HEAD', container, name)
        except errors.NoObject:
            return False
        return True

    def owned_containers(self, prefix: str) -> list[str]:
        """List containers of the account itself, at most one page.

        A HEAD would not tell the owner of a container: where all projects
        share one namespace, another one may let this one read its container.
        """
        query = {'format': 'json', 'prefix': prefix, 'limit': str(PAGE)}
        return [entry.name for entry in self._entries('', query)]

    def delete_object(self, container: str, name: str) -> None:
        """Delete an object, if it is there."""
        with contextlib.suppress(errors.NoObject):
            self._call('DELETE', container, name)

    def delete_at_once(
        self, container: str, names: abc.Sequence[str]
    ) -> list[str]:
        """Delete many objects with one request, where ``/info`` offers it.

        :param names: no more than ``max_deletes_per_request``.
        :return: those that it did not delete.
        """
        lines = [parse.quote(f'{container}/{name}') for name in names]
        answer = self._call(
            'POST',
            '',
            query={'bulk-delete': '1'},
            headers={
                'Accept': 'application/json',
                'Content-Type': 'text/plain',
            },
            body='\n'.join(lines).encode(),
        )
        try:
            # It begins to answer before it is done, so its status is in here.
            report = bounds.read_json(answer.body)
            status = str(report['Response Status'])
            failed = {
                parse.unquote(str(path)).removeprefix('/')
                for path, _ in report['Errors']
            }
        except (ValueError, TypeError, KeyError) as exc:
            raise errors.Unavailable(
                'The response to a bulk delete is invalid: '
                f'{type(exc).__name__}',
                answer.status,
            ) from exc
        if not failed and not status.startswith('200'):
            return list(names)
        return [name for name in names if f'{container}/{name}' in failed]

    def probe(self, url: str) -> bool:
        """Say whether the store accepts a signed URL, by a HEAD of it."""
        response = self._transport.send(
            wire.Request(method='HEAD', url=url, authenticated=False)
        )
        if response.status < 300 or response.status == 404:
            return True
        error = self._error('HEAD', 'a signed URL', response)
        if isinstance(error, errors.Unavailable):
            raise error
        return False

    def _call(
        self,
        method: str,
        container: str,
        name: str = '',
        query: abc.Mapping[str, str] | None = None,
        *,
        headers: abc.Mapping[str, str] | None = None,
        limit: int = 64 * 1024 * 1024,
        body: bytes | None = None,
    ) -> wire.Response:
        """Send a request to the store; raise the error that it answers."""
        # HTTP clients and proxies resolve ".." in a path, and the holder of a
        # URL for a prefix chooses names below it: `prefix/../../../other/x`
        # would be an object of another container. A slash that is quoted is
        # not a separator; a name that is nothing but dots needs those quoted.
        is_plain = {'.', '..'}.isdisjoint(name.split('/'))
        quoted = parse.quote(name, safe='/' if is_plain else '')
        if not is_plain:
            quoted = quoted.replace('.', '%2E')
        url = '/'.join(
            filter(None, (self.url, parse.quote(container), quoted))
        )
        if query:
            url = f'{url}?{parse.urlencode(query)}'
        sent = self.now.sent()
        response = self._transport.send(
            wire.Request(
                method=method,
                url=url,
                headers=headers or {},
                limit=limit,
                body=body,
            )
        )
        self.now.observe(sent, response.headers.get('date'))
        if response.status >= 300:
            path = '/'.join(filter(None, (container, name)))
            raise self._error(method, path or 'the account', response)
        return response

    def _error(
        self, method: str, what: str, response: wire.Response
    ) -> errors.ServiceError:
        """Return the error for an answer of the store."""
        kind = _KINDS.get(response.status) or errors.of_status(response.status)
        # Callers that write name the purpose themselves.
        hint = _HINTS.get(response.status, '') if method == 'GET' else ''
        return kind(
            f'The object store answered {response.status} to {method} of '
            f'{what} at {parse.urlsplit(self.url).netloc}{hint}',
            response.status,
        )


class OwnContainer:
    """The project's container for one purpose, with a name of the project's.

    Ceph's gateway without ``rgw keystone implicit tenants`` has one namespace
    of containers for all projects. So the project's ID is part of the name.
    Earlier releases left it out; a project that has a container of that name
    keeps it.

    :param stem: its purpose, and its name in earlier releases.
    """

    def __init__(self, store: ObjectStore, stem: str) -> None:
        self._store = store
        self._stem = stem

    @functools.cached_property
    def name(self) -> str:
        """The container's name; the container may not be there.

        :raises heat_plugins.errors.ServiceError: the object store
            does not tell which containers the project has.
        """
        project_id = self._store.project_id
        if project_id is None:
            return self._stem
        name = f'{self._stem}-{project_id}'
        owned = self._store.owned_containers(self._stem)
        # Once there is one of the new name, it holds the records.
        is_former = self._stem in owned and name not in owned
        return self._stem if is_former else name
