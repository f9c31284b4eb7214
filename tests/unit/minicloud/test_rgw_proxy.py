# SPDX-License-Identifier: Apache-2.0
"""The proxy before the mini cloud's RGW."""

import io
import json
import subprocess
import sys

from minicloud_lib.services import rgw_proxy
import testtools

#: Answers with what it was sent, in chunks. A process of its own, as Heat
#: changes what threads are in this one.
GATEWAY = """\
import http.server, json

class Gateway(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_PUT(self):
        length = self.headers['Content-Length']
        body = self.rfile.read(int(length)) if length else self.chunks()
        said = json.dumps([self.path, dict(self.headers), body.hex()])
        self.send_response(201, 'Made')
        self.send_header('X-Its-Own', 'yes')
        self.send_header('Transfer-Encoding', 'chunked')
        self.end_headers()
        self.wfile.write(f'{len(said):x}\\r\\n{said}\\r\\n0\\r\\n\\r\\n'.encode())

    def chunks(self):
        body = b''
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        return body

server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Gateway)
print(server.server_port, flush=True)
server.serve_forever()
"""


class ProxyTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        gateway = subprocess.Popen(
            [sys.executable, '-c', GATEWAY],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(gateway.communicate)
        self.addCleanup(gateway.terminate)
        self.port = int(gateway.stdout.readline())

    def put(self, body, **environ):
        """PUT through the proxy; the status, the headers and the body."""
        answers = []
        app = rgw_proxy.app_factory(
            {}, gateway=f'http://127.0.0.1:{self.port}'
        )
        given = app(
            {
                'REQUEST_METHOD': 'PUT',
                'PATH_INFO': '/swift/v1/a/b c',
                'RAW_PATH_INFO': '/swift/v1/a/b%20c',
                'QUERY_STRING': 'temp_url_sig=1&x=%2F',
                'CONTENT_LENGTH': str(len(body)),
                'HTTP_HOST': 'storage:8080',
                'HTTP_X_OBJECT_META_A': 'b',
                'wsgi.input': io.BytesIO(body),
                **environ,
            },
            lambda status, headers: answers.append((status, dict(headers))),
        )
        return *answers[-1], b''.join(given)

    def test_it_passes_on_what_was_sent_and_answered_byte_for_byte(self):
        status, headers, said = self.put(b'\x00' * 200000)
        self.assertEqual('201 Made', status)
        self.assertEqual('yes', headers['X-Its-Own'])
        self.assertNotIn('Transfer-Encoding', headers)
        path, headers, body = json.loads(said)
        self.assertEqual('/swift/v1/a/b%20c?temp_url_sig=1&x=%2F', path)
        self.assertEqual(
            ('storage:8080', 'b'),
            (headers['Host'], headers['X-Object-Meta-A']),
        )
        self.assertEqual(b'\x00' * 200000, bytes.fromhex(body))

    def test_half_a_body_is_not_made_a_whole_one(self):
        status, _, _ = self.put(b'half', CONTENT_LENGTH='8')
        self.assertEqual('499 Client Disconnect', status)
