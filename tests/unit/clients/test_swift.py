# SPDX-License-Identifier: Apache-2.0
"""The transport over a Keystone session, against a server on this host."""

import contextlib
import gzip
import importlib
import logging
import re
import socket
import threading
from unittest import mock
from urllib import parse

import fixtures
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session
from keystoneauth1.fixture import plugin as ks_fixture
import testtools

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.clients import rest
from heat_plugins.clients import swift
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from tests.unit import counted

# As an attribute of its package it may be eventlet's by now, with green
# threads, under those Heats that import eventlet.
server = importlib.import_module('http.server')

MANY = 200 * 1024 * 1024

#: Status, body and headers by the name of an object.
ANSWERS = {
    'hello': (200, b'hello', {'X-Container-Meta-Colour': 'green'}),
    'nothing': (204, None, {}),
    'busy': (503, b'later', {}),
    'elsewhere': (302, b'', {'Location': 'http://127.0.0.1:1/stolen'}),
    'bomb': (200, gzip.compress(b'0' * 2**22), {'Content-Encoding': 'gzip'}),
    'half': (200, b'{"a": 1}', {'Content-Length': '1000'}),
}


class Handler(server.BaseHTTPRequestHandler):
    """Answers by the path; the server counts connections and requests."""

    protocol_version = 'HTTP/1.1'
    # A client that goes away in the middle is part of the tests.
    timeout = 10
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.connections += 1

    def handle(self):
        with contextlib.suppress(ConnectionError):
            super().handle()

    def serve(self):
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.requests.append((self.command, self.path, headers))
        path = parse.unquote(re.sub(r'\?.*', '', self.path))
        name = path.rpartition('/')[2]
        self.close_connection = name in ('half', 'hangup')
        if name == 'huge':
            self.send_huge()
        elif name == 'guarded':
            is_let_in = headers.get('x-auth-token') == 'renewed'
            self.answer(200 if is_let_in else 401, b'in' * is_let_in, {})
        elif name != 'hangup':
            self.answer(*ANSWERS[name])

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def answer(self, status, body, headers):
        self.send_response(status)
        if body is not None:
            headers = {'Content-Length': str(len(body)), **headers}
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body or b'')

    def send_huge(self):
        self.answer(200, b'', {'Content-Length': str(MANY)})
        with contextlib.suppress(OSError):
            for _ in range(MANY // 65536):
                self.wfile.write(b'x' * 65536)
                self.server.sent += 65536
        self.close_connection = True

    def log_message(self, *arguments):
        pass


class Server(server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.connections = 0
        self.requests = []
        self.sent = 0


class Plugin(ks_fixture.TestPlugin):
    """The fixture's plugin; its token can be renewed once."""

    renewable = True
    error = None

    def __init__(self, **settings):
        super().__init__(**settings)
        self.filters = []

    def get_endpoint(self, session, **kwargs):
        self.filters.append(kwargs)
        return self._unless_it_fails('endpoint')

    def get_token(self, session):
        return self._unless_it_fails('token')

    def get_project_id(self, session):
        return self._unless_it_fails('project_id')

    def _unless_it_fails(self, name):
        if self.error is not None:
            raise self.error
        return getattr(self, name)

    def invalidate(self):
        self.token = 'renewed'
        renewable, self.renewable = self.renewable, False
        return renewable


class Case(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.server = Server()
        thread = threading.Thread(
            target=self.server.serve_forever, args=(0.02,), daemon=True
        )
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = self.url_at(self.server.server_address[1])
        self.plugin = Plugin(
            token='first', endpoint=f'{self.url}/', project_id='p'
        )
        self.session = ks_session.Session(auth=self.plugin)
        self.transport = swift.KeystoneTransport(rest.Cloud(self.session))

    def url_at(self, port):
        return f'http://127.0.0.1:{port}/v1/AUTH_p'

    def silent(self):
        """Return a URL at which something listens, and says nothing."""
        there = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(there.close)
        return there, self.url_at(there.getsockname()[1])

    def send(self, path, method='GET', **more):
        request = wire.Request(method=method, url=f'{self.url}/{path}', **more)
        return self.transport.send(request)

    def outage(self, *sent, **more):
        call = (errors.Unavailable, self.send, *sent)
        return str(self.assertRaises(*call, **more))

    def header(self, name):
        return self.server.requests[-1][2].get(name)


class AnswerTest(Case):
    def test_an_answer_comes_with_its_status_headers_and_body(self):
        response = self.send('hello')
        assert (response.status, response.body) == (200, b'hello')
        assert not response.truncated
        assert response.headers['x-container-meta-colour'] == 'green'
        # One without a body is complete, and no redirect is followed.
        assert self.send('nothing').body == b''
        assert self.send('hello', 'HEAD').body == b''
        assert self.send('elsewhere').status == 302
        # Headers and the token are sent where there is need.
        self.send('hello', 'POST', headers={'x-container-meta-a': 'b'})
        assert self.header('x-container-meta-a') == 'b'
        assert self.header('x-auth-token') == 'first'
        assert self.header('accept-encoding') == 'identity'
        self.send('hello', authenticated=False)
        assert self.header('x-auth-token') is None

    def test_each_request_is_counted_by_its_answer(self):
        counts = self.useFixture(counted.Counted())
        self.plugin.renewable = False
        for path in ('hello', 'busy', 'elsewhere', 'guarded'):
            self.send(path)
        self.outage('hangup')
        counted_ones = {'2xx': 1, '5xx': 1, '3xx': 1, 'denied': 1, 'none': 1}
        assert counts.of(metrics.STORE) == counted_ones

    def test_dots_in_a_name_are_not_resolved_on_the_way(self):
        objects = stores.ObjectStore(self.transport)
        for name in ('a/../../other/nothing', '../nothing', './nothing'):
            objects.delete_object('box', name)
            path = self.server.requests[-1][1]
            assert parse.unquote(path) == f'/v1/AUTH_p/box/{name}'
            # Nor by a proxy on the way.
            assert path.count('/') == 4

    def test_a_body_is_read_up_to_the_limit(self):
        for limit in (6, 5, 4, 0):
            response = self.send('hello', limit=limit)
            expected = b'hello'[:limit], limit < 5
            assert (response.body, response.truncated) == expected
        # Of a huge one little more is fetched.
        response = self.send('huge', limit=100_000)
        assert len(response.body) == 100_000
        assert response.truncated
        assert self.server.sent < MANY // 4
        # What is packed stays packed.
        response = self.send('bomb', limit=1_000_000)
        assert len(response.body) < 100_000
        assert response.body[:2] == b'\x1f\x8b'
        assert not response.truncated

    def test_half_a_body_is_an_outage(self):
        error = self.outage('half')
        assert 'closed the connection' in error
        assert parse.urlsplit(self.url).netloc in error

        # Also if urllib3 does not count, as in version 1.26.
        request = self.session.request

        def lenient(*args, **kwargs):
            answer = request(*args, **kwargs)
            answer.raw.length_remaining = None
            answer.raw.enforce_content_length = False
            return answer

        self.patch(self.session, 'request', lenient)
        self.outage('half')
        assert self.send('hello').body == b'hello'
        assert self.send('hello', 'HEAD').body == b''

    def test_one_connection_serves_many_requests(self):
        for _ in range(2):
            self.send('hello')
            self.send('hello', 'HEAD')
            self.send('nothing', 'DELETE')
            self.send('busy')
            self.send('hello', authenticated=False)
        assert self.server.connections == 1
        # A body left unread does not spoil the next answer.
        self.send('huge', limit=10)
        assert self.send('hello').body == b'hello'
        assert self.server.connections == 2

    def test_a_token_that_expired_is_renewed_once_within_the_request(self):
        assert self.send('guarded').body == b'in'
        assert self.header('x-auth-token') == 'renewed'
        assert len(self.server.requests) == 2
        assert self.send('guarded').body == b'in'
        assert len(self.server.requests) == 3
        self.plugin.token = 'expired again'
        assert self.send('guarded').status == 401


class KeystoneTest(Case):
    def test_the_catalogue_is_asked_once_for_interface_and_region(self):
        cloud = rest.Cloud(self.session, 'internal', 'north')
        transport = swift.KeystoneTransport(cloud)
        for _ in range(3):
            assert transport.storage_url() == self.url
        (asked,) = self.plugin.filters
        where = (asked['interface'], asked['region_name'])
        assert where == ('internal', 'north')
        assert asked['service_type'] == 'object-store'
        assert self.transport.project_id() == 'p'
        # Without an object store no TempURL can be had.
        self.plugin.endpoint = None
        for missing in (None, exceptions.EndpointNotFound()):
            self.plugin.error = missing
            self.assertRaises(errors.NoObjectStore, self.transport.storage_url)

    def test_a_storage_url_that_nothing_answers_is_read_again(self):
        there, self.plugin.endpoint = self.silent()
        there.close()
        self.url = self.transport.storage_url()
        self.outage('hello')
        # The catalogue comes with the token.
        assert self.plugin.token == 'renewed'
        self.plugin.endpoint = 'http://elsewhere/v1/AUTH_p'
        assert self.transport.storage_url() == self.plugin.endpoint

    def test_options_for_tls_go_with_each_request(self):
        request = mock.Mock(side_effect=ZeroDivisionError)
        self.patch(self.session, 'request', request)
        tls = {'verify': '/ca.pem', 'cert': '/cert.pem'}
        cloud = rest.Cloud(self.session)
        self.transport = swift.KeystoneTransport(cloud, tls=tls)
        self.assertRaises(ZeroDivisionError, self.send, 'hello')
        assert tls.items() <= request.call_args.kwargs.items()

    def test_what_keystone_refuses_is_no_answer_of_the_store(self):
        calls = self.transport.storage_url, self.transport.project_id
        self.plugin.error = exceptions.Unauthorized('hunter2')
        for call in (*calls, lambda: self.send('hello')):
            self.assertRaises(errors.Denied, call)
        assert self.server.requests == []
        self.plugin.error = exceptions.ConnectFailure()
        assert 'Cannot reach the object store' in self.outage('hello')
        for call in calls:
            error = self.assertRaises(errors.Unavailable, call)
            assert 'Cannot reach Keystone' in str(error)

    def test_a_server_that_is_not_there_or_says_nothing_is_an_outage(self):
        self.outage('hangup')
        there, self.url = self.silent()
        assert 'Timeout' in self.outage('hello', timeout=0.2)
        there.close()
        assert parse.urlsplit(self.url).netloc in self.outage('hello')


class SecrecyTest(Case):
    def test_no_token_key_body_or_signature_is_logged(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))
        # urllib3 logs paths by itself; oslo.log keeps that at WARN.
        quiet = logging.getLogger('urllib3')
        self.addCleanup(quiet.setLevel, quiet.level)
        quiet.setLevel(logging.WARNING)
        self.plugin.token = 'the-token'
        self.send('hello', 'POST', headers={'x-account-meta-k': 'the-key'})
        self.send('guarded')
        self.send('hello?temp_url_sig=5', 'HEAD', authenticated=False)
        assert 'temp_url_sig=' in self.server.requests[-1][1]
        secrets = ('the-token', 'the-key', 'hello\n', 'green', 'temp_url_sig')
        for secret in secrets:
            assert secret not in log.output
        # The session is one that would log if it were let.
        self.session.get(f'{self.url}/hello', headers={'X-Thing': 'a-thing'})
        assert 'a-thing' in log.output
