# SPDX-License-Identifier: Apache-2.0
"""The seam to the object store: a request, its answer, and what sends it.

The real transport is in `heat_plugins.clients.swift`, on a keystoneauth
session; the strict fake is in ``tests/unit/fake_swift.py``. It is no
`swiftclient.Connection`: that serves one thread at a time, retries by itself
where our callers have a budget and can be cancelled, logs what it receives,
and reads a body of any size. Here all threads of an engine share one session
and its token, and each read has a limit. So `heat_plugins.pools` transfers a
plan's files over it, while python-swiftclient signs TempURLs; see
`keys.sign_url`.

A `Budget` counts the requests of a store, their time and the bytes of the
responses, to limit what reading other users' records may cost. A request gets
no more time than is left, so one that hangs is over budget, too.
"""

from collections import abc
import dataclasses
import threading
import time
from typing import Protocol

from heat_plugins import errors


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


class Budget:
    """A number of requests, of seconds and of bytes; safe for threads.

    :param what: what they are for, such as "operation X"; for messages.
    :param size: the bytes of all responses; None for no limit. Each request
        has a limit of its own as well.
    """

    def __init__(
        self,
        what: str,
        *,
        requests: int,
        seconds: float,
        size: int | None = None,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._requests = requests
        self._seconds = seconds
        self._clock = clock
        self._until = clock() + seconds
        self._left = requests
        self._size = size
        self._received = 0
        self._is_lifted = False
        self._lock = threading.Lock()

    def spend(self) -> float:
        """Take one request; return the seconds that are left.

        :raises errors.OverBudget: nothing is left.
        """
        if self._is_lifted:
            return float('inf')
        with self._lock:
            self._left -= 1
        rest = self._until - self._clock()
        if rest <= 0:
            self._refuse(f'{self._seconds:.0f} s')
        if self._left < 0:
            self._refuse(f'{self._requests} requests')
        return rest

    def receive(self, size: int) -> None:
        """Take the bytes of a response.

        :raises errors.OverBudget: they are more than was left.
        """
        if self._is_lifted or self._size is None:
            return
        with self._lock:
            self._received += size
            is_over = self._received > self._size
        if is_over:
            self._refuse(f'{self._size} bytes')

    def check(self) -> None:
        """Fail if no time is left.

        :raises errors.OverBudget: it is.
        """
        if not self._is_lifted and self._clock() >= self._until:
            self._refuse(f'{self._seconds:.0f} s')

    def lift(self) -> None:
        """Stop counting."""
        self._is_lifted = True

    def _refuse(self, limit: str) -> None:
        raise errors.OverBudget(
            f'Reading the records of {self._what} takes more than {limit}'
        )


class Limited:
    """Sends requests within a budget; see `Transport`."""

    def __init__(self, transport: Transport, budget: Budget) -> None:
        self._transport = transport
        self._budget = budget

    def storage_url(self) -> str:
        return self._transport.storage_url()

    def project_id(self) -> str | None:
        return self._transport.project_id()

    def send(self, request: Request) -> Response:
        rest = self._budget.spend()
        timeout = min(request.timeout, max(1.0, rest))
        try:
            response = self._transport.send(
                dataclasses.replace(request, timeout=timeout)
            )
        except errors.Unavailable:
            # It may be ours that ended it.
            self._budget.check()
            raise
        self._budget.receive(len(response.body))
        return response
