#!/usr/bin/env python3
"""Print the notices of heat-plugins: NOTICE_SECRET=... receiver.py 8080."""

import collections
import hashlib
import hmac
import http.server
import json
import os
import sys
import time

SECRET = os.environ['NOTICE_SECRET'].encode()
SEEN = collections.deque(maxlen=10_000)


class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = 10  # Seconds to wait for a client.

    def do_POST(self):
        size = self.headers.get('Content-Length', '')
        if not size.isdecimal() or len(size) > 5 or int(size) > 65536:
            self.send_error(413)
            return
        body = self.rfile.read(int(size))
        sent_at = self.headers.get('Heat-Plugins-Timestamp', '')
        given = self.headers.get('Heat-Plugins-Signature', '')
        signed = f'{sent_at}.'.encode() + body
        mac = hmac.new(SECRET, signed, hashlib.sha256).hexdigest()
        is_valid = hmac.compare_digest(
            f'sha256={mac}'.encode(), given.encode()
        )
        is_valid = is_valid and abs(time.time() - int(sent_at)) < 300
        if is_valid and (notice := json.loads(body))['id'] not in SEEN:
            SEEN.append(notice['id'])
            print(json.dumps(notice), flush=True)
        self.send_response(204 if is_valid else 403)
        self.end_headers()


http.server.ThreadingHTTPServer(
    ('', int(sys.argv[1])), Receiver
).serve_forever()
