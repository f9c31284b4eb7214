# SPDX-License-Identifier: Apache-2.0
"""Names are kept in the object store where there is no Mistral."""

import testtools

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.plans import plan_claims
from heat_plugins.plans import plan_service
from tests.unit import fake_swift
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes


def record(name, **values):
    return plan_claims.Record(name=name, description='é', values=values)


class NamesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.store = fake_swift.Cluster().store()
        self.names = plan_claims.Names(self.store, pools.Pool(wait=0))

    def test_a_name_is_taken_once(self):
        assert self.names.get('a') is None
        assert self.names.create(record('a', x=1))
        assert not self.names.create(record('a', x=2))
        assert self.names.get('a') == record('a', x=1)

    def test_a_name_is_given_back_once(self):
        self.names.create(record('a'))
        assert self.names.delete('a')
        assert not self.names.delete('a')

    def test_all_are_found(self):
        assert self.names.find() == []
        for name in ('b', 'plan-lock:a', 'a'):
            self.names.create(record(name))
        assert [one.name for one in self.names.find()] == [
            'a',
            'b',
            'plan-lock:a',
        ]

    def test_what_is_no_record_is_told(self):
        self.names.create(record('a'))
        for body in (b'', b'[]', b'{"values": 1}', b'x' * 70000):
            container = f'{plan_claims.CONTAINER}-project-1'
            self.store.put_object(container, 'a', body)
            error = self.assertRaises(errors.ServiceError, self.names.get, 'a')
            assert 'delete it' in str(error)

    def test_on_ceph_a_plan_that_is_there_keeps_its_record(self):
        store = fake_swift.ceph().store()
        names = plan_claims.Names(store, pools.Pool(wait=0))
        plans = plan_service.Plans(store, names, fake_heat.Heat())
        plans.create('plan', fakes.content())
        before = names.get('plan')
        self.assertRaises(errors.Exists, plans.create, 'plan', fakes.content())
        assert names.get('plan') == before

    def test_on_ceph_a_lock_keeps_others_out(self):
        store = fake_swift.ceph().store()
        slept = []
        both = [
            plan_claims.Claims(
                plan_claims.Names(store, pools.Pool(wait=0)),
                clock=lambda: 1e9 + len(slept),
                sleep=slept.append,
            )
            for _ in range(2)
        ]
        with both[0].lock('plan'):
            second = both[1].lock('plan')
            self.assertRaises(errors.PlanBusy, second.__enter__)
        with both[1].lock('plan'):
            pass
