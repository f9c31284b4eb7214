# SPDX-License-Identifier: Apache-2.0
"""An object store in memory, behind the seam `wire.Transport`.

A `Cluster` is one installation with the accounts of all projects; the code
under test gets a transport, or a store, of one project::

    store = fake_swift.Cluster().store('project-1')
    store.put_container('box', {})

`put_signed` plays a server: it takes a TempURL, and verifies it on its own, by
what Swift's documentation says of signatures. What differs between clouds are
arguments of `Cluster`; `ceph` gives one that behaves as Ceph's gateway.
Nothing is answered that the code has no reason to ask: an `AssertionError`
says so.
"""

import base64
from collections import abc
import dataclasses
from email import utils as email_utils
import functools
import hashlib
import hmac
import json
import re
import threading
import time
from urllib import parse

import requests

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire

SWIFT = 'http://swift.example.com:8080/v1/AUTH_%(project_id)s'
CEPH = 'http://rgw.example.com:7480/swift/v1'
CEPH_ACCOUNT = f'{CEPH}/AUTH_%(project_id)s'

_LENGTHS = {40: 'sha1', 64: 'sha256', 128: 'sha512'}
_DIGESTS = tuple(_LENGTHS.values())


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seen:
    """A request that came; `project_id` is that of its token."""

    method: str
    where: str
    project_id: str | None
    signed: bool
    query: abc.Mapping[str, str]


@dataclasses.dataclass(kw_only=True)
class Container:
    owner: str
    meta: dict[str, str] = dataclasses.field(default_factory=dict)
    objects: dict[str, bytes] = dataclasses.field(default_factory=dict)
    times: dict[str, float] = dataclasses.field(default_factory=dict)
    lifetimes: dict[str, str] = dataclasses.field(default_factory=dict)

    def has(self, name, now):
        """Say whether an object can be read; expired ones are only listed."""
        if name not in self.objects:
            return False
        lifetime = float(self.lifetimes.get(name, 'inf'))
        return now < self.times.get(name, now) + lifetime


@dataclasses.dataclass(eq=False)
class Cluster:
    """One installation.

    :param endpoint: the URL in the catalogue, with ``%(project_id)s`` where
        it has an account.
    :param implicit_tenants: as of Ceph's gateway: each project has containers
        of its own, and TempURLs work only where the account is part of the
        endpoint.
    :param named_digests: what ``/info`` says of them; None: nothing.
    :param info: whether there is ``/info``; a map replaces what it says.
    :param container_keys: whether those are honoured; else they are only
        stored, and shown.
    :param listing_limit: the most entries of a page. Who asks for more is
        refused by Swift, and gets that many from Ceph.
    :param bulk_delete: how many objects a request may delete; 0: none.
    :param clock: the time by which URLs run out.
    """

    endpoint: str = SWIFT
    _: dataclasses.KW_ONLY
    ceph: bool = False
    implicit_tenants: bool = False
    digests: abc.Collection[str] = _DIGESTS
    named_digests: abc.Collection[str] | None = _DIGESTS
    methods: abc.Collection[str] = ('GET', 'HEAD', 'PUT', 'POST', 'DELETE')
    tempurl: bool = True
    info: object = True
    container_keys: bool = True
    account_keys: bool = True
    listing_limit: int = 10000
    bulk_delete: int = 10000
    clock: abc.Callable[[], float] = time.time

    def __post_init__(self):
        # The last one's abilities are not those of this.
        keys.KeyKeeper.abilities.clear()
        #: Whether the holder of a URL may copy; a proxy can prevent that.
        self.copies = self.ceph
        #: Projects without an operator role, and those without a token.
        self.denied, self.locked_out = set(), set()
        #: (container, name) of objects that listings do not show yet.
        self.lagging = set()
        #: Names of objects that a bulk delete leaves.
        self.stubborn = set()
        #: The time by which objects are old.
        self.now = time.time
        #: Called with each `wire.Request`, without the lock.
        self.before = lambda request: None
        self.seen, self.accounts, self.containers = [], {}, {}
        self._faults = []
        self._lock = threading.RLock()

    # What tests ask for

    def transport(self, project_id='project-1'):
        return Transport(self, project_id)

    def store(self, project_id='project-1'):
        return stores.ObjectStore(self.transport(project_id))

    def storage_url(self, project_id='project-1'):
        return self.endpoint % {'project_id': project_id}

    def container(self, name, project_id='project-1'):
        return self.containers.get(self._place(project_id, name))

    def account(self, project_id='project-1'):
        return self.accounts.setdefault(project_id, {})

    def fail(self, times=1, status=503, method=None):
        """Answer the next requests (of a method, or any) with a status."""
        self._faults.append([times, status, method])

    def heal(self):
        self._faults.clear()

    def asked(self, project_id=None):
        return [
            f'{each.method} {each.where}'
            for each in self.seen
            if project_id in (None, each.project_id)
        ]

    def get_signed(self, url):
        """GET a TempURL as a server does; return status and content."""
        response = self._signed_request('GET', url)
        return response.status, response.body

    def put_signed(self, url, body=b'{}'):
        """PUT to a TempURL as a server does; return the HTTP status."""
        return self._signed_request('PUT', url, body).status

    def _signed_request(self, method, url, body=b''):
        request = wire.Request(method=method, url=url, authenticated=False)
        return self.serve(None, request, body)

    # The service

    def serve(self, project_id, request, body=b''):
        """Answer a request; `project_id` is that of its token."""
        self.before(request)
        bulk = request.url.endswith('?bulk-delete=1')
        assert (request.body is None) or request.method == 'PUT' or bulk
        body = body if request.body is None else request.body
        with self._lock:
            where, query = self._split(request, project_id)
            seen = Seen(
                method=request.method,
                where=where,
                project_id=project_id,
                signed='temp_url_sig' in query,
                query=query,
            )
            self.seen.append(seen)
            response = self._fault(request)
            if response is None:
                answer = self._answer(project_id, request, where, query, body)
                headers = {'date': _http_date(self.now()), **answer.headers}
                response = dataclasses.replace(answer, headers=headers)
        return response

    def _fault(self, request):
        for fault in self._faults:
            times, status, method = fault
            if times and method in (None, request.method):
                fault[0] -= 1
                return wire.Response(status=status)
        return None

    def _split(self, request, project_id):
        url, pairs = _parts(request.url)
        query = dict(pairs)
        assert len(query) == len(pairs), 'a parameter comes twice'
        info, served = _urls(self.endpoint)
        if info == url:
            return '/info', query
        match = served.fullmatch(url)
        assert match, f'nothing is served at {url}'
        named = match.groupdict().get('project')
        assert project_id in (None, named) or not named, (
            'the account of somebody else'
        )
        return parse.unquote(match['path']), query

    def _answer(self, project_id, request, where, query, body):
        container, _, name = where.removeprefix('/').partition('/')
        if where == '/info':
            assert request.method == 'GET' and not query
            assert not request.authenticated, '/info needs no token'
            return self._info()
        if 'temp_url_sig' in query:
            assert not request.authenticated, 'a signature and a token'
            assert not request.headers.keys() - {'X-Copy-From'}
            # It ends some versions of Ceph's gateway.
            assert name.strip('/'), 'a signature for a bare container'
            return self._signed(request, container, name, query, body)
        assert request.authenticated, 'neither a signature nor a token'
        if project_id in self.denied:
            return _status(403)
        if not container and 'bulk-delete' in query:
            return self._bulk_delete(project_id, body)
        if not container:
            return self._account(project_id, request, query)
        if not name:
            return self._container(project_id, request, container, query)
        return self._object(project_id, request, container, name, query)

    def _info(self):
        if not self.info:
            return _status(404)
        if self.info is not True:
            return _status(200, json.dumps(self.info).encode())
        info = {'swift': {'container_listing_limit': 10000}}
        if self.bulk_delete:
            most = {'max_deletes_per_request': self.bulk_delete}
            # Ceph has it, and names no limit.
            info['bulk_delete'] = {} if self.ceph else most
        if self.tempurl:
            about = info['tempurl'] = {'methods': list(self.methods)}
            if self.named_digests is not None:
                about['allowed_digests'] = list(self.named_digests)
        return _status(200, json.dumps(info).encode())

    def _account(self, project_id, request, query):
        headers = self.account(project_id)
        if request.method == 'GET':
            return self._containers_of(project_id, query)
        if request.method == 'POST':
            _set_meta(headers, request.headers, 'account')
            return _status(204)
        return _status(204, headers=headers)

    def _containers_of(self, project_id, query):
        assert query.get('format') == 'json', 'a listing that is not JSON'
        names = sorted(
            place if self._shared else place[1]
            for place, there in self.containers.items()
            if there.owner == project_id
        )
        found = [
            {'name': name, 'bytes': 0, 'count': 0}
            for name in names
            if name.startswith(query.get('prefix', ''))
        ]
        limit = min(int(query['limit']), self.listing_limit)
        return _status(200, json.dumps(found[:limit]).encode())

    def _bulk_delete(self, project_id, body):
        paths = body.decode('ascii').split('\n')
        assert 0 < len(paths) <= self.bulk_delete, 'too many at once'
        failed, deleted = [], 0
        for path in paths:
            container, _, name = parse.unquote(path).partition('/')
            assert name, 'a bulk delete of a container'
            there = self.container(container, project_id)
            assert there is not None and there.owner == project_id
            if name in self.stubborn:
                failed.append([path, '503 Service Unavailable'])
            elif there.objects.pop(name, None) is not None:
                deleted += 1
        report = {
            'Number Deleted': deleted,
            'Number Not Found': len(paths) - deleted - len(failed),
            'Errors': failed,
            'Response Status': '400 Bad Request' if failed else '200 OK',
            'Response Body': '',
        }
        return _status(200, json.dumps(report).encode())

    @property
    def _shared(self):
        """Whether all projects share one namespace of containers."""
        return self.ceph and not self.implicit_tenants

    def _place(self, project_id, name):
        return name if self._shared else (project_id, name)

    def _container(self, project_id, request, name, query):
        assert 3 <= len(name) <= 254, 'Ceph takes no such container'
        place = self._place(project_id, name)
        there = self.containers.get(place)
        if there is not None and there.owner != project_id:
            return _status(409 if request.method == 'PUT' else 403)
        if request.method == 'PUT':
            status = 201 if there is None else 202
            there = self.containers.setdefault(
                place, Container(owner=project_id)
            )
            _set_meta(there.meta, request.headers, 'container')
            return _status(status)
        if there is None:
            return _status(404)
        if request.method == 'POST':
            _set_meta(there.meta, request.headers, 'container')
            return _status(204)
        if request.method == 'HEAD':
            count = {'x-container-object-count': str(len(there.objects))}
            return _status(204, headers={**there.meta, **count})
        if request.method == 'GET':
            return self._listing(name, there, query)
        if there.objects:
            return _status(409)
        del self.containers[place]
        return _status(204)

    def _listing(self, container, there, query):
        assert query.get('format') == 'json', 'a listing that is not JSON'
        limit = int(query.get('limit', self.listing_limit))
        if limit > self.listing_limit and not self.ceph:
            return _status(412)
        prefix = query.get('prefix', '')
        marker = query.get('marker', '').encode()
        names = sorted(
            (
                name
                for name in there.objects
                if name.startswith(prefix)
                and name.encode() > marker
                and (container, name) not in self.lagging
            ),
            key=str.encode,
        )
        entries = [
            {
                'name': name,
                'bytes': len(there.objects[name]),
                'hash': hashlib.md5(there.objects[name]).hexdigest(),
                'content_type': 'application/octet-stream',
                'last_modified': '2026-01-01T00:00:00.000000',
            }
            for name in names[: min(limit, self.listing_limit)]
        ]
        return _status(200, json.dumps(entries).encode())

    def _object(self, project_id, request, container, name, query):
        there = self.containers.get(self._place(project_id, container))
        if request.method == 'PUT' and there and there.owner == project_id:
            assert request.body is not None, 'an object without content'
            there.objects[name] = request.body
            there.times[name] = self.now()
            there.lifetimes.pop(name, None)
            lifetime = request.headers.get('X-Delete-After')
            if lifetime is not None:
                there.lifetimes[name] = lifetime
            return _status(201)
        if there is None or not there.has(name, self.now()):
            return _status(404)
        if there.owner != project_id:
            return _status(403)
        if request.method == 'DELETE':
            del there.objects[name]
            return _status(204)
        if request.method == 'HEAD':
            return _status(200)
        assert query == {'multipart-manifest': 'get'}, 'a manifest is followed'
        content = there.objects[name]
        return wire.Response(
            status=200,
            headers={
                'date': _http_date(self.now()),
                'last-modified': _http_date(there.times.get(name, self.now())),
            },
            body=content[: request.limit],
            truncated=len(content) > request.limit,
        )

    # TempURLs

    def _signed(self, request, container, name, query, body):
        if not self.tempurl or request.method not in self.methods:
            return _status(401)
        if self.implicit_tenants and '%(project_id)s' not in self.endpoint:
            # It looks for the owner of the account in the URL alone.
            return _status(403)
        expires = query['temp_url_expires']
        assert re.fullmatch('[0-9]+', expires), 'expires is no time'
        assert int(expires) < 2**31, 'expires after the end of 32-bit time'
        if int(expires) < self.clock():
            return _status(401)
        owner, there = self._owner(request, container)
        if not self._is_valid(request, owner, there, query):
            return _status(403 if self.ceph else 401)
        if there is None:
            # Ceph's gateway knows by the container whose key it takes.
            return _status(403 if self.ceph else 404)
        if request.method == 'PUT':
            if source := request.headers.get('X-Copy-From'):
                if not self.copies:
                    return _status(400)
                where = source.strip('/').partition('/')
                body = self.container(where[0], owner).objects[where[2]]
            there.objects[name] = body
            there.times[name] = self.now()
            return _status(201)
        if not there.has(name, self.now()):
            return _status(404)
        is_get = request.method == 'GET'
        return _status(200, there.objects[name] if is_get else b'')

    def _owner(self, request, container):
        owners = {each.owner for each in self.containers.values()}
        for project_id in owners | self.accounts.keys():
            if request.url.startswith(f'{self.storage_url(project_id)}/'):
                there = self.container(container, project_id)
                if there is None or there.owner == project_id:
                    return project_id, there
        return None, None

    def _is_valid(self, request, owner, there, query):
        """Say whether the owner of a key that counts has made a signature."""
        metas = []
        if self.account_keys:
            metas.append(('account', self.accounts.get(owner, {})))
        if self.container_keys and there is not None:
            metas.append(('container', there.meta))
        signing = [
            meta.get(f'x-{kind}-meta-temp-url-key{number}')
            for kind, meta in metas
            for number in ('', '-2')
        ]
        digest, signature = _signature(query['temp_url_sig'])
        if digest not in self.digests:
            return False
        path = parse.unquote(parse.urlsplit(request.url).path)
        prefix = query.get('temp_url_prefix')
        if prefix is not None:
            _, _, name = self._split(request, None)[0][1:].partition('/')
            if not name.startswith(prefix):
                return False
            path = f'prefix:{path.removesuffix(name)}{prefix}'
        paths = {path}
        if self.ceph:
            paths.add(path.replace('/swift', '', 1))
        methods = {request.method}
        if request.method == 'HEAD':
            methods |= {'PUT'} if self.ceph else {'PUT', 'GET', 'POST'}
        expires = query['temp_url_expires']
        texts = ['\n'.join((m, expires, p)) for m in methods for p in paths]
        return any(
            hmac.digest(key.encode(), text.encode(), digest) == signature
            for key in filter(None, signing)
            for text in texts
        )


@functools.lru_cache(1000)
def _parts(url):
    parts = parse.urlsplit(url)
    pairs = (
        parse.parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=True
        )
        if parts.query
        else ()
    )
    return f'{parts.scheme}://{parts.netloc}{parts.path}', tuple(pairs)


@functools.cache
def _urls(endpoint):
    """Return the URL of /info, and a pattern of all others."""
    pattern = re.escape(endpoint).replace(
        re.escape('%(project_id)s'), '(?P<project>[^/]+)'
    )
    return (
        re.sub(r'/v1(/.*)?$', '/info', endpoint),
        re.compile(rf'{pattern}(?P<path>(/.*)?)'),
    )


def _signature(text):
    """Return the digest and the bytes of a signature, in either spelling."""
    digest, _, named = text.rpartition(':')
    if digest:
        padded = named + '=' * (-len(named) % 4)
        return digest, base64.urlsafe_b64decode(padded)
    return _LENGTHS.get(len(text)), bytes.fromhex(text)


class Transport:
    def __init__(self, cluster, project_id):
        self._cluster = cluster
        self._project_id = project_id

    def storage_url(self):
        self._check_token()
        return self._cluster.storage_url(self._project_id)

    def project_id(self):
        self._check_token()
        return self._project_id

    def send(self, request):
        assert isinstance(request, wire.Request)
        # The real one resolves dots in a path, as every client does.
        url = _prepared(request.url)
        if url != request.url:
            request = dataclasses.replace(request, url=url)
        if not request.authenticated:
            return self._cluster.serve(None, request)
        self._check_token()
        return self._cluster.serve(self._project_id, request)

    def _check_token(self):
        if self._project_id in self._cluster.locked_out:
            raise errors.Denied(
                'Keystone gives no token for these credentials, to ask the '
                'object store with: NotFound'
            )


def ceph(endpoint=CEPH, **options):
    """Return a cluster as Ceph's gateway 16.2 is one."""
    settings = {'ceph': True, 'digests': ('sha1',), 'named_digests': None}
    settings |= {'container_keys': False, 'listing_limit': 1000}
    return Cluster(endpoint, **{**settings, **options})


def _set_meta(meta, headers, kind):
    for header, value in headers.items():
        known = f'x-{kind}-meta-', 'x-container-read'
        assert header.lower().startswith(known), header
        if value:
            meta[header.lower()] = value
        else:
            meta.pop(header.lower(), None)


def _status(status, body=b'', headers=None):
    return wire.Response(status=status, body=body, headers=dict(headers or {}))


@functools.lru_cache(1000)
def _prepared(url):
    prepared = requests.models.PreparedRequest()
    prepared.prepare_url(url, None)
    return prepared.url


@functools.lru_cache(1000)
def _http_date(seconds):
    return email_utils.formatdate(seconds, usegmt=True)
