# SPDX-License-Identifier: Apache-2.0
"""A proxy before Ceph's gateway, with the filters that Swift's proxy has."""

from collections.abc import Callable, Iterable, Iterator
import http.client
import os
import signal
import sys
from typing import Any
import urllib.parse

#: What is about one connection, and is not passed on.
HOP_BY_HOP = {'connection', 'expect', 'keep-alive', 'transfer-encoding'}

#: Requests that are served at a time.
MOST = 4096

CHUNK = 65536


def app_factory(global_conf: dict[str, str], gateway: str) -> 'Gateway':
    return Gateway(gateway)


class HungUp(Exception):
    """The client has gone before the end of what it was sending."""


class Gateway:
    """What is asked of it is asked of the gateway, byte for byte."""

    def __init__(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self._address = (parts.hostname or '', parts.port)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        connection = http.client.HTTPConnection(*self._address)
        try:
            _send(connection, environ)
            answer = connection.getresponse()
        except HungUp:
            connection.close()
            start_response('499 Client Disconnect', [('Content-Length', '0')])
            return []
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            body = f'The gateway does not answer: {error!r}\n'.encode()
            start_response(
                '503 Service Unavailable',
                [
                    ('Content-Type', 'text/plain'),
                    ('Content-Length', str(len(body))),
                ],
            )
            return [body]
        start_response(
            f'{answer.status} {answer.reason}',
            [
                (name, value)
                for name, value in answer.getheaders()
                if name.lower() not in HOP_BY_HOP
            ],
        )
        return _body(connection, answer)


def _send(
    connection: http.client.HTTPConnection, environ: dict[str, Any]
) -> None:
    # As it was sent; the other one has been decoded.
    path = environ.get('RAW_PATH_INFO') or urllib.parse.quote(
        environ['PATH_INFO'], encoding='latin-1'
    )
    if environ.get('QUERY_STRING'):
        path += f'?{environ["QUERY_STRING"]}'
    connection.putrequest(
        environ['REQUEST_METHOD'],
        path,
        skip_host=True,
        skip_accept_encoding=True,
    )
    for name, value in _headers(environ):
        connection.putheader(name, value)
    length = environ.get('CONTENT_LENGTH')
    chunked = 'chunked' in environ.get('HTTP_TRANSFER_ENCODING', '')
    if chunked:
        connection.putheader('Transfer-Encoding', 'chunked')
    connection.endheaders()
    left = int(length) if length else 0
    while chunked or left:
        size = CHUNK if chunked else min(CHUNK, left)
        try:
            data = environ['wsgi.input'].read(size)
        except OSError as error:
            raise HungUp from error
        if chunked:
            connection.send(b'%x\r\n%b\r\n' % (len(data), data))
            if not data:
                return
            continue
        if not data:
            raise HungUp
        connection.send(data)
        left -= len(data)


def _headers(environ: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if name.startswith('HTTP_'):
            header = name.removeprefix('HTTP_').replace('_', '-').title()
            if header.lower() not in HOP_BY_HOP:
                yield header, value
    for name in ('CONTENT_TYPE', 'CONTENT_LENGTH'):
        if environ.get(name):
            yield name.replace('_', '-').title(), environ[name]


def _body(
    connection: http.client.HTTPConnection, answer: http.client.HTTPResponse
) -> Iterator[bytes]:
    try:
        while data := answer.read(CHUNK):
            yield data
    finally:
        connection.close()


def main(conf: str) -> None:
    # Who has Swift has these; they are for this process alone.
    import eventlet
    from eventlet import wsgi

    eventlet.monkey_patch()
    from paste import deploy

    address = urllib.parse.urlsplit(os.environ['MINICLOUD_URL'])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(0))
    wsgi.server(
        eventlet.listen((address.hostname, address.port), backlog=512),
        deploy.loadapp(f'config:{conf}'),
        max_size=MOST,
        log_output=False,
    )


if __name__ == '__main__':
    main(*sys.argv[1:])
