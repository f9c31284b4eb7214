# SPDX-License-Identifier: Apache-2.0
"""The filter that logs the requests to the mini cloud's Swift."""

import json
import pathlib
import tempfile
from unittest import mock

from minicloud_lib.services import swift_log
import testtools


def request(app, method='GET', path='/v1/a/c/o', **extra):
    """Return the status and the body that an application answers with."""
    seen = []
    environ = {
        'REQUEST_METHOD': method,
        'PATH_INFO': path,
        'SERVER_NAME': 'localhost',
        'SERVER_PORT': '80',
        'wsgi.url_scheme': 'http',
        'wsgi.input': mock.Mock(read=lambda *_: b''),
        **extra,
    }
    answer = app(environ, lambda status, headers, *_: seen.append(status))
    try:
        body = b''.join(answer)
    finally:
        if hasattr(answer, 'close'):
            answer.close()
    return int(seen[-1].split()[0]), body


class Server:
    """A server that has one answer, and counts how often it gave it."""

    def __init__(self, body=b'fine'):
        self.body = body
        self.asked = 0

    def __call__(self, environ, start_response):
        self.asked += 1
        start_response(
            '200 OK',
            [
                ('Content-Type', 'text/plain'),
                ('Content-Length', str(len(self.body))),
            ],
        )
        return [self.body]


class FilterTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, 'file')
        self.server = Server()


class RequestLogTest(FilterTest):
    def test_writes_what_was_asked_and_answered(self):
        app = swift_log.filter_factory({}, str(self.file))(self.server)
        request(app, 'PUT', CONTENT_LENGTH='3', HTTP_USER_AGENT='me')
        entry = json.loads(self.file.read_text())
        self.assertEqual(
            ('PUT', '/v1/a/c/o', 200, 3, 4, 'me', False),
            (
                entry['method'],
                entry['path'],
                entry['status'],
                entry['received'],
                entry['sent'],
                entry['agent'],
                entry['token'],
            ),
        )

    def test_signatures_are_left_out(self):
        app = swift_log.filter_factory({}, str(self.file))(self.server)
        query = 'temp_url_sig=secret&temp_url_expires=1'
        request(app, QUERY_STRING=query)
        self.assertNotIn('secret', self.file.read_text())
        self.assertIn('temp_url_expires=1', self.file.read_text())
