# SPDX-License-Identifier: Apache-2.0
"""The seam to the object store: a request, its answer, and the transport.

The real transport is in `heat_plugins.clients.swift`, on a keystoneauth
session; the strict fake is in ``tests/unit/fake_swift.py``. It is no
`swiftclient.Connection`: that serves one thread at a time, retries by itself
where our callers have a budget and can be cancelled, logs the bodies that it
receives, and reads listings and refusals of any size. Here all threads of an
engine share one session and its token, no body is logged, and each read has a
limit. So `heat_plugins.pools` transfers a plan's files over it, while
python-swiftclient signs TempURLs; see `keys.Signer`.

A `Clock` has the time of the object store: processes on several hosts write
times into records, and compare them. Each response says when it was sent, so
all take the store's time. Where it does not, they take their hosts' times.
"""

from collections import abc
import dataclasses
import datetime
from email import utils as email_utils
import threading
import time
from typing import Protocol

from heat_plugins import foreign

LOG = foreign.logger(__name__)

#: Seconds by which the clocks of hosts may differ without a warning.
APART = 60.0

#: The thread that acquires it logs the warning; it is never released.
warning = threading.Lock()

# A response says its time in whole seconds, and may come late.
_ROUNDING = 2.0


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
        """Return the ID of the project that owns the account, if known.

        :raises errors.Denied: Keystone gives no token.
        :raises errors.Unavailable: Keystone does not answer.
        """

    def send(self, request: Request) -> Response:
        """Send a request; any HTTP status is an answer, not an error.

        :raises errors.Denied: Keystone gives no token.
        :raises errors.Unavailable: no answer, or half of one.
        """


class Clock:
    """Seconds since the epoch, as an object store has them.

    :param now: the host's own clock.
    """

    def __init__(self, now: abc.Callable[[], float] | None = None) -> None:
        # Looked up each time, as tests replace it.
        self._now = now or (lambda: time.time())
        self._offset = 0.0

    def __call__(self) -> float:
        return self._now() + self._offset

    def sent(self) -> float:
        """Return when a request is sent, for `observe`."""
        return self._now()

    def observe(self, sent: float, date: str | None) -> None:
        """Learn from a response.

        :param sent: when the request was sent.
        :param date: the response's header.
        """
        try:
            when = email_utils.parsedate_to_datetime(date or '')
        except (TypeError, ValueError, IndexError):
            return
        # HTTP writes all dates in GMT.
        answered = when.replace(tzinfo=datetime.UTC).timestamp()
        received = self._now()
        # The store's clock stood somewhere between these when it answered;
        # nothing is learnt from what fits what is known.
        least, most = answered - received, answered + 1.0 - sent
        if (
            least - _ROUNDING <= self._offset <= most + _ROUNDING
            or received < sent
        ):
            return
        self._offset = (least + most) / 2
        if abs(self._offset) > APART and warning.acquire(blocking=False):
            LOG.warning(
                "This host's clock differs from the object store's by "
                "%.0f s. heat-plugins takes the object store's time; "
                "correct this host's clock",
                abs(self._offset),
            )
