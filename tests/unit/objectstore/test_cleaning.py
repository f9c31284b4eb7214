# SPDX-License-Identifier: Apache-2.0
"""How objects go from the object store."""

import types

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from tests.unit import fake_swift

BOX = 'heat-plugins-root'


class DeleteTest(testtools.TestCase):
    def use(self, count=5, **options):
        self.cluster = fake_swift.Cluster(**options)
        self.store = self.cluster.store()
        keys.KeyKeeper(
            self.store, secret='s', digests=('sha256',), overlap=None
        ).ensure(BOX)
        self.names = [f'signals/d {number}/c' for number in range(count)]
        for name in self.names:
            self.store.put_object(BOX, name, b'')
        del self.cluster.seen[:]

    def delete(self):
        """Delete objects; return how."""
        cleaning.delete(self.store, BOX, self.names)
        assert tuple(cleaning.everything(self.store, BOX)) == ()
        return [each.method for each in self.cluster.seen[:-1]]

    def test_many_go_with_as_few_requests_as_the_store_can(self):
        for options, methods in (
            ({}, ['POST']),
            ({'bulk_delete': 2}, ['POST'] * 3),
            ({'count': 1}, ['DELETE']),
            ({'bulk_delete': 0}, ['DELETE'] * 5),
            ({'info': False}, ['DELETE'] * 5),
        ):
            self.use(**options)
            assert self.delete() == methods, options

    def test_those_that_it_has_left_or_refused_go_by_themselves(self):
        self.use()
        self.cluster.stubborn.add(self.names[3])
        assert self.delete() == ['POST', 'DELETE']
        self.use()
        self.cluster.fail(1, 405, 'POST')
        assert self.delete() == ['POST'] + ['DELETE'] * 5

    def test_what_cannot_be_deleted_is_an_error(self):
        self.use()
        self.cluster.fail(10, 503)
        self.assertRaises(errors.Unavailable, self.delete)

    def test_a_container_that_is_gone_is_empty(self):
        self.use()
        for _ in range(2):
            cleaning.drop(self.store, BOX)
            assert self.cluster.container(BOX) is None
            assert tuple(cleaning.everything(self.store, BOX)) == ()

    def test_a_container_that_is_too_full_goes_in_several_calls(self):
        self.patch(cleaning, 'DROPPED', 2)
        self.use(count=7)
        self.assertRaises(errors.Conflict, cleaning.drop, self.store, BOX)
        assert len(self.cluster.container(BOX).objects) == 1
        cleaning.drop(self.store, BOX)
        assert self.cluster.container(BOX) is None


class BinTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        self.patch(cleaning, 'time', clock)
        self.bin = cleaning.Bin()

    def take(self, *, is_last=False):
        return self.bin.take(is_last=is_last)

    def test_it_is_emptied_when_nothing_has_come_for_two_seconds(self):
        for name in 'abc':
            self.bin.add(name)
            self.now += 1.5
            assert self.take() == []
        self.now += 0.5
        assert self.take() == ['a', 'b', 'c']
        self.now += 2
        assert self.take() == []
        # Or when there is no end of what comes.
        taken = []
        for second in range(100):
            self.bin.add(f'{second}')
            self.now += 1
            taken.append(len(self.take()))
        assert [count for count in taken if count] == [30] * 3
        self.take(is_last=True)
        # Or when it is full, or nobody is to come later.
        for number in range(499):
            self.bin.add(f'{number}')
        assert self.take() == []
        self.bin.add('499')
        assert len(self.take()) == 500
        self.bin.add('a')
        assert self.take(is_last=True) == ['a']
