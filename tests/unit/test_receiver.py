# SPDX-License-Identifier: Apache-2.0
"""The example of a receiver answers whatever comes."""

import contextlib
import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import pytest

from heat_plugins.runs import notifying

EXAMPLE = (
    pathlib.Path(__file__).parents[2] / 'contrib/examples/notices/receiver.py'
)
SECRET = 'a secret of this test'
BODY = b'{"id": "1.failure"}'


@pytest.fixture(scope='module')
def receiver():
    """Run the receiver; return its port and its process."""
    with socket.create_server(('127.0.0.1', 0)) as found:
        port = found.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLE), str(port)],
        env={**os.environ, 'NOTICE_SECRET': SECRET},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(300):
        with contextlib.suppress(OSError):
            socket.create_connection(('127.0.0.1', port)).close()
            break
        time.sleep(0.1)
    yield port, process
    process.kill()
    process.communicate()


def status(port, body=BODY, headers=None, size=None):
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=8)
    size = str(len(body)) if size is None else size
    connection.putrequest('POST', '/')
    for name, value in ({'Content-Length': size} | (headers or {})).items():
        connection.putheader(name, value)
    connection.endheaders()
    connection.send(body)
    return connection.getresponse().status


def test_what_is_signed_is_printed_once(receiver):
    port, process = receiver
    headers = notifying.headers(BODY, SECRET, time.time())
    assert [status(port, BODY, headers) for _ in range(2)] == [204, 204]
    other = b'{"id": "2.failure"}'
    headers = notifying.headers(other, SECRET, time.time())
    assert status(port, other, headers) == 204
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [line['id'] for line in lines] == ['1.failure', '2.failure']


def test_what_is_not_signed_is_refused(receiver):
    port, _ = receiver
    now = time.time()
    name = notifying.SIGNATURE_HEADER
    for headers in (
        {},
        {**notifying.headers(BODY, SECRET, now), name: 'sha256=\xe9'},
        notifying.headers(BODY, 'another secret', now),
        notifying.headers(BODY, SECRET, now - 301),
    ):
        assert status(port, BODY, headers) == 403


def test_what_is_too_long_is_not_read(receiver):
    for size in ('65537', '9' * 5000, '-1', 'x', ''):
        assert status(receiver[0], b'', size=size) == 413


def test_a_slow_client_delays_no_other(receiver):
    port, _ = receiver
    with socket.create_connection(('127.0.0.1', port)) as slow:
        slow.sendall(b'POST / HTTP/1.1\r\n')
        assert status(port) == 403
