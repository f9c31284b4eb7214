# SPDX-License-Identifier: Apache-2.0
"""The object store's verbs, and what its answers are taken for."""

import hashlib
import json

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from tests.unit import fake_swift

KEY = {'x-container-meta-temp-url-key': 'secret'}


class Canned:
    """A transport that gives the same answer to everything."""

    def __init__(self, status=200, body=b'', url='http://s/v1/AUTH_a'):
        self.response = wire.Response(status=status, body=body)
        self.url = url

    def storage_url(self):
        return self.url

    def project_id(self):
        return None

    def send(self, request):
        return self.response


def answering(status, body=b''):
    return stores.ObjectStore(Canned(status, body))


class StoreTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cluster = fake_swift.Cluster()
        self.store = self.cluster.store()

    def fill(self, *names, container='box', content=b'{}'):
        self.store.put_container(container, KEY)
        self.cluster.container(container).objects.update(
            dict.fromkeys(names, content)
        )

    def url(self, name='signals/a', expires=2**31 - 1, key='secret'):
        return keys.sign_url(
            self.store.url,
            'box',
            name,
            method='PUT',
            expires=expires,
            key=key,
            digest='sha256',
        )

    def test_a_signal_is_listed_fetched_and_deleted(self):
        self.store.put_container('box', KEY)
        self.assertEqual(201, self.cluster.put_signed(self.url(), b'[1]'))
        self.assertEqual(
            [
                stores.ListedObject(
                    name='signals/a',
                    size=3,
                    etag=hashlib.md5(b'[1]').hexdigest(),
                )
            ],
            self.store.list_objects('box', 'signals/'),
        )
        self.assertEqual(
            b'[1]', self.store.get_object('box', 'signals/a', 100)
        )
        self.store.delete_object('box', 'signals/a')
        self.assertEqual([], self.store.list_objects('box', 'signals/'))

    def test_dots_in_a_name_lead_to_no_other_object(self):
        self.store.put_container('other', {})
        self.store.put_object('other', 'kept', b'whole')
        names = [
            'a/../../other/kept',
            'a/./b',
            'a/..',
            '..',
            '.',
            './a',
            '...',
            'signals/ü &?#%2F/c',
        ]
        self.fill('a/b', 'b', *names)
        for name in names:
            self.store.put_object('box', name, name.encode())
        for name in names:
            self.assertEqual(
                name.encode(), self.store.get_object('box', name, 100)
            )
            self.assertTrue(self.store.has_object('box', name))
            self.store.delete_object('box', name)
        self.assertEqual(
            ['a/b', 'b'], [e.name for e in self.store.list_objects('box', '')]
        )
        self.assertEqual(b'whole', self.store.get_object('other', 'kept', 9))

    def test_a_listing_is_whole_however_many_pages_it_has(self):
        page = stores.PAGE
        for cluster, count, pages in (
            (fake_swift.Cluster(), page, 2),
            (fake_swift.Cluster(), 2 * page + 1, 3),
            # It gives fewer than are asked for.
            (fake_swift.ceph(listing_limit=1000), 2500, 3),
        ):
            self.cluster, self.store = cluster, cluster.store()
            names = [f'signals/{n:05}' for n in range(count)]
            self.fill(*names)
            entries = self.store.list_objects('box', 'signals/')
            self.assertEqual(names, [each.name for each in entries])
            self.assertEqual(pages, cluster.asked().count('GET /box'))

    def test_a_listing_that_goes_in_circles_is_an_outage(self):
        page = ','.join(
            f'{{"name": "{n:05}", "bytes": 1}}' for n in range(stores.PAGE)
        )
        store = answering(200, f'[{page}]'.encode())
        self.assertRaises(
            errors.Unavailable, store.list_objects, 'box', 'signals/'
        )

    def test_a_garbled_listing_is_an_outage(self):
        for content in (
            b'<html>',
            b'[{"name": "a"}]',
            b'[{"name": "a", "bytes": "many"}]',
            b'[5]',
            b'5',
            b'[{"name": "a", "by',
            b'[{"name": "a", "bytes": 1e999}]',
            b'[' * 10**5,
        ):
            error = self.assertRaises(
                errors.Unavailable,
                answering(200, content).list_objects,
                'box',
                '',
            )
            self.assertIn('box', str(error))

    def test_a_body_is_never_read_beyond_the_limit(self):
        self.fill('at', content=b'x' * 10)
        self.assertEqual(b'x' * 10, self.store.get_object('box', 'at', 10))
        error = self.assertRaises(
            errors.TooLarge, self.store.get_object, 'box', 'at', 9
        )
        self.assertEqual('it is larger than 9 bytes', str(error))

    def test_a_manifest_is_fetched_itself_not_what_it_names(self):
        self.fill('a')
        self.store.get_object('box', 'a', 10)
        self.assertEqual(
            {'multipart-manifest': 'get'}, self.cluster.seen[-1].query
        )

    def test_what_is_not_there_is_told_apart_from_what_is_in_the_way(self):
        for call in (
            lambda: self.store.head_container('box'),
            lambda: self.store.post_container('box', KEY),
            lambda: self.store.delete_container('box'),
            lambda: self.store.list_objects('box', ''),
            lambda: self.store.get_object('box', 'a', 10),
        ):
            error = self.assertRaises(errors.NoObject, call)
            self.assertEqual(404, error.status)
        self.fill('a')
        error = self.assertRaises(
            errors.Conflict, self.store.delete_container, 'box'
        )
        self.assertEqual(409, error.status)
        self.assertIn('409 to DELETE of box', str(error))

    def test_a_listing_beyond_its_limit_is_refused_after_a_few_pages(self):
        self.fill(*(f'signals/{number:05}' for number in range(5000)))
        del self.cluster.seen[:]
        error = self.assertRaises(
            errors.TooManyObjects,
            self.store.list_objects,
            'box',
            'signals/',
            2000,
        )
        self.assertIn('more than 2000 objects under signals/', str(error))
        self.assertEqual(3, len(self.cluster.seen))

    def test_an_object_is_there_or_not(self):
        self.fill('a')
        self.assertTrue(self.store.has_object('box', 'a'))
        self.assertFalse(self.store.has_object('box', 'b'))
        self.assertFalse(self.store.has_object('nope', 'a'))
        self.assertEqual([], self.store.first_names('nope', '', 1))

    def test_only_the_projects_own_containers_are_listed(self):
        self.cluster = fake_swift.ceph()
        for project, name in (('p1', 'box-1'), ('p2', 'box-2')):
            self.cluster.store(project).put_container(name, {})
        store = self.cluster.store('p1')
        self.assertEqual(['box-1'], store.owned_containers('box'))
        self.assertEqual([], store.owned_containers('other'))

    def test_many_objects_are_deleted_at_once(self):
        names = ['a', 'signals/ü %', 'b']
        self.fill(*names, 'other')
        self.assertEqual([], self.store.delete_at_once('box', [*names, 'no']))
        self.assertEqual(
            ['other'], list(self.cluster.container('box').objects)
        )

    def test_what_was_not_deleted_with_others_is_told(self):
        self.fill('a', 'ü %', 'b')
        self.cluster.stubborn.add('ü %')
        self.assertEqual(
            ['ü %'], self.store.delete_at_once('box', ['a', 'ü %', 'b'])
        )
        answer = {'Response Status': '502 Bad Gateway', 'Errors': []}
        store = answering(200, json.dumps(answer).encode())
        self.assertEqual(['a'], store.delete_at_once('box', ['a']))

    def test_each_status_has_one_meaning(self):
        for status, kind in (
            (301, errors.ServiceError),
            (400, errors.ServiceError),
            (401, errors.Denied),
            (403, errors.Denied),
            (404, errors.NoObject),
            (408, errors.Unavailable),
            (409, errors.Conflict),
            (412, errors.ServiceError),
            (429, errors.Unavailable),
            (498, errors.Unavailable),
            (500, errors.Unavailable),
            (503, errors.Unavailable),
            (507, errors.Unavailable),
        ):
            error = self.assertRaises(
                errors.ServiceError, answering(status).head_account
            )
            self.assertIs(kind, type(error))
            self.assertEqual(status, error.status)
            self.assertIn(f'{status} to HEAD of the account at s', str(error))

    def test_what_the_cluster_offers_is_asked_for_without_a_token(self):
        self.assertIn('tempurl', self.store.info())
        self.assertEqual([None], [s.project_id for s in self.cluster.seen])

    def test_a_cluster_without_a_usable_info_says_nothing(self):
        for status, content in (
            (404, b''),
            (403, b''),
            (302, b''),
            (200, b'<html>'),
            (200, b'[]'),
            (200, b''),
        ):
            self.assertIsNone(answering(status, content).info())

    def test_a_probe_that_the_store_has_no_time_for_decides_nothing(self):
        for status in (408, 429, 498, 500, 503):
            self.assertRaises(
                errors.Unavailable, answering(status).probe, self.url()
            )


class ClusterURLTest(testtools.TestCase):
    def test_the_cluster_is_what_stands_before_the_version(self):
        for url, cluster in (
            ('http://s:8080/v1/AUTH_a', 'http://s:8080'),
            ('http://s:8080/v1/AUTH_a/', 'http://s:8080'),
            ('https://s/v1', 'https://s'),
            ('https://s/v1.0/KEY_v1', 'https://s'),
            ('https://s/swift/v1', 'https://s/swift'),
            ('https://s/swift/v1/AUTH_a', 'https://s/swift'),
            ('https://s/v2ish/object/v1/AUTH_a', 'https://s/v2ish/object'),
            ('https://s/object', 'https://s/object'),
        ):
            store = stores.ObjectStore(Canned(url=url))
            self.assertEqual(cluster, store.cluster_url)

    def test_a_storage_url_names_an_account_or_not(self):
        for url, names in (
            ('http://s/v1/AUTH_x', True),
            ('http://s/swift/v1/AUTH_x', True),
            ('http://s/v1', False),
            ('http://s/swift/v1/', False),
        ):
            store = stores.ObjectStore(Canned(url=url))
            self.assertEqual(names, store.names_account, url)
