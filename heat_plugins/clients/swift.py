# SPDX-License-Identifier: Apache-2.0
"""The object store over a Keystone session.

A keystoneauth session pools its connections, renews its token on a 401, and
may be used by all threads of an engine; see `wire`.
"""

import time
from typing import Any
from urllib import parse

from keystoneauth1 import exceptions
import requests
import urllib3

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins import wording
from heat_plugins.clients import rest
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire

SERVICE_TYPE = 'object-store'

# Answers to a user who has no role, or whose token is invalid, as metrics name
# them; others by their class, such as 2xx.
_CLASSES = {401: 'denied', 403: 'denied'}


def connect(cloud: rest.Cloud) -> stores.ObjectStore:
    """Return the object store of a user's project."""
    return stores.ObjectStore(KeystoneTransport(cloud))


class KeystoneTransport:
    """Sends requests with the token of a Keystone session.

    :param tls: ``verify`` and ``cert`` as `requests` takes them, where the
        object store needs others than Keystone.
    """

    def __init__(
        self, cloud: rest.Cloud, *, tls: dict[str, Any] | None = None
    ) -> None:
        self._session = cloud.session
        self._filter = cloud.filter(SERVICE_TYPE)
        self._tls = tls or {}
        self._storage_url: str | None = None

    def storage_url(self) -> str:
        """See `wire.Transport.storage_url`."""
        if self._storage_url is None:
            try:
                url = self._session.get_endpoint(**self._filter)
            except exceptions.ClientException as exc:
                raise _unanswered(exc, 'Keystone') from exc
            if not url:
                raise errors.NoObjectStore(wording.no_service(SERVICE_TYPE))
            self._storage_url = url.rstrip('/')
        return self._storage_url

    def project_id(self) -> str | None:
        """See `wire.Transport.project_id`."""
        try:
            return self._session.get_project_id()
        except exceptions.ClientException as exc:
            raise _unanswered(exc, 'Keystone') from exc

    def send(self, request: wire.Request) -> wire.Response:
        """See `wire.Transport.send`."""
        begun, status = time.monotonic(), 'none'
        try:
            response = self._send(request)
            status = _CLASSES.get(
                response.status, f'{response.status // 100}xx'
            )
        finally:
            metrics.observe(metrics.STORE, time.monotonic() - begun, status)
        return response

    def _send(self, request: wire.Request) -> wire.Response:
        """Send a request to Swift by keystoneauth, which logs nothing."""
        host = parse.urlsplit(request.url).netloc
        try:
            answer = self._session.request(
                request.url,
                request.method,
                headers={'Accept-Encoding': 'identity', **request.headers},
                authenticated=request.authenticated,
                raise_exc=False,
                redirect=False,
                # The session would log bodies, and URLs with signatures.
                log=False,
                stream=True,
                timeout=request.timeout,
                data=request.body,
                **self._tls,
            )
        except exceptions.ClientException as exc:
            if isinstance(exc, exceptions.ConnectionError):
                # The catalogue, which comes with a token, may name another.
                self._storage_url = None
                self._session.invalidate()
            raise _unanswered(exc, f'the object store at {host}') from exc
        with answer:
            try:
                body, truncated = _read(answer, request.limit)
            except (urllib3.exceptions.HTTPError, OSError) as exc:
                raise errors.Unavailable(
                    f'The object store at {host} closed the connection in '
                    f'the middle of a response: {type(exc).__name__}'
                ) from exc
        return wire.Response(
            status=answer.status_code,
            headers={
                name.lower(): value for name, value in answer.headers.items()
            },
            body=body,
            truncated=truncated,
        )


def _read(answer: requests.Response, limit: int) -> tuple[bytes, bool]:
    """Read a body without decompressing it."""
    chunks: list[bytes] = []
    size = 0
    while size <= limit:
        chunk = answer.raw.read(
            min(65536, limit + 1 - size), decode_content=False
        )
        if not chunk:
            # urllib3 refuses an incomplete body itself from version 2 on.
            length = answer.headers.get('Content-Length', '')
            has_body = (
                answer.request.method != 'HEAD' and answer.status_code != 204
            )
            if has_body and length.isdigit() and size < int(length):
                raise ConnectionError(f'{size} of {length} bytes')
            return b''.join(chunks), False
        chunks.append(chunk)
        size += len(chunk)
    return b''.join(chunks)[:limit], True


def _unanswered(
    exc: exceptions.ClientException, whom: str
) -> errors.ServiceError:
    """Return the error for an object store that gave no answer."""
    absent = errors.NoObjectStore(wording.no_service(SERVICE_TYPE))
    return rest.unanswered(exc, 'the object store', absent, whom)
