# SPDX-License-Identifier: Apache-2.0
"""Each project has containers of its own, also where names are shared."""

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import stores
from tests.unit import fake_swift


class OwnTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cluster = fake_swift.ceph()
        self.stores = [self.cluster.store(name) for name in ('p1', 'p2')]

    def name(self, store):
        return stores.OwnContainer(store, 'stem').name

    def test_the_projects_id_is_part_of_the_name(self):
        self.assertEqual(
            ['stem-p1', 'stem-p2'], [self.name(one) for one in self.stores]
        )

    def test_what_an_earlier_release_has_made_is_found(self):
        self.stores[0].put_container('stem', {})
        self.assertEqual(
            ['stem', 'stem-p2'], [self.name(one) for one in self.stores]
        )

    def test_an_earlier_release_beside_this_one_hides_nothing(self):
        self.stores[0].put_container('stem-p1', {})
        self.stores[0].put_container('stem', {})
        self.assertEqual('stem-p1', self.name(self.stores[0]))

    def test_it_is_asked_for_once(self):
        own = stores.OwnContainer(self.stores[0], 'stem')
        self.assertEqual((own.name, own.name), ('stem-p1', 'stem-p1'))
        self.assertEqual(1, len(self.cluster.seen))

    def test_without_a_project_the_name_is_the_stem(self):
        store = self.cluster.store(None)
        self.assertEqual('stem', self.name(store))

    def test_a_store_that_is_away_is_told(self):
        self.cluster.fail()
        self.assertRaises(errors.Unavailable, self.name, self.stores[0])
