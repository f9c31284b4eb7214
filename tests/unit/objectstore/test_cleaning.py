# SPDX-License-Identifier: Apache-2.0
"""How objects go from the object store."""

import types

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from tests.unit import fake_swift

BOX = 'heat-plugins-root'


class Case(testtools.TestCase):
    def use(self, count=5, **options):
        keys.KeyKeeper.forget_abilities()
        self.addCleanup(keys.KeyKeeper.forget_abilities)
        self.cluster = fake_swift.Cluster(**options)
        self.store = self.cluster.store()
        keys.KeyKeeper(
            self.store, secret='s', digests=('sha256',), overlap=None
        ).ensure(BOX)
        self.names = [f'signals/d {number}/c' for number in range(count)]
        for name in self.names:
            self.store.put_object(BOX, name, b'')
        del self.cluster.seen[:]

    def delete(self, names=None):
        """Delete objects; return how."""
        cleaning.delete(self.store, BOX, names or self.names)
        self.assertEqual((), tuple(cleaning.everything(self.store, BOX)))
        return [each.method for each in self.cluster.seen[:-1]]


class DeleteTest(Case):
    def test_many_go_with_one_request(self):
        self.use()
        self.assertEqual(['POST'], self.delete())

    def test_so_many_at_a_time_as_the_store_takes(self):
        self.use(bulk_delete=2)
        self.assertEqual(['POST', 'POST', 'POST'], self.delete())

    def test_one_goes_by_itself(self):
        self.use(count=1)
        self.assertEqual(['DELETE'], self.delete())

    def test_so_do_all_where_the_store_can_do_no_more(self):
        for options in ({'bulk_delete': 0}, {'info': False}):
            self.use(**options)
            self.assertEqual(['DELETE'] * 5, self.delete())

    def test_and_those_that_it_has_left(self):
        self.use()
        self.cluster.stubborn.add(self.names[3])
        self.assertEqual(['POST', 'DELETE'], self.delete())

    def test_and_all_if_it_refuses(self):
        self.use()
        self.cluster.fail(1, 405, 'POST')
        self.assertEqual(['POST'] + ['DELETE'] * 5, self.delete())

    def test_what_cannot_be_deleted_is_an_error(self):
        self.use()
        self.cluster.fail(10, 503)
        self.assertRaises(
            errors.Unavailable, cleaning.delete, self.store, BOX, self.names
        )

    def test_a_container_that_is_gone_is_empty(self):
        self.use()
        cleaning.drop(self.store, BOX)
        self.assertIsNone(self.cluster.container(BOX))
        self.assertEqual((), tuple(cleaning.everything(self.store, BOX)))
        cleaning.drop(self.store, BOX)


class DropTest(Case):
    def test_a_container_that_is_too_full_goes_in_several_calls(self):
        self.patch(cleaning, 'DROPPED', 2)
        self.use(count=7)
        self.assertRaises(errors.Conflict, cleaning.drop, self.store, BOX)
        self.assertEqual(1, len(self.cluster.container(BOX).objects))
        cleaning.drop(self.store, BOX)
        self.assertIsNone(self.cluster.container(BOX))


class BinTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        clock = types.SimpleNamespace(monotonic=lambda: self.now)
        self.patch(cleaning, 'time', clock)
        self.bin = cleaning.Bin()

    def test_it_is_emptied_when_nothing_has_come_for_two_seconds(self):
        for name in 'abc':
            self.bin.add(name)
            self.now += 1.5
            self.assertEqual([], self.bin.take(is_last=False))
        self.now += 0.5
        self.assertEqual(['a', 'b', 'c'], self.bin.take(is_last=False))
        self.now += 2
        self.assertEqual([], self.bin.take(is_last=False))

    def test_or_when_there_is_no_end_of_what_comes(self):
        taken = []
        for second in range(100):
            self.bin.add(f'{second}')
            self.now += 1
            taken.append(len(self.bin.take(is_last=False)))
        self.assertEqual(3, len([count for count in taken if count]))
        self.assertEqual(30, max(taken))

    def test_or_when_nobody_is_to_come_later(self):
        self.bin.add('a')
        self.assertEqual(['a'], self.bin.take(is_last=True))

    def test_or_when_it_is_full(self):
        for number in range(499):
            self.bin.add(f'{number}')
        self.assertEqual([], self.bin.take(is_last=False))
        self.bin.add('499')
        self.assertEqual(500, len(self.bin.take(is_last=False)))
