# SPDX-License-Identifier: Apache-2.0
"""What heat-engine sends to a URL of a user, and to which addresses."""

import contextlib
import functools
import ipaddress
import pathlib
import socket
import socketserver
import ssl
import subprocess
import tempfile
import threading
import time

import fixtures
import testtools
from urllib3.util import connection

from heat_plugins import errors
from heat_plugins.clients import webhooks

HOST = 'hooks.example.com'


class Receiver(socketserver.ThreadingTCPServer):
    """The worst receiver: it answers each connection as a test says."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer, context=None):
        super().__init__(('127.0.0.1', 0), socketserver.BaseRequestHandler)
        self.requests = []
        self._answer = answer
        self._context = context
        self.port = self.server_address[1]
        serve = functools.partial(self.serve_forever, 0.02)
        threading.Thread(target=serve, daemon=True).start()

    def finish_request(self, request, client_address):
        request.settimeout(10)
        with contextlib.suppress(OSError):
            if self._context is not None:
                request = self._context.wrap_socket(request, server_side=True)
            came = b''
            while not came.endswith(b'}'):
                part = request.recv(65536)
                if not part:
                    return
                came += part
            self.requests.append(came)
            self._answer(request)
            request.close()


def says(text):
    return lambda line: line.sendall(b'HTTP/1.1 ' + text)


fine = says(b'200 OK\r\n\r\n')


def resolver(*answer):
    def resolve(host, port, **more):
        if isinstance(answer[0], Exception):
            raise answer[0]
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, '', (each, port))
            for each in answer
        ]

    return resolve


LOCAL = resolver('127.0.0.1')


def with_certificate(host):
    folder = pathlib.Path(tempfile.mkdtemp())
    key, certificate = folder / 'key', folder / 'certificate'
    subprocess.run(
        [
            *('openssl', 'req', '-x509', '-nodes', '-subj', f'/CN={host}'),
            *('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'),
            *('-addext', f'subjectAltName=DNS:{host}'),
            *('-keyout', key, '-out', certificate),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, str(certificate)


class SendingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(webhooks, 'TIMEOUT', (1, 0.5))
        # The name of the test is that of this machine.
        connect = connection.create_connection
        self.patch(
            connection,
            'create_connection',
            lambda address, *given, **more: connect(
                ('127.0.0.1', address[1]), *given, **more
            ),
        )

    def receiver(self, answer=fine, context=None):
        found = Receiver(answer, context)
        self.addCleanup(found.server_close)
        self.addCleanup(found.shutdown)
        return found

    def send(
        self,
        receiver,
        entries=(f'http://{HOST}', 'http://127.0.0.1:PORT'),
        resolve=LOCAL,
        scheme='http',
    ):
        port = str(receiver.port)
        webhooks.send(
            webhooks.Webhook.parse(f'{scheme}://{HOST}:{port}/a?b=c'),
            webhooks.Hosts(
                each.replace(HOST, f'{HOST}:PORT').replace('PORT', port)
                for each in entries
            ),
            {'Heat-Plugins-Timestamp': 'n1'},
            b'{"event": "failure"}',
            resolve,
        )

    def fails(self, said, receiver, kind=errors.Unavailable, **more):
        exc = self.assertRaises(kind, self.send, receiver, **more)
        assert said in str(exc)
        assert 'b=c' not in str(exc)

    def test_it_posts_to_the_path_with_the_name_of_the_host(self):
        receiver = self.receiver(says(b'204 No Content\r\n\r\n'))
        self.send(receiver)
        (came,) = receiver.requests
        assert came.startswith(b'POST /a?b=c HTTP/1.1\r\n')
        assert f'Host: {HOST}:{receiver.port}'.encode() in came
        assert b'Heat-Plugins-Timestamp: n1' in came
        assert came.endswith(b'{"event": "failure"}')

    def test_no_redirect_is_followed_and_an_error_is_one(self):
        inner = self.receiver()
        to = f'http://127.0.0.1:{inner.port}/'.encode()
        answer = b'307 Here\r\nLocation: ' + to + b'\r\n\r\n'
        self.fails('answers 307', self.receiver(says(answer)))
        assert inner.requests == []
        bad = b'500 Oops\r\nContent-Length: 3\r\n\r\nb=c'
        self.fails('answers 500', self.receiver(says(bad)))
        self.fails('does not answer', self.receiver(lambda line: None))
        self.fails('not answer', self.receiver(says(b'HELLO\r\n\r\n')))
        # A slow receiver is left in time.
        begun = time.monotonic()
        self.fails('ReadTimeout', self.receiver(lambda line: time.sleep(5)))
        assert time.monotonic() - begun < 1.4

    def test_a_huge_body_is_not_read_and_no_proxy_is_used(self):
        sent = []

        def floods(line):
            fine(line)
            for _ in range(1000):
                line.sendall(b'x' * 65536)
                sent.append(65536)

        self.send(self.receiver(floods))
        assert sum(sent) < 16 * 2**20
        # No proxy of the environment is used.
        proxy, receiver = self.receiver(), self.receiver()
        url = f'http://127.0.0.1:{proxy.port}'
        self.useFixture(fixtures.EnvironmentVariable('http_proxy', url))
        self.send(receiver)
        assert (proxy.requests, len(receiver.requests)) == ([], 1)

    def test_any_special_address_refuses_the_host(self):
        receiver = self.receiver()
        told = ('address that is not public', receiver, errors.Refused)
        # What lists the whole Internet lists no private network.
        entries = (f'http://{HOST}', '0.0.0.0/0', '::/0')
        for special in (
            *('127.0.0.1', '169.254.169.254', '0.0.0.0', '224.0.0.1'),
            *('10.1.2.3', '192.168.0.7', '100.64.0.1', '198.18.0.1'),
            *('0.1.2.3', '240.0.0.1', '::1', 'fe80::1%eth0', '::'),
            *('::ffff:127.0.0.1', '64:ff9b::7f00:1', 'fd00::7', 'fec0::7'),
            *('2001:0:4136:e378::1', 'ff02::1'),
        ):
            for answer in ((special,), ('198.51.100.7', special)):
                self.fails(*told, entries=entries, resolve=resolver(*answer))
        assert receiver.requests == []

    def test_an_entry_opens_its_network_on_its_port_and_scheme_alone(self):
        receiver = self.receiver()
        said = f'does not list that one for http on port {receiver.port}'
        # Of an entry without a scheme HTTPS alone.
        others = ('127.0.0.0/8', 'http://127.0.0.0/8', 'http://127.0.0.1:1')
        for entry in (*others, '127.0.0.1:PORT'):
            entries = (f'http://{HOST}', entry)
            self.fails(said, receiver, errors.Refused, entries=entries)
        assert receiver.requests == []
        # The default port is one, too.
        url = webhooks.Webhook.parse(f'https://{HOST}/a')
        hosts = webhooks.Hosts([HOST, '127.0.0.0/8:8443'])
        local = ipaddress.ip_address('127.0.0.1')
        self.assertRaises(errors.Refused, hosts.check_address, url, local)

    def test_names_that_do_not_resolve(self):
        receiver = self.receiver()
        # Such as by a label that is too long.
        for exc in (socket.gaierror(socket.EAI_AGAIN, 'b=c'), UnicodeError()):
            self.fails('Cannot resolve', receiver, resolve=resolver(exc))

    def test_tls_proves_the_name_and_not_the_address(self):
        context, proof = with_certificate(HOST)
        other, _ = with_certificate('other.example.com')
        receiver = self.receiver(context=context)
        tls = {'entries': (HOST, '127.0.0.1:PORT'), 'scheme': 'https'}
        self.fails('SSLError', receiver, **tls)
        # The authorities of this machine.
        self.useFixture(fixtures.EnvironmentVariable('SSL_CERT_FILE', proof))
        self.send(receiver, **tls)
        assert len(receiver.requests) == 1
        self.fails('SSLError', self.receiver(context=other), **tls)


class UrlTest(testtools.TestCase):
    def test_what_is_no_url_is_refused_and_not_quoted(self):
        parse = webhooks.Webhook.parse
        for url in (
            *('', 'h/s3cret', 'ftp://h/s3cret', 'ftp://h:21/s3cret'),
            *('file:///s3cret', 'https:///s3cret', 'https://u:s3cret@h/'),
            *('https://h:s3cret/', 'https://h:99999/s3cret'),
            *('https://h/s3cret \r\nHost: other', 'https://h/s3crét'),
            'https://h/s3cret' + 'x' * 2000,
            'https://[fe80::1%25eth0]/s3cret',
        ):
            exc = self.assertRaises(errors.Invalid, parse, url)
            assert 's3cr' not in str(exc)

    def test_only_scheme_and_host_are_shown_and_the_request_goes_there(self):
        webhook = webhooks.Webhook.parse('HTTPS://Hooks.Example.com./s3cret#x')
        assert webhook.shown == 'https://hooks.example.com'
        assert 's3cret' not in repr(webhook)
        for given, url in (
            ('HTTPS://h./a?b=c', 'https://h/a?b=c'),
            ('https://h?a=b', 'https://h/?a=b'),
            ('http://h:80?b', 'http://h/?b'),
            ('https://[2001:db8::7]:8443/a', 'https://[2001:db8::7]:8443/a'),
            ('https://h/a#b', 'https://h/a'),
        ):
            assert webhooks.Webhook.parse(given).url == url


class HostsTest(testtools.TestCase):
    def permits(self, url, *entries):
        try:
            webhooks.Hosts(entries).check(webhooks.Webhook.parse(url))
        except errors.Refused as exc:
            return 'notify_hosts' not in str(exc)
        return True

    def test_a_name_permits_https_and_with_http_in_front_both(self):
        net, four, six = '192.0.2.0/24', '192.0.2.7', '[2001:db8::7]'
        eight = f'{HOST}:8443'
        plain, port = f'http://{HOST}', f'http://{HOST}:8080'
        for entry, permitted, refused in (
            (HOST, f'https://{HOST}', f'https://{HOST}:8443'),
            (HOST, f'https://{HOST}', plain),
            (HOST, f'https://{HOST}', f'https://a.{HOST}'),
            (eight, f'https://{eight}', f'https://{HOST}'),
            (port, port, plain),
            (plain, plain, port),
            (plain, f'https://{HOST}', f'https://{eight}'),
            (f'{net}:8443', f'https://{four}:8443', f'https://{four}'),
            (net, f'https://{four}', f'https://{four}:22'),
            (net, f'https://{four}', f'http://{four}'),
            (f'{six}:8443', f'https://{six}:8443', f'https://{six}'),
            (six, f'https://{six}', f'https://{six}:8443'),
            ('2001:db8::/32', f'https://{six}', f'http://{six}'),
            ('http://127.0.0.1', 'http://127.0.0.1', 'http://127.0.0.2'),
            ('*.example.com', f'https://{HOST}', 'https://example.com'),
            ('*.example.com', f'https://a.{HOST}', 'https://badexample.com'),
            # A name is not judged by a network, nor an odd form of an address.
            ('127.0.0.0/8', 'https://127.0.0.1', 'https://127.1'),
            ('0.0.0.0/0', f'https://{four}', f'https://{HOST}'),
        ):
            assert self.permits(permitted, entry) is True, (entry, permitted)
            assert self.permits(refused, entry) is False, (entry, refused)

    def test_entries_that_permit_nothing_are_named(self):
        invalid = ['*', '*.', '*host', 'host/path', '192.0.2.7/x', 'http://']
        invalid += ['ftp://host', 'host:0', 'host:65536', 'a..b']
        valid = ['a.b', '*.a.b', 'http://a:1', '::1', '[::1]:8']
        valid += ['192.0.2.0/24']
        assert webhooks.Hosts([*valid, *invalid]).invalid == invalid
        # Such a one is not the same as none, which is the default.
        for entries, said in ((['a/b'], 'does not permit'), ([], 'is empty')):
            exc = self.assertRaises(
                errors.Refused,
                webhooks.Hosts(entries).check,
                webhooks.Webhook.parse('https://host/path'),
            )
            assert said in str(exc)
