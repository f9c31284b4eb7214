# SPDX-License-Identifier: Apache-2.0
"""The object store's verbs, and what its answers are taken for."""

import json
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from tests.unit import fake_swift

KEY = {'x-container-meta-temp-url-key': 'secret'}


def answering(status=200, body=b'', url='http://s/v1/AUTH_a'):
    """Return a store that gives the same answer to everything."""
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    transport = mock.Mock()
    transport.storage_url.return_value = url
    transport.send.return_value = wire.Response(status=status, body=body)
    return stores.ObjectStore(transport)


class StoreTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cluster = fake_swift.Cluster()
        self.store = self.cluster.store()

    def fill(self, *names, content=b'{}'):
        self.store.put_container('box', KEY)
        objects = dict.fromkeys(names, content)
        self.cluster.container('box').objects.update(objects)

    def test_dots_in_a_name_lead_to_no_other_object(self):
        self.store.put_container('other', {})
        self.store.put_object('other', 'kept', b'whole')
        names = ['a/../../other/kept', 'a/./b', 'a/..', '..', '.', './a']
        names += ['...', 'signals/ü &?#%2F/c']
        self.fill('a/b', 'b', *names)
        for name in names:
            self.store.put_object('box', name, name.encode())
        for name in names:
            assert self.store.get_object('box', name, 100) == name.encode()
            assert self.store.has_object('box', name)
            self.store.delete_object('box', name)
        assert self.store.first_names('box', '', 9) == ['a/b', 'b']
        assert self.store.get_object('other', 'kept', 9) == b'whole'

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
            assert [each.name for each in entries] == names
            assert cluster.asked().count('GET /box') == pages

    def test_a_listing_that_is_garbled_or_goes_in_circles_is_an_outage(self):
        for content in (
            *(b'<html>', [5], 5, b'[{"name": "a", "by', b'[' * 10**5),
            [{'name': 'a'}],
            [{'name': 'a', 'bytes': 'many'}],
            b'[{"name": "a", "bytes": 1e999}]',
            [{'name': f'{n:05}', 'bytes': 1} for n in range(stores.PAGE)],
        ):
            listing = answering(200, content).list_objects
            error = self.assertRaises(errors.Unavailable, listing, 'box', '')
            assert 'box' in str(error)

    def test_what_is_not_there_is_told_apart_from_what_is_in_the_way(self):
        for call in (
            lambda: self.store.head_container('box'),
            lambda: self.store.post_container('box', KEY),
            lambda: self.store.delete_container('box'),
            lambda: self.store.list_objects('box', ''),
            lambda: self.store.get_object('box', 'a', 10),
        ):
            error = self.assertRaises(errors.NoObject, call)
            assert error.status == 404
        assert self.store.first_names('box', '', 1) == []
        self.fill('a')
        for name in ('box/b', 'nope/a'):
            assert not self.store.has_object(*name.split('/'))
        error = self.assertRaises(
            errors.Conflict, self.store.delete_container, 'box'
        )
        assert error.status == 409
        assert '409 to DELETE of box' in str(error)

    def test_nothing_is_read_beyond_its_limit(self):
        self.fill('at', content=b'x' * 10)
        get = self.store.get_object
        assert get('box', 'at', 10) == b'x' * 10
        error = self.assertRaises(errors.TooLarge, get, 'box', 'at', 9)
        assert str(error) == 'it is larger than 9 bytes'
        # A listing is refused after a few pages.
        self.fill(*(f'signals/{number:05}' for number in range(5000)))
        del self.cluster.seen[:]
        call = (self.store.list_objects, 'box', 'signals/', 2000)
        error = self.assertRaises(errors.TooManyObjects, *call)
        assert 'more than 2000 objects under signals/' in str(error)
        assert len(self.cluster.seen) == 3

    def test_only_the_projects_own_containers_are_listed(self):
        self.cluster = fake_swift.ceph()
        for project, name in (('p1', 'box-1'), ('p2', 'box-2')):
            self.cluster.store(project).put_container(name, {})
        store = self.cluster.store('p1')
        assert store.owned_containers('box') == ['box-1']
        assert store.owned_containers('other') == []

    def test_many_objects_are_deleted_at_once_but_those_that_are_told(self):
        self.fill('a', 'signals/ü %', 'b', 'other')
        self.cluster.stubborn.add('signals/ü %')
        names = ['a', 'signals/ü %', 'b', 'no']
        assert self.store.delete_at_once('box', names) == ['signals/ü %']
        self.cluster.stubborn.clear()
        assert self.store.delete_at_once('box', names) == []
        assert list(self.cluster.container('box').objects) == ['other']
        answer = {'Response Status': '502 Bad Gateway', 'Errors': []}
        store = answering(200, answer)
        assert store.delete_at_once('box', ['a']) == ['a']

    def test_each_status_has_one_meaning(self):
        for kind, *statuses in (
            (errors.ServiceError, 301, 400, 412),
            (errors.Denied, 401, 403),
            (errors.NoObject, 404),
            (errors.Conflict, 409),
            (errors.Unavailable, 408, 429, 498, 500, 503, 507),
        ):
            for status in statuses:
                error = self.assertRaises(kind, answering(status).head_account)
                assert (type(error), error.status) == (kind, status)
                assert f'{status} to HEAD of the account at s' in str(error)
                if kind is errors.Denied:
                    # What a reader lacks is told; who writes says it himself.
                    assert 'needs a role' not in str(error)
                    read = (answering(status).get_object, 'box', 'a', 1)
                    error = self.assertRaises(kind, *read)
                    assert 'needs a role in this project' in str(error)
                if kind is errors.Unavailable:
                    # Then a probe decides nothing.
                    probe = answering(status).probe
                    self.assertRaises(kind, probe, 'http://s/v1/AUTH_a/a/b')

    def test_a_cluster_without_a_usable_info_says_nothing(self):
        for status in (404, 403, 302):
            assert answering(status).info() is None
        for content in (b'<html>', [], b''):
            assert answering(200, content).info() is None

    def test_the_storage_url_has_the_cluster_and_may_name_an_account(self):
        for url, cluster, names_account in (
            ('http://s:8080/v1/AUTH_a', 'http://s:8080', True),
            ('http://s:8080/v1/AUTH_a/', 'http://s:8080', True),
            ('https://s/v1', 'https://s', False),
            ('https://s/v1.0/KEY_v1', 'https://s', True),
            ('https://s/swift/v1/', 'https://s/swift', False),
            ('https://s/swift/v1/AUTH_a', 'https://s/swift', True),
            ('https://s/v2ish/o/v1/AUTH_a', 'https://s/v2ish/o', True),
            ('https://s/object', 'https://s/object', True),
        ):
            store = answering(url=url)
            assert store.cluster_url == cluster
            assert store.names_account == names_account, url

    def test_each_project_has_its_own_container_where_names_are_shared(self):
        cluster = fake_swift.ceph()
        first, second, other = map(cluster.store, ('p1', 'p2', None))

        def names(*users):
            return [stores.OwnContainer(one, 'stem').name for one in users]

        assert names(first, second, other) == ['stem-p1', 'stem-p2', 'stem']
        # One of an earlier release has no ID; one of this release hides that.
        first.put_container('stem', {})
        assert names(first, second) == ['stem', 'stem-p2']
        first.put_container('stem-p1', {})
        assert names(first, second, other) == ['stem-p1', 'stem-p2', 'stem']
        # It is asked for once; an outage is told.
        own = stores.OwnContainer(cluster.store('p3'), 'stem')
        del cluster.seen[:]
        cluster.fail()
        self.assertRaises(errors.Unavailable, lambda: own.name)
        assert (own.name, own.name) == ('stem-p3', 'stem-p3')
        assert len(cluster.seen) == 2
