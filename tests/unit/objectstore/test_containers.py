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

    def names(self):
        return [stores.OwnContainer(one, 'stem').name for one in self.stores]

    def test_the_project_s_id_is_in_the_name_but_of_an_earlier_release(self):
        assert self.names() == ['stem-p1', 'stem-p2']
        self.stores[0].put_container('stem', {})
        assert self.names() == ['stem', 'stem-p2']
        # One of this release hides that.
        self.stores[0].put_container('stem-p1', {})
        assert self.names() == ['stem-p1', 'stem-p2']
        self.stores = [self.cluster.store(None)]
        assert self.names() == ['stem']

    def test_it_is_asked_for_once_and_an_outage_is_told(self):
        own = stores.OwnContainer(self.stores[0], 'stem')
        self.cluster.fail()
        self.assertRaises(errors.Unavailable, lambda: own.name)
        assert (own.name, own.name) == ('stem-p1', 'stem-p1')
        assert len(self.cluster.seen) == 2
