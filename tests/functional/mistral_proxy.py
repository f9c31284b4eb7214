# SPDX-License-Identifier: Apache-2.0
"""A Mistral that fails on order: the real one behind a proxy.

The catalog points to the proxy for as long as it runs, so whatever Heat
asks of Mistral goes through it.
"""

from collections.abc import Iterator
import contextlib
import dataclasses
import http.server
import re
import threading

from tests.functional import base

SERVICE = 'workflowv2'


@dataclasses.dataclass
class Fault:
    """Requests that are answered by 503.

    :ivar path: a regular expression for the path, query and all.
    :ivar times: so many of them.
    :ivar done: whether Mistral does what it is asked, and only the answer
        is lost.
    """

    method: str
    path: str
    times: int = 1
    done: bool = False

    def fits(self, method: str, path: str) -> bool:
        if self.times and method == self.method and re.search(self.path, path):
            self.times -= 1
            return True
        return False


class Proxy:
    """The proxy; `faults` may be filled and emptied at any time."""

    def __init__(self, url: str) -> None:
        self.faults: list[Fault] = []
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def _any(self) -> None:
                length = int(self.headers.get('Content-Length') or 0)
                body = self.rfile.read(length) if length else None
                fault = next(
                    (
                        one
                        for one in proxy.faults
                        if one.fits(self.command, self.path)
                    ),
                    None,
                )
                status, answer, kind = 0, b'', 'text/html'
                if fault is None or fault.done:
                    status, answer, kind = self._forward(body)
                if fault is not None:
                    status, answer, kind = 503, b'<html>no</html>', 'text/html'
                self.send_response(status)
                self.send_header('Content-Type', kind)
                if status != 204:
                    self.send_header('Content-Length', str(len(answer)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(answer)

            do_GET = do_POST = do_PUT = do_DELETE = _any

            def _forward(self, body: bytes | None) -> tuple[int, bytes, str]:
                headers = {
                    name: value
                    for name, value in self.headers.items()
                    if name.lower()
                    in ('content-type', 'x-auth-token', 'accept')
                }
                try:
                    answer = base.rest.send(
                        self.command,
                        url.removesuffix('/v2') + self.path,
                        body=body,
                        headers=headers,
                    )
                except OSError:
                    return 502, b'', 'text/plain'
                kind = answer.headers.get('Content-Type', '')
                return answer.status, answer.body, kind

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), Handler
        )
        self._server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self._server.server_port}/v2'
        self._thread = threading.Thread(target=self._server.serve_forever)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextlib.contextmanager
    def failing(self, *faults: Fault) -> Iterator[None]:
        self.faults = list(faults)
        try:
            yield
        finally:
            self.faults = []


@contextlib.contextmanager
def standing_before(cloud: base.Cloud, user: str = 'demo') -> Iterator[Proxy]:
    """Put a proxy before the Mistral of a cloud."""
    admin = cloud.session('admin')
    url = admin.endpoint(SERVICE)
    services = admin.get('identity', f'/services?type={SERVICE}').json()
    (service,) = services['services']
    path = f'/endpoints?service_id={service["id"]}'
    endpoints = admin.get('identity', path).json()['endpoints']

    def point(where: str) -> None:
        for one in endpoints:
            answer = admin.patch(
                'identity',
                f'/endpoints/{one["id"]}',
                {'endpoint': {'url': where}},
            )
            assert answer.ok, answer
        # With a token goes the catalog of the time when it was made.
        cloud.session(user)._log_in()

    proxy = Proxy(url)
    proxy.start()
    try:
        point(proxy.url)
        yield proxy
    finally:
        point(url)
        proxy.stop()
