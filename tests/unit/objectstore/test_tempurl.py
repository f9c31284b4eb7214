# SPDX-License-Identifier: Apache-2.0
"""Signed URLs, held against Swift's own middleware and its manual."""

import hmac
import importlib.util
import time
from urllib import parse

import testtools

from heat_plugins.objectstore import keys

SWIFT = 'https://swift.example.com/v1/AUTH_abc'
EXPIRES = 1700000000


def make(storage_url=SWIFT, container='box', name='signals/d/c', **changes):
    arguments = {
        'method': 'PUT',
        'expires': EXPIRES,
        'key': 'secret',
        'digest': 'sha256',
        **changes,
    }
    return keys.sign_url(storage_url, container, name, **arguments)


def signature(method, path, digest='sha256'):
    text = f'{method}\n{EXPIRES}\n{path}'
    return hmac.new(b'secret', text.encode(), digest).hexdigest()


def query(url):
    return dict(parse.parse_qsl(parse.urlsplit(url).query))


class TempURLTest(testtools.TestCase):
    def test_one_for_a_prefix_signs_and_names_the_prefix_after_each_root(self):
        for root in ('/v1/AUTH_abc', '/swift/v1', '/swift/v1/AUTH_abc', '/v1'):
            url = make(
                storage_url=f'http://rgw:7480{root}',
                name='runs/logs/r/',
                is_prefix=True,
            )
            path = f'prefix:{root}/box/runs/logs/r/'
            assert query(url) == {
                'temp_url_sig': signature('PUT', path),
                'temp_url_expires': str(EXPIRES),
                'temp_url_prefix': 'runs/logs/r/',
            }

    def test_the_decoded_path_is_signed_and_the_quoted_one_asked_for(self):
        url = make(storage_url='http://s/v1/AUTH_a%20b', name='signals/ü &?/c')
        assert (
            parse.urlsplit(url).path
            == '/v1/AUTH_a%20b/box/signals/%C3%BC%20%26%3F/c'
        )
        assert query(url)['temp_url_sig'] == signature(
            'PUT', '/v1/AUTH_a b/box/signals/ü &?/c'
        )

    def test_what_cannot_be_signed_is_refused(self):
        for changed in (
            {'name': ''},
            {'name': '//'},
            {'container': ''},
            {'digest': 'md5'},
        ):
            self.assertRaises(ValueError, make, **changed)


@testtools.skipUnless(
    importlib.util.find_spec('swift'), 'Swift itself is not installed'
)
class MiddlewareTest(testtools.TestCase):
    """Swift's own middleware says whether a URL is good."""

    def status(self, url, method='PUT', keys=('secret',)):
        from swift.common import swob
        from swift.common.middleware import tempurl as middleware
        from swift.proxy.controllers import base

        def serve(env, start_response):
            start_response('201 Created', [])
            return []

        digests = 'sha1 sha256 sha512'
        swift = middleware.filter_factory({}, allowed_digests=digests)(serve)
        request = swob.Request.blank(
            url.partition('example.com')[2], environ={'REQUEST_METHOD': method}
        )
        names = ('temp-url-key', 'temp-url-key-2')
        request.environ['swift.infocache'] = {
            base.get_cache_key('AUTH_abc'): {'status': 204, 'meta': {}},
            base.get_cache_key('AUTH_abc', 'box'): {
                'status': 204,
                'meta': dict(zip(names, keys, strict=False)),
            },
        }
        return request.get_response(swift).status_int

    def test_it_takes_one_for_a_prefix_below_that_alone(self):
        soon = int(time.time()) + 60
        url = make(name='runs/logs/r/', expires=soon, is_prefix=True)
        for name, method, status in (
            ('runs/logs/r/000000', 'PUT', 201),
            ('runs/logs/r/000000', 'GET', 401),
            ('runs/logs/r/000000', 'DELETE', 401),
            ('runs/logs/q/000000', 'PUT', 401),
            ('runs/records/r', 'PUT', 401),
        ):
            other = url.replace('runs/logs/r/?', f'{name}?')
            assert self.status(other, method) == status, name

    def test_it_takes_our_urls_under_each_digest_for_nothing_else(self):
        soon = int(time.time()) + 60
        for digest in ('sha1', 'sha256', 'sha512'):
            for name in ('signals/d/c', 'signals/ü &?#/c'):
                url = make(name=name, expires=soon, digest=digest)
                late = make(name=name, expires=soon - 120, digest=digest)
                for status, answer in (
                    (201, self.status(url)),
                    (201, self.status(url, 'HEAD')),
                    (201, self.status(url, keys=('x', 'secret'))),
                    (401, self.status(url, keys=('x', 'y'))),
                    (401, self.status(url, 'GET')),
                    (401, self.status(url, 'DELETE')),
                    (401, self.status(url.replace('/c?', '/other?'))),
                    (401, self.status(late)),
                ):
                    assert answer == status
