# SPDX-License-Identifier: Apache-2.0
"""Each project has containers of its own, also where names are shared."""

import testtools

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import stores
from heat_plugins.plans import plan_claims
from heat_plugins.validations import validation_ledger
from tests.unit import fake_swift

RUN = validation_ledger.ValidationRun(
    id='20270115T080000Z-abcdef',
    source='x',
    started_at='2027-01-15T08:00:00Z',
)


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


class ProjectsTest(testtools.TestCase):
    """Two projects of one Ceph, each with all that it keeps there."""

    def setUp(self):
        super().setUp()
        self.cluster = fake_swift.ceph()
        self.stores = [self.cluster.store(name) for name in ('p1', 'p2')]
        self.pool = pools.Pool(wait=0)

    def test_both_have_names_of_plans(self):
        for number, store in enumerate(self.stores):
            names = plan_claims.Names(store, self.pool)
            record = plan_claims.Record(
                name='shop', description='', values={'number': number}
            )
            self.assertTrue(names.create(record))
            self.assertFalse(names.create(record))
            self.assertEqual([record], names.find())
            self.assertEqual(record, names.get('shop'))

    def test_names_of_an_earlier_release_are_found(self):
        store = self.stores[0]
        store.put_container(plan_claims.CONTAINER, {})
        store.put_object(
            plan_claims.CONTAINER, 'shop', b'{"description": "", "values": {}}'
        )
        names = plan_claims.Names(store, self.pool)
        self.assertEqual(['shop'], [one.name for one in names.find()])
        self.assertTrue(names.delete('shop'))

    def test_both_send_parcels(self):
        places = [parcels.send(store, b'"x"') for store in self.stores]
        self.assertEqual(2, len({place['container'] for place in places}))
        for store, place in zip(self.stores, places, strict=True):
            self.assertEqual('x', parcels.unpack(store, place))

    def test_both_have_runs_of_validations(self):
        for store in self.stores:
            runs_of = validation_ledger.Ledger(store, self.pool)
            runs_of.begin(RUN)
            self.assertEqual([RUN.id], [one.id for one in runs_of.every()])
