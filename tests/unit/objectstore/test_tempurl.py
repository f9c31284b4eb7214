# SPDX-License-Identifier: Apache-2.0
"""Signed URLs, held against Swift's manual."""

import hmac
from urllib import parse

import testtools

from heat_plugins.objectstore import keys

SWIFT = 'https://swift.example.com/v1/AUTH_abc'
EXPIRES = 1700000000


def make(name='signals/d/c', *, is_prefix=False, **changes):
    about = {'container': 'box', 'key': 'secret', 'digest': 'sha256'}
    about |= {'storage_url': SWIFT, 'kind': keys.CONTAINER}
    signer = keys.Signer(**about | changes)
    return signer.url(name, EXPIRES, is_prefix=is_prefix)


def signature(method, path):
    text = f'{method}\n{EXPIRES}\n{path}'
    return hmac.new(b'secret', text.encode(), 'sha256').hexdigest()


def query(url):
    return dict(parse.parse_qsl(parse.urlsplit(url).query))


class TempURLTest(testtools.TestCase):
    def test_one_for_a_prefix_signs_and_names_the_prefix_after_each_root(self):
        for root in ('/v1/AUTH_abc', '/swift/v1', '/swift/v1/AUTH_abc', '/v1'):
            at = f'http://rgw:7480{root}'
            url = make(storage_url=at, name='runs/logs/r/', is_prefix=True)
            path = f'prefix:{root}/box/runs/logs/r/'
            assert query(url) == {
                'temp_url_sig': signature('PUT', path),
                'temp_url_expires': str(EXPIRES),
                'temp_url_prefix': 'runs/logs/r/',
            }

    def test_the_decoded_path_is_signed_and_the_quoted_one_asked_for(self):
        url = make(storage_url='http://s/v1/AUTH_a%20b', name='signals/ü &?/c')
        quoted = '/v1/AUTH_a%20b/box/signals/%C3%BC%20%26%3F/c'
        assert parse.urlsplit(url).path == quoted
        signed = signature('PUT', '/v1/AUTH_a b/box/signals/ü &?/c')
        assert query(url)['temp_url_sig'] == signed

    def test_what_cannot_be_signed_is_refused(self):
        bad = [{'name': ''}, {'name': '//'}, {'container': ''}]
        for changed in (*bad, {'digest': 'md5'}):
            self.assertRaises(ValueError, make, **changed)
