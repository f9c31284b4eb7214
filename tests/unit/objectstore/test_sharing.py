# SPDX-License-Identifier: Apache-2.0
"""One attempt for all who want the same thing at the same time."""

import collections
from concurrent import futures
import threading
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import sharing


class Stopped(BaseException):
    """What is raised in a thread that is to end."""


class Case(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.addCleanup(self.go_on.set)

    def stall(self):
        self.begun.set()
        assert self.go_on.wait(30)

    def results(self, first, others, are_waiting):
        """Return what calls get, of which the others come in the first."""
        with futures.ThreadPoolExecutor(len(others) + 1) as pool:
            calls = [pool.submit(*first)]
            assert self.begun.wait(30)
            calls += [pool.submit(*other) for other in others]
            while not are_waiting(calls):
                self.go_on.wait(0.001)
            self.go_on.set()
            return [each.exception(30) or each.result() for each in calls]


class AttemptTest(Case):
    def together(self, **outcome):
        """Return what each of six gets who want something at once."""
        self.begun.clear()
        self.go_on.clear()
        do = mock.Mock(**outcome)

        def slow():
            self.stall()
            return do()

        # Who shares an attempt does nothing; who does not is counted.
        call = (self.attempt.share, slow)
        results = self.results(
            call, [call] * 5, lambda calls: futures.wait(calls, 0.2)
        )
        do.assert_called_once_with()
        return results

    def test_all_have_the_result_of_one_or_its_error(self):
        self.attempt = sharing.SharedAttempt()
        assert self.together(return_value='yes') == ['yes'] * 6
        results = self.together(side_effect=ZeroDivisionError)
        assert [type(each) for each in results] == [ZeroDivisionError] * 6
        # What stops the one stops none of the others.
        first, *rest = self.together(side_effect=Stopped)
        assert isinstance(first, Stopped)
        assert [type(each) for each in rest] == [errors.Unavailable] * 5
        # Who comes later tries anew.
        assert self.attempt.share(lambda: 1) == 1


class StoppedOnce:
    """A lock; who first waits for it is stopped, as by eventlet."""

    def __init__(self, meanwhile):
        self.lock = threading.Lock()
        self.meanwhile = [meanwhile]

    def __enter__(self):
        for meanwhile in self.meanwhile:
            self.meanwhile = []
            meanwhile()
            raise Stopped
        self.lock.acquire()

    def __exit__(self, *exc):
        self.lock.release()


class RoundsTest(testtools.TestCase):
    def test_one_stopped_as_it_waits_for_its_turn_holds_up_nobody(self):
        told = []

        def follow():
            try:
                told.append(rounds.share(len, {}))
            except errors.Unavailable as exc:
                told.append(exc)

        follower = threading.Thread(target=follow, daemon=True)

        def join():
            follower.start()
            follower.join(0.2)

        # One guards what is next, the other one is held as a round runs.
        locks = [threading.Lock(), StoppedOnce(join)]
        with mock.patch.object(sharing.threading, 'Lock', side_effect=locks):
            rounds = sharing.Rounds()
        self.assertRaises(Stopped, rounds.share, len, {})
        follower.join(10)
        assert [type(one) for one in told] == [errors.Unavailable]
        # Nor does an error.
        fail = (rounds.share, lambda items: 1 / 0, {})
        self.assertRaises(ZeroDivisionError, *fail)
        assert rounds.share(len, {'a': 'one'}) == 1


class BatchesTest(Case):
    def together(self, do, items, *options):
        """Hand in items one by one, as one batch; return what each gets."""
        came = []

        class Item(collections.UserDict):
            def keys(self):
                came.append(self)
                return super().keys()

        def stalling(batch):
            if 'before' not in batch:
                return do(batch)
            self.stall()
            return ()

        shared = sharing.Batches(stalling, *options)
        found = self.results(
            (shared.share, {'before': None}),
            [(shared.share, Item({key: items[key]})) for key in items],
            lambda calls: len(came) == len(items),
        )
        assert found.pop(0) == set()
        return found

    def test_what_comes_while_a_batch_is_done_is_done_together(self):
        batches = []

        def do(items):
            batches.append(items)
            return [key for key, item in items.items() if item]

        items = {number: number % 2 for number in range(5)}
        results = self.together(do, items)
        assert results == [set(), {1}, set(), {3}, set()]
        assert batches == [items]

    def test_one_that_fails_fails_alone(self):
        assert sharing.Batches(self.fail).share({}) == set()

        def do(items):
            return [key for key, item in items.items() if 1 / item]

        first, failed, last = self.together(do, {'a': 1, 'b': 0, 'c': 2})
        assert (first, last) == ({'a'}, {'c'})
        assert isinstance(failed, ZeroDivisionError)

    def test_what_is_nobodys_fault_fails_them_all_at_once(self):
        asked = []

        def do(items):
            asked.append(items)
            raise ConnectionError

        def is_of_one(exc):
            return not isinstance(exc, ConnectionError)

        results = self.together(do, {'a': 1, 'b': 2}, is_of_one)
        assert [type(each) for each in results] == [ConnectionError] * 2
        assert len(asked) == 1
