# SPDX-License-Identifier: Apache-2.0
"""The transport over a Keystone session, against a server on this host."""

import contextlib
import gzip
import importlib
import logging
import re
import socket
import threading
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
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from tests.unit import counted

# As an attribute of its package it may be eventlet's by now, with green
# threads, under those Heats that import eventlet.
server = importlib.import_module('http.server')

MANY = 200 * 1024 * 1024


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
        self.server.requests.append(
            (
                self.command,
                self.path,
                {name.lower(): text for name, text in self.headers.items()},
            )
        )
        path = parse.unquote(re.sub(r'\?.*', '', self.path))
        path = path.rpartition('/')[2]
        getattr(self, f'serve_{path}')()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def answer(self, status=200, body=b'', **headers):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace('_', '-'), text)
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def serve_hello(self):
        self.answer(body=b'hello', X_Container_Meta_Colour='green')

    def serve_nothing(self):
        self.send_response(204)
        self.end_headers()

    def serve_busy(self):
        self.answer(503, b'later')

    def serve_elsewhere(self):
        self.answer(302, Location='http://127.0.0.1:1/stolen')

    def serve_huge(self):
        self.send_response(200)
        self.send_header('Content-Length', str(MANY))
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(MANY // 65536):
                self.wfile.write(b'x' * 65536)
                self.server.sent += 65536
        self.close_connection = True

    def serve_bomb(self):
        self.answer(
            body=gzip.compress(b'0' * 5_000_000), Content_Encoding='gzip'
        )

    def serve_half(self):
        self.send_response(200)
        self.send_header('Content-Length', '1000')
        self.end_headers()
        self.wfile.write(b'{"a": 1}')
        self.close_connection = True

    def serve_half_chunk(self):
        self.send_response(200)
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.wfile.write(b'8\r\n{"a": 1}\r\n20\r\nabc')
        self.close_connection = True

    def serve_closing(self):
        self.answer(body=b'bye', Connection='close')
        self.close_connection = True

    def serve_hangup(self):
        self.close_connection = True

    def serve_guarded(self):
        if self.headers.get('X-Auth-Token') == self.server.token:
            self.answer(body=b'in')
        else:
            self.answer(401, b'out')

    def log_message(self, *arguments):
        """Keep quiet."""


class Server(server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(('127.0.0.1', 0), Handler)
        self.connections = 0
        self.requests = []
        self.sent = 0
        self.token = 'renewed'


class Plugin(ks_fixture.TestPlugin):
    """The fixture's plugin; its token can be renewed once, and it counts."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.renewable = True
        self.catalogue_reads = 0
        self.filters = []
        self.error = None

    def get_endpoint(self, session, **kwargs):
        self.catalogue_reads += 1
        self.filters.append(kwargs)
        self._fail()
        return self.endpoint

    def get_token(self, session):
        self._fail()
        return self.token

    def get_project_id(self, session):
        self._fail()
        return self.project_id

    def _fail(self):
        if self.error is not None:
            raise self.error

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
        host, port = self.server.server_address
        self.url = f'http://{host}:{port}/v1/AUTH_p'
        self.plugin = Plugin(
            token='first', endpoint=f'{self.url}/', project_id='p'
        )
        self.session = ks_session.Session(auth=self.plugin)
        self.transport = swift.KeystoneTransport(rest.Cloud(self.session))

    def send(self, path, method='GET', **more):
        return self.transport.send(
            wire.Request(method=method, url=f'{self.url}/{path}', **more)
        )

    def header(self, name):
        """Return a header of the last request that the server got."""
        return self.server.requests[-1][2].get(name)


class PathTest(Case):
    def test_dots_in_a_name_are_not_resolved_on_the_way(self):
        objects = stores.ObjectStore(self.transport)
        for name in ('a/../../other/nothing', '../nothing', './nothing'):
            objects.delete_object('box', name)
            path = self.server.requests[-1][1]
            self.assertEqual(f'/v1/AUTH_p/box/{name}', parse.unquote(path))
            # Nor by a proxy on the way.
            self.assertEqual(4, path.count('/'))


class AnswerTest(Case):
    def test_an_answer_comes_with_its_status_headers_and_body(self):
        response = self.send('hello')
        self.assertEqual(200, response.status)
        self.assertEqual(b'hello', response.body)
        self.assertFalse(response.truncated)
        self.assertEqual('green', response.headers['x-container-meta-colour'])
        # One without a body is complete.
        self.assertEqual(b'', self.send('nothing').body)
        response = self.send('hello', 'HEAD')
        self.assertEqual((200, b''), (response.status, response.body))

    def test_each_request_is_counted_by_its_answer(self):
        counts = self.useFixture(counted.Counted())
        self.plugin.renewable = False
        for path in ('hello', 'busy', 'elsewhere', 'guarded'):
            self.send(path)
        self.assertRaises(errors.Unavailable, self.send, 'hangup')
        self.assertEqual(
            {'2xx': 1, '5xx': 1, '3xx': 1, 'denied': 1, 'none': 1},
            counts.of(metrics.STORE),
        )

    def test_no_redirect_is_followed(self):
        self.assertEqual(302, self.send('elsewhere').status)

    def test_headers_and_the_token_are_sent_where_there_is_need(self):
        self.send('hello', 'POST', headers={'x-container-meta-a': 'b'})
        self.assertEqual('b', self.header('x-container-meta-a'))
        self.assertEqual('first', self.header('x-auth-token'))
        self.assertEqual('identity', self.header('accept-encoding'))
        self.send('hello', authenticated=False)
        self.assertIsNone(self.header('x-auth-token'))


class BodyTest(Case):
    def test_a_body_is_read_up_to_the_limit(self):
        for limit, body, truncated in (
            (6, b'hello', False),
            (5, b'hello', False),
            (4, b'hell', True),
            (0, b'', True),
        ):
            response = self.send('hello', limit=limit)
            self.assertEqual(
                (body, truncated), (response.body, response.truncated)
            )
        # Of a huge one little more is fetched.
        response = self.send('huge', limit=100_000)
        self.assertEqual(100_000, len(response.body))
        self.assertTrue(response.truncated)
        self.assertLess(self.server.sent, MANY // 4)

    def test_what_is_packed_stays_packed(self):
        response = self.send('bomb', limit=1_000_000)
        self.assertLess(len(response.body), 100_000)
        self.assertEqual(b'\x1f\x8b', response.body[:2])
        self.assertFalse(response.truncated)

    def test_half_a_body_is_an_outage(self):
        for path in ('half', 'half_chunk'):
            error = self.assertRaises(errors.Unavailable, self.send, path)
            self.assertIn('closed the connection', str(error))
            self.assertIn(parse.urlsplit(self.url).netloc, str(error))

    def test_half_a_body_is_noticed_if_urllib3_does_not_count(self):
        # As in version 1.26.
        class Raw:
            def __init__(self, raw):
                self._raw = raw
                raw.length_remaining = None
                raw.enforce_content_length = False

            def __getattr__(self, name):
                return getattr(self._raw, name)

        request = self.session.request

        def lenient(*args, **kwargs):
            answer = request(*args, **kwargs)
            answer.raw = Raw(answer.raw)
            return answer

        self.patch(self.session, 'request', lenient)
        self.assertRaises(errors.Unavailable, self.send, 'half')
        self.assertEqual(b'hello', self.send('hello').body)
        self.assertEqual(b'', self.send('hello', 'HEAD').body)


class ConnectionTest(Case):
    def test_one_connection_serves_many_requests(self):
        for _ in range(5):
            self.send('hello')
            self.send('hello', 'HEAD')
            self.send('nothing', 'DELETE')
            self.send('busy')
            self.send('hello', authenticated=False)
        self.assertEqual(25, len(self.server.requests))
        self.assertEqual(1, self.server.connections)
        # A body left unread does not spoil the next answer.
        self.send('huge', limit=10)
        self.assertEqual(b'hello', self.send('hello').body)
        self.assertEqual(2, self.server.connections)
        # One that the server closed is opened again.
        for _ in range(3):
            self.assertEqual(b'bye', self.send('closing').body)


class TokenTest(Case):
    def test_a_token_that_expired_is_renewed_once_within_the_request(self):
        self.assertEqual(b'in', self.send('guarded').body)
        self.assertEqual('renewed', self.header('x-auth-token'))
        self.assertEqual(2, len(self.server.requests))
        self.assertEqual(b'in', self.send('guarded').body)
        self.assertEqual(3, len(self.server.requests))
        self.plugin.token = 'expired again'
        self.assertEqual(401, self.send('guarded').status)


class EndpointTest(Case):
    def test_the_catalogue_is_asked_once_for_interface_and_region(self):
        transport = swift.KeystoneTransport(
            rest.Cloud(self.session, 'internal', 'north')
        )
        for _ in range(3):
            self.assertEqual(self.url, transport.storage_url())
        (asked,) = self.plugin.filters
        self.assertEqual('object-store', asked['service_type'])
        self.assertEqual('internal', asked['interface'])
        self.assertEqual('north', asked['region_name'])

    def test_without_an_object_store_no_tempurl_can_be_had(self):
        self.plugin.endpoint = None
        error = self.assertRaises(
            errors.NoObjectStore, self.transport.storage_url
        )
        self.assertIn('object-store', str(error))
        for missing in (
            exceptions.EndpointNotFound(),
            exceptions.EmptyCatalog(),
        ):
            self.plugin.error = missing
            self.assertRaises(errors.NoObjectStore, self.transport.storage_url)

    def test_a_storage_url_that_nothing_answers_is_read_again(self):
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        self.plugin.endpoint = f'http://127.0.0.1:{port}/v1/AUTH_p'
        request = wire.Request(
            method='GET', url=f'{self.transport.storage_url()}/hello'
        )
        self.assertRaises(errors.Unavailable, self.transport.send, request)
        # The catalogue comes with the token.
        self.assertEqual('renewed', self.plugin.token)
        self.plugin.endpoint = self.url
        self.assertEqual(self.url, self.transport.storage_url())

    def test_options_for_tls_go_with_each_request(self):
        seen = []
        self.patch(
            self.session,
            'request',
            lambda *args, **kwargs: seen.append(kwargs) or 1 / 0,
        )
        self.transport = swift.KeystoneTransport(
            rest.Cloud(self.session),
            tls={'verify': '/ca.pem', 'cert': '/cert.pem'},
        )
        self.assertRaises(ZeroDivisionError, self.send, 'hello')
        self.assertEqual('/ca.pem', seen[0]['verify'])
        self.assertEqual('/cert.pem', seen[0]['cert'])
        self.assertGreater(seen[0]['timeout'], 0)

    def test_the_project_is_the_tokens(self):
        self.assertEqual('p', self.transport.project_id())


class ErrorTest(Case):
    def test_what_keystone_refuses_is_denied(self):
        for refused in (
            exceptions.Unauthorized('hunter2'),
            exceptions.Forbidden('hunter2'),
            exceptions.NotFound('hunter2'),
            exceptions.AuthorizationFailure('hunter2'),
            exceptions.MissingAuthPlugin('hunter2'),
        ):
            self.plugin.error = refused
            for call in (
                lambda: self.send('hello'),
                self.transport.storage_url,
                self.transport.project_id,
            ):
                error = self.assertRaises(errors.Denied, call)
                self.assertIsNone(error.status)
                self.assertIn(type(refused).__name__, str(error))
                self.assertNotIn('hunter2', str(error))
        self.assertEqual([], self.server.requests)

    def test_what_may_pass_is_an_outage(self):
        for passing in (
            exceptions.ConnectFailure(),
            exceptions.ConnectTimeout(),
            exceptions.ServiceUnavailable(),
            exceptions.DiscoveryFailure(),
        ):
            self.plugin.error = passing
            error = self.assertRaises(errors.Unavailable, self.send, 'hello')
            self.assertIn(type(passing).__name__, str(error))

    def test_an_outage_of_keystone_is_told_as_one(self):
        self.plugin.error = exceptions.ServiceUnavailable()
        error = self.assertRaises(errors.Unavailable, self.send, 'hello')
        self.assertIn('Keystone answered 503', str(error))
        self.plugin.error = exceptions.ConnectFailure()
        error = self.assertRaises(
            errors.Unavailable, self.transport.project_id
        )
        self.assertIn('Cannot reach Keystone', str(error))

    def test_a_server_that_hangs_up_is_an_outage(self):
        self.assertRaises(errors.Unavailable, self.send, 'hangup')

    def test_a_server_that_is_not_there_is_an_outage(self):
        with socket.create_server(('127.0.0.1', 0)) as free:
            port = free.getsockname()[1]
        self.url = f'http://127.0.0.1:{port}/v1/AUTH_p'
        error = self.assertRaises(errors.Unavailable, self.send, 'hello')
        self.assertIn(f'127.0.0.1:{port}', str(error))

    def test_a_server_that_says_nothing_is_given_up(self):
        with socket.create_server(('127.0.0.1', 0)) as silent:
            port = silent.getsockname()[1]
            self.url = f'http://127.0.0.1:{port}/v1/AUTH_p'
            error = self.assertRaises(
                errors.Unavailable, self.send, 'hello', timeout=0.2
            )
        self.assertIn('Timeout', str(error))


class SecrecyTest(Case):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.DEBUG))

    def test_no_token_key_or_body_is_logged(self):
        self.plugin.token = 'the-token'
        self.send('hello', 'POST', headers={'x-account-meta-k': 'the-key'})
        self.send('guarded')
        for secret in ('the-token', 'the-key', 'hello\n', 'green'):
            self.assertNotIn(secret, self.log.output)

    def test_we_log_no_signature(self):
        # urllib3 logs paths by itself; oslo.log keeps that at WARN.
        quiet = logging.getLogger('urllib3')
        self.addCleanup(quiet.setLevel, quiet.level)
        quiet.setLevel(logging.WARNING)
        url = keys.sign_url(
            self.url,
            'box',
            'hello',
            method='PUT',
            expires=5,
            key='k',
            digest='sha1',
        )
        self.transport.send(
            wire.Request(method='HEAD', url=url, authenticated=False)
        )
        self.assertIn('temp_url_sig=', self.server.requests[-1][1])
        self.assertNotIn('temp_url_sig', self.log.output)

    def test_the_session_is_one_that_would_log_if_it_were_let(self):
        self.session.get(f'{self.url}/hello', headers={'X-Thing': 'a-thing'})
        self.assertIn('a-thing', self.log.output)


class SeamTest(Case):
    def test_a_store_works_over_it(self):
        box = stores.ObjectStore(self.transport)
        self.assertEqual(b'hello', box.get_object('box', 'hello', 10))
        self.assertEqual(
            '/v1/AUTH_p/box/hello?multipart-manifest=get',
            self.server.requests[-1][1],
        )
        self.assertRaises(errors.TooLarge, box.get_object, 'b', 'hello', 4)
        self.assertRaises(errors.Unavailable, box.head_container, 'busy')
