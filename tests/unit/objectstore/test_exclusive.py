# SPDX-License-Identifier: Apache-2.0
"""Of those who create an object at the same time, one does."""

import itertools

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import exclusive
from tests.unit import fake_swift


class CreateTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        # It overwrites, whatever it is told of If-None-Match.
        self.cluster = fake_swift.ceph()
        self.store = self.cluster.store()
        self.store.put_container('box', {})
        self.now = 1_800_000_000.0

    def create(self, name='a', body=b'1', sleep=lambda seconds: None, **more):
        clocks = {'now': lambda: self.now, 'sleep': sleep, **more}
        return exclusive.create(self.store, 'box', name, body, **clocks)

    def objects(self):
        return self.cluster.container('box').objects

    def announce(self, started, name='a', token='00'):
        place = f'{exclusive.FOLDER}{name}/{started:017.6f}-{token}'
        self.store.put_object('box', place, b'{}')
        return place

    def test_an_object_is_created_once_and_nothing_else_is_left(self):
        for name in ('a', 'a/b', 'plan-lock:ü %', 'a/b/c'):
            assert self.create(name, body=b'1')
            assert not self.create(name, body=b'2')
            assert self.objects().pop(name) == b'1'
        assert self.objects() == {}
        self.store.delete_container('box')
        self.assertRaises(errors.NoObject, self.create)
        assert self.cluster.container('box') is None

    def test_the_earlier_one_waits_until_the_other_has_given_way(self):
        came = self.announce(self.now + 1)

        def sleep(seconds):
            self.store.delete_object('box', came)

        assert self.create(sleep=sleep)
        assert self.objects() == {'a': b'1'}

    def test_who_has_died_is_not_in_the_way_nor_what_is_no_candidate(self):
        self.announce(self.now - 3600)
        self.announce(self.now - 3600, token='01')
        # A later one is waited for for a while.
        self.announce(self.now + 5)
        ticks = itertools.count(0.0)
        assert self.create(clock=lambda: next(ticks))
        assert self.objects() == {'a': b'1'}
        # A slow listing is read again.
        self.store.put_object('box', f'{exclusive.FOLDER}b/x', b'')
        times = iter([0.0, 0.0, 60.0, 60.0, 61.0])
        assert self.create('b', clock=lambda: next(times))

    def test_whatever_fails_or_is_too_slow_leaves_no_announcement(self):
        for method, number in (('PUT', 1), ('GET', 2), ('PUT', 2)):
            count = itertools.count(1)

            def before(request, method=method, number=number, count=count):
                if request.method == method and next(count) == number:
                    self.cluster.fail()

            self.cluster.before = before
            self.assertRaises(errors.Unavailable, self.create)
            self.cluster.before = lambda request: None
            assert self.objects() == {}
        self.patch(exclusive, 'PATIENCE', -1.0)
        error = self.assertRaises(errors.Unavailable, self.create)
        assert 'Cannot create object a' in str(error)
        assert self.objects() == {}

    def unanswered(self, served):
        """Lose the answer to the PUT of the object.

        :param served: does what the store has done by then.
        """

        def before(request):
            if request.method == 'PUT' and request.url.endswith('/box/a'):
                self.cluster.before = lambda request: None
                served()
                self.cluster.fail()

        self.cluster.before = before

    def test_what_was_created_without_an_answer_is_read_again(self):
        self.unanswered(lambda: self.objects().update(a=b'1'))
        assert self.create()
        assert self.objects() == {'a': b'1'}
        # It may be another's.
        for there in (b'2', b'1, and more'):
            self.store.delete_object('box', 'a')
            self.unanswered(lambda there=there: self.objects().update(a=there))
            self.assertRaises(errors.Unavailable, self.create)
            assert self.objects() == {'a': there}
