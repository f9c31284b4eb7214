# SPDX-License-Identifier: Apache-2.0
"""Requests that Ceph's gateway 16.2 and its fake must answer alike.

The unit tests send them to the fake, ``make test-rgw`` to a real gateway.
Each step is a name, and what came of it must be `EXPECTED`.
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

#: What comes of each step: a status, or what is said of it.
EXPECTED = {
    'info has TempURLs': True,
    'info names digests': False,
    'info names a limit of bulk delete': False,
    'HEAD of no container': 404,
    'GET of no object': 404,
    'PUT of a container': 201,
    'PUT of it again': 202,
    "PUT of another project's container": 409,
    "HEAD of another project's container": 403,
    'key of the container is shown': OF_CONTAINER,
    'signed with the key of the container': 403,
    'POST of keys to the account': 204,
    'HEAD of the account shows its key': KEY,
    'HEAD signed for PUT, before': 404,
    'PUT signed with sha1': 201,
    'PUT of the same again': 201,
    'HEAD signed for PUT': 200,
    'signed with sha256': 403,
    'signed with sha512': 403,
    'signed with Key-2': 201,
    'signed for the path without /swift': 201,
    'signed with another key': 403,
    'expired': 401,
    'PUT into no container': 403,
    'HEAD in no container': 403,
    'listing': ['signals/Grüße 1'],
    'listing after the last': [],
    'listing with a limit of 10001': 200,
    'content': b'{}',
    'content up to a limit': (b'{', True),
    'DELETE of a container that is not empty': 409,
    'signed with a former key': 403,
    'DELETE of an object': 204,
    'DELETE of no object': 404,
    'bulk delete': ('200 OK', 1, 1),
    'DELETE of a container': 204,
    'DELETE of no container': 404,
    'account lists the container no longer': True,
}


def run(mine, other):
    """Send all requests, clean up, and return what came of each.

    :param mine: a transport of a project without containers of these names.
    :param other: of another project.
    """
    return dict(_Script(mine, other).steps())


class _Script:
    def __init__(self, mine, other):
        self._mine = mine
        self._other = other
        self._url = mine.storage_url().rstrip('/')

    def steps(self):
        """Yield the name of each step, and what came of it."""
        url = self._url[: self._url.index('/v1')] + '/info'
        request = wire.Request(method='GET', url=url, authenticated=False)
        said = json.loads(self._mine.send(request).body)
        yield 'info has TempURLs', 'tempurl' in said
        yield 'info names digests', 'allowed_digests' in said['tempurl']
        limit = 'max_deletes_per_request' in said['bulk_delete']
        yield 'info names a limit of bulk delete', limit
        yield from self._containers()
        yield from self._signatures()
        yield from self._listings()
        yield from self._endings()

    def _containers(self):
        yield 'HEAD of no container', self._ask('HEAD', BOX).status
        yield 'GET of no object', self._get(OBJECT).status
        yield 'PUT of a container', self._ask('PUT', BOX).status
        yield 'PUT of it again', self._ask('PUT', BOX).status
        url = f'{self._other.storage_url().rstrip("/")}/{BOX}'
        for method in ('PUT', 'HEAD'):
            answer = self._other.send(wire.Request(method=method, url=url))
            yield f"{method} of another project's container", answer.status

    def _signatures(self):
        self._ask('POST', BOX, {CONTAINER_KEY: OF_CONTAINER})
        shown = self._ask('HEAD', BOX).headers.get(CONTAINER_KEY.lower())
        yield 'key of the container is shown', shown
        status = self._signed('PUT', key=OF_CONTAINER)
        yield 'signed with the key of the container', status
        keys = {ACCOUNT_KEY: KEY, f'{ACCOUNT_KEY}-2': FORMER}
        yield 'POST of keys to the account', self._ask('POST', '', keys).status
        shown = self._ask('HEAD', '').headers.get(ACCOUNT_KEY.lower())
        yield 'HEAD of the account shows its key', shown
        yield 'HEAD signed for PUT, before', self._signed('HEAD')
        yield 'PUT signed with sha1', self._signed('PUT')
        yield 'PUT of the same again', self._signed('PUT')
        yield 'HEAD signed for PUT', self._signed('HEAD')
        for digest in ('sha256', 'sha512'):
            yield f'signed with {digest}', self._signed('PUT', digest=digest)
        yield 'signed with Key-2', self._signed('PUT', key=FORMER)
        status = self._signed('PUT', less='/swift')
        yield 'signed for the path without /swift', status
        yield 'signed with another key', self._signed('PUT', key='d' * 32)
        yield 'expired', self._signed('PUT', seconds=-60)
        nowhere = f'{BOX}-none/a/b'
        yield 'PUT into no container', self._signed('PUT', nowhere)
        yield 'HEAD in no container', self._signed('HEAD', nowhere)

    def _listings(self):
        query = f'{BOX}?format=json&limit=1000&prefix=signals/'
        yield 'listing', self._names(query)
        last = parse.quote('signals/Grüße 1')
        yield 'listing after the last', self._names(f'{query}&marker={last}')
        answer = self._send('GET', f'/{BOX}?format=json&limit=10001')
        yield 'listing with a limit of 10001', answer.status
        yield 'content', self._get(OBJECT).body
        answer = self._get(OBJECT, limit=1)
        yield 'content up to a limit', (answer.body, answer.truncated)

    def _endings(self):
        status = self._ask('DELETE', BOX).status
        yield 'DELETE of a container that is not empty', status
        self._ask('POST', '', {f'{ACCOUNT_KEY}-2': ''})
        yield 'signed with a former key', self._signed('PUT', key=FORMER)
        yield 'DELETE of an object', self._ask('DELETE', OBJECT).status
        yield 'DELETE of no object', self._ask('DELETE', OBJECT).status
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
        yield 'bulk delete', (report['Response Status'], *deleted)
        yield 'DELETE of a container', self._ask('DELETE', BOX).status
        yield 'DELETE of no container', self._ask('DELETE', BOX).status
        names = self._names('?format=json&limit=1000&prefix=rgw-')
        yield 'account lists the container no longer', BOX not in names
        self._ask('POST', '', {ACCOUNT_KEY: ''})

    def _send(self, method, path, **options):
        url = self._url + path
        return self._mine.send(wire.Request(method=method, url=url, **options))

    def _ask(self, method, path, headers=None):
        path = f'/{parse.quote(path)}' if path else ''
        return self._send(method, path, headers=headers or {})

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
