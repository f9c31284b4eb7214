# SPDX-License-Identifier: Apache-2.0
"""The example of a receiver answers whatever comes."""

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


class Receiver:
    """The receiver, in a process."""

    def __init__(self):
        with socket.create_server(('127.0.0.1', 0)) as found:
            self.port = found.getsockname()[1]
        self.process = subprocess.Popen(
            [sys.executable, str(EXAMPLE), str(self.port)],
            env={**os.environ, 'NOTICE_SECRET': SECRET},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def connect(self):
        return socket.create_connection(('127.0.0.1', self.port), timeout=8)

    def status(self, body=BODY, headers=(), size=None):
        """POST a body; return the status of the answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        connection.timeout = 8
        connection.putrequest('POST', '/')
        length = str(len(body)) if size is None else size
        connection.putheader('Content-Length', length)
        for name, value in dict(headers).items():
            connection.putheader(name, value)
        connection.endheaders()
        connection.send(body)
        return connection.getresponse().status


@pytest.fixture(scope='module')
def receiver():
    started = Receiver()
    for _ in range(300):
        try:
            started.connect().close()
            break
        except OSError:
            time.sleep(0.1)
    yield started
    started.process.kill()
    started.process.communicate()


def test_what_is_signed_is_printed_once(receiver):
    for number in (1, 1, 2):
        body = BODY.replace(b'1', b'%d' % number)
        headers = notifying.headers(body, SECRET, time.time())
        assert receiver.status(body, headers) == 204
    for number in (1, 2):
        printed = json.loads(receiver.process.stdout.readline())
        assert printed['id'] == f'{number}.failure'
    # What is not signed or too long is refused.
    now = time.time()
    name = notifying.SIGNATURE_HEADER
    for headers in (
        {},
        {**notifying.headers(BODY, SECRET, now), name: 'sha256=\xe9'},
        notifying.headers(BODY, 'another secret', now),
        notifying.headers(BODY, SECRET, now - 301),
    ):
        assert receiver.status(headers=headers) == 403
    for size in ('65537', '9' * 5000, '-1', 'x', ''):
        assert receiver.status(b'', size=size) == 413


def test_a_slow_client_delays_no_other(receiver):
    with receiver.connect() as slow:
        slow.sendall(b'POST / HTTP/1.1\r\n')
        assert receiver.status() == 403
