# SPDX-License-Identifier: Apache-2.0
"""HTTP with the standard library: enough to ask this cloud something."""

from collections.abc import Mapping
import dataclasses
import email.message
import json
import ssl
from typing import Any

# By its name: eventlet, where a test imports it, leaves another module as the
# attribute of its package.
from urllib.error import HTTPError
import urllib.request

_tls = ssl.create_default_context()
_OPENER = urllib.request.build_opener(
    # A proxy of the user's environment is not for addresses on this machine.
    urllib.request.ProxyHandler({}),
    urllib.request.HTTPSHandler(context=_tls),
)


def trust(ca_file: str | None) -> None:
    """Believe certificates of this authority from now on, if there is one."""
    if ca_file:
        _tls.load_verify_locations(ca_file)


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer of a server, whatever its status."""

    status: int
    headers: email.message.Message
    body: bytes

    @property
    def ok(self) -> bool:
        return self.status < 400

    def json(self) -> Any:
        return json.loads(self.body) if self.body else None

    def __str__(self) -> str:
        text = self.body.decode('utf-8', 'replace')[:500]
        return f'{self.status} {text}'.strip()


def send(
    method: str,
    url: str,
    *,
    token: str | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60,
) -> Answer:
    """Send a request; OSError only when there is no answer at all.

    A body that is not bytes goes out as JSON.
    """
    sent = dict(headers or {})
    if token:
        sent['X-Auth-Token'] = token
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        sent.setdefault('Content-Type', 'application/json')
    # URLs of the cloud's own services.
    request = urllib.request.Request(  # noqa: S310
        url, method=method, headers=sent, data=body
    )
    try:
        with _OPENER.open(request, timeout=timeout) as answer:
            return Answer(answer.status, answer.headers, answer.read())
    except HTTPError as error:
        with error:
            return Answer(error.code, error.headers, error.read())
