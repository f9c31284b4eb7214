# SPDX-License-Identifier: Apache-2.0
"""How objects go from the object store."""

import functools
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
        # What cannot be deleted is an error.
        self.use()
        self.cluster.fail(10, 503)
        self.assertRaises(errors.Unavailable, self.delete)

    def test_a_container_that_is_too_full_goes_in_several_calls(self):
        self.patch(cleaning, 'DROPPED', 2)
        self.use(count=7)
        self.assertRaises(errors.Conflict, cleaning.drop, self.store, BOX)
        assert len(self.cluster.container(BOX).objects) == 1
        # One that is gone is empty.
        for _ in range(2):
            cleaning.drop(self.store, BOX)
            assert self.cluster.container(BOX) is None
            assert tuple(cleaning.everything(self.store, BOX)) == ()
        # All below a prefix goes, however much it is.
        self.use()
        self.store.put_object(BOX, 'other', b'')
        cleaning.delete_below(self.store, BOX, 'signals/')
        assert tuple(cleaning.everything(self.store, BOX)) == ('other',)


class BinTest(testtools.TestCase):
    def test_it_is_emptied_when_nothing_has_come_for_two_seconds(self):
        now = 1000.0
        clock = types.SimpleNamespace(monotonic=lambda: now)
        self.patch(cleaning, 'time', clock)
        found = cleaning.Bin()
        take = functools.partial(found.take, is_last=False)
        for name in 'abc':
            found.add(name)
            now += 1.5
            assert take() == []
        now += 0.5
        assert take() == ['a', 'b', 'c']
        now += 2
        assert take() == []
        # Or when there is no end of what comes.
        taken = []
        for second in range(100):
            found.add(f'{second}')
            now += 1
            taken.append(len(take()))
        assert [count for count in taken if count] == [30] * 3
        found.take(is_last=True)
        # Or when it is full, or nobody is to come later.
        for number in range(499):
            found.add(f'{number}')
        assert take() == []
        found.add('499')
        assert len(take()) == 500
        found.add('a')
        assert found.take(is_last=True) == ['a']
