# SPDX-License-Identifier: Apache-2.0
"""The seam to the object store: a request, its answer, and what sends it.

The real transport is in `heat_plugins.clients.swift`, on a keystoneauth
session; the strict fake is in ``tests/unit/fake_swift.py``. It is no
`swiftclient.Connection`: that serves one thread at a time, retries by itself
where our callers have a budget and can be cancelled, logs what it receives,
and reads a body of any size. Here all threads of an engine share one session
and its token, and each read has a limit. So `heat_plugins.pools` transfers a
plan's files over it, while python-swiftclient signs TempURLs; see `tempurl`.
"""

from collections import abc
import dataclasses
from typing import Protocol


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """One HTTP request.

    :ivar url: the whole URL, quoted.
    :ivar limit: the most bytes of the answer's body to read.
    :ivar body: what to send; None for nothing.
    :ivar timeout: seconds to wait for a connection, and for the next bytes.
    """

    method: str
    url: str
    headers: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    authenticated: bool = True
    limit: int = 64 * 1024 * 1024
    body: bytes | None = None
    timeout: float = 60.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Response:
    """The answer to a request.

    :ivar headers: names in lower case.
    :ivar body: as sent, undecoded; `Request.limit` bytes at the most.
    :ivar truncated: whether there was more.
    """

    status: int
    headers: abc.Mapping[str, str] = dataclasses.field(default_factory=dict)
    body: bytes = b''
    truncated: bool = False


class Transport(Protocol):
    """Sends requests to the object store."""

    def storage_url(self) -> str:
        """Return the URL of the account, without a slash at its end.

        :raises errors.Denied: Keystone gives no token.
        :raises errors.NoObjectStore: the catalogue has no object store.
        :raises errors.Unavailable: Keystone does not answer.
        """

    def project_id(self) -> str | None:
        """Return the id of the project whose account this is, if known.

        :raises errors.Denied: Keystone gives no token.
        :raises errors.Unavailable: Keystone does not answer.
        """

    def send(self, request: Request) -> Response:
        """Send a request; any HTTP status is an answer, not an error.

        :raises errors.Denied: Keystone gives no token.
        :raises errors.Unavailable: no answer, or half of one.
        """
