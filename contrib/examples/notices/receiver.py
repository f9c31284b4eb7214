#!/usr/bin/env python3
"""Print the notices of heat-plugins: NOTICE_SECRET=... receiver.py 8080."""

import hashlib
import hmac
import http.server
import json
import os
import sys
import time

SECRET = os.environ['NOTICE_SECRET'].encode()
SEEN = set()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        sent_at = self.headers['Heat-Plugins-Timestamp']
        mac = hmac.new(SECRET, f'{sent_at}.'.encode() + body, hashlib.sha256)
        signature = f'sha256={mac.hexdigest()}'
        given = self.headers['Heat-Plugins-Signature']
        is_valid = hmac.compare_digest(signature, given)
        is_valid = is_valid and abs(time.time() - int(sent_at)) < 300
        if is_valid and (notice := json.loads(body))['id'] not in SEEN:
            SEEN.add(notice['id'])
            print(json.dumps(notice), flush=True)
        self.send_response(204 if is_valid else 403)
        self.end_headers()


http.server.HTTPServer(('', int(sys.argv[1])), Receiver).serve_forever()
