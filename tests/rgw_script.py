# SPDX-License-Identifier: Apache-2.0
"""Requests that Ceph's gateway 16.2 and its fake must answer alike.

The unit tests send them to the fake, ``make test-rgw`` to a real gateway.
"""

import hmac
import json
import time
from urllib import parse

from heat_plugins.objectstore import wire

BOX = 'rgw-script'
OBJECT = f'{BOX}/signals/Grüße 1'
ACCOUNT_KEY = 'X-Account-Meta-Temp-Url-Key'
CONTAINER_KEY = 'X-Container-Meta-Temp-Url-Key'
KEY, FORMER, OF_CONTAINER = 'a' * 32, 'b' * 32, 'c' * 32


def unexpected(mine, other):
    """Send all requests, clean up, and return what came of some otherwise.

    :param mine: a transport of a project without containers of these names.
    :param other: of another project.
    """
    return {
        name: (found, expected)
        for name, found, expected in _Script(mine, other).steps()
        if found != expected
    }


class _Script:
    def __init__(self, mine, other):
        self._mine = mine
        self._other = other
        self._url = mine.storage_url().rstrip('/')

    def steps(self):
        """Yield the name of each step, what came of it, and what must."""
        url = self._url[: self._url.index('/v1')] + '/info'
        request = wire.Request(method='GET', url=url, authenticated=False)
        said = json.loads(self._mine.send(request).body)
        yield 'info has TempURLs', 'tempurl' in said, True
        digests = 'allowed_digests' in said['tempurl']
        yield 'info names digests', digests, False
        limit = 'max_deletes_per_request' in said['bulk_delete']
        yield 'info names a limit of bulk delete', limit, False
        yield from self._containers()
        yield from self._signatures()
        yield from self._listings()
        yield from self._endings()

    def _containers(self):
        yield 'HEAD of no container', self._ask('HEAD', BOX), 404
        yield 'GET of no object', self._get(OBJECT).status, 404
        yield 'PUT of a container', self._ask('PUT', BOX), 201
        yield 'PUT of it again', self._ask('PUT', BOX), 202
        url = f'{self._other.storage_url().rstrip("/")}/{BOX}'
        for method, status in (('PUT', 409), ('HEAD', 403)):
            answer = self._other.send(wire.Request(method=method, url=url))
            name = f"{method} of another project's container"
            yield name, answer.status, status

    def _signatures(self):
        self._ask('POST', BOX, {CONTAINER_KEY: OF_CONTAINER})
        shown = self._shown(BOX, CONTAINER_KEY)
        yield 'key of the container is shown', shown, OF_CONTAINER
        status = self._signed('PUT', key=OF_CONTAINER)
        yield 'signed with the key of the container', status, 403
        keys = {ACCOUNT_KEY: KEY, f'{ACCOUNT_KEY}-2': FORMER}
        yield 'POST of keys to the account', self._ask('POST', '', keys), 204
        shown = self._shown('', ACCOUNT_KEY)
        yield 'HEAD of the account shows its key', shown, KEY
        yield 'HEAD signed for PUT, before', self._signed('HEAD'), 404
        yield 'PUT signed with sha1', self._signed('PUT'), 201
        yield 'PUT of the same again', self._signed('PUT'), 201
        yield 'HEAD signed for PUT', self._signed('HEAD'), 200
        for digest in ('sha256', 'sha512'):
            status = self._signed('PUT', digest=digest)
            yield f'signed with {digest}', status, 403
        yield 'signed with Key-2', self._signed('PUT', key=FORMER), 201
        status = self._signed('PUT', less='/swift')
        yield 'signed for the path without /swift', status, 201
        status = self._signed('PUT', key='d' * 32)
        yield 'signed with another key', status, 403
        yield 'expired', self._signed('PUT', seconds=-60), 401
        nowhere = f'{BOX}-none/a/b'
        yield 'PUT into no container', self._signed('PUT', nowhere), 403
        yield 'HEAD in no container', self._signed('HEAD', nowhere), 403

    def _listings(self):
        query = f'{BOX}?format=json&limit=1000&prefix=signals/'
        yield 'listing', self._names(query), ['signals/Grüße 1']
        last = parse.quote('signals/Grüße 1')
        found = self._names(f'{query}&marker={last}')
        yield 'listing after the last', found, []
        answer = self._send('GET', f'/{BOX}?format=json&limit=10001')
        yield 'listing with a limit of 10001', answer.status, 200
        yield 'content', self._get(OBJECT).body, b'{}'
        answer = self._get(OBJECT, limit=1)
        yield 'a part of it', (answer.body, answer.truncated), (b'{', True)

    def _endings(self):
        status = self._ask('DELETE', BOX)
        yield 'DELETE of a container that is not empty', status, 409
        self._ask('POST', '', {f'{ACCOUNT_KEY}-2': ''})
        status = self._signed('PUT', key=FORMER)
        yield 'signed with a former key', status, 403
        yield 'DELETE of an object', self._ask('DELETE', OBJECT), 204
        yield 'DELETE of no object', self._ask('DELETE', OBJECT), 404
        self._signed('PUT')
        answer = self._send(
            'POST',
            '?bulk-delete=1',
            headers={
                'Accept': 'application/json',
                'Content-Type': 'text/plain',
            },
            body='\n'.join(map(parse.quote, (OBJECT, f'{BOX}/none'))).encode(),
        )
        report = json.loads(answer.body)
        deleted = report['Number Deleted'], report['Number Not Found']
        found = report['Response Status'], *deleted
        yield 'bulk delete', found, ('200 OK', 1, 1)
        yield 'DELETE of a container', self._ask('DELETE', BOX), 204
        yield 'DELETE of no container', self._ask('DELETE', BOX), 404
        names = self._names('?format=json&limit=1000&prefix=rgw-')
        yield 'account lists the container', BOX in names, False
        self._ask('POST', '', {ACCOUNT_KEY: ''})

    def _send(self, method, path, **options):
        url = self._url + path
        return self._mine.send(wire.Request(method=method, url=url, **options))

    def _ask(self, method, path, headers=None):
        path = f'/{parse.quote(path)}' if path else ''
        return self._send(method, path, headers=headers or {}).status

    def _shown(self, path, header):
        path = f'/{path}' if path else ''
        return self._send('HEAD', path).headers.get(header.lower())

    def _get(self, path, limit=1000):
        path = f'/{parse.quote(path)}?multipart-manifest=get'
        return self._send('GET', path, limit=limit)

    def _names(self, path):
        answer = self._send(
            'GET', path if path.startswith('?') else f'/{path}'
        )
        return [each['name'] for each in json.loads(answer.body or b'[]')]

    def _signed(
        self,
        method,
        path=OBJECT,
        *,
        key=KEY,
        digest='sha1',
        seconds=60,
        less='',
    ):
        """Send what was signed for PUT; return the status.

        :param less: what the path that is signed does not begin with.
        """
        expires = int(time.time()) + seconds
        signed = f'{parse.urlsplit(self._url).path}/{path}'.removeprefix(less)
        text = f'PUT\n{expires}\n{signed}'.encode()
        signature = hmac.new(key.encode(), text, digest).hexdigest()
        return self._send(
            method,
            f'/{parse.quote(path)}'
            f'?temp_url_sig={signature}&temp_url_expires={expires}',
            authenticated=False,
            body=b'{}' if method == 'PUT' else None,
        ).status
