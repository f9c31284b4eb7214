# SPDX-License-Identifier: Apache-2.0
"""One attempt for all who want the same thing at the same time."""

from concurrent import futures
import threading
import types
from unittest import mock

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import sharing


class Stopped(BaseException):
    """What is raised in a thread that is to end."""


class AttemptTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.attempt = sharing.SharedAttempt()
        self.go_on = threading.Event()
        self.addCleanup(self.go_on.set)
        self.times = 0

    def together(self, do, others=5):
        """Return what each of several gets who want something at once."""
        begun = threading.Event()

        def slow():
            begun.set()
            self.assertTrue(self.go_on.wait(30))
            self.times += 1
            return do()

        # Who shares an attempt does nothing; who does not is counted.
        with futures.ThreadPoolExecutor(others + 1) as pool:
            first = pool.submit(self.attempt.share, slow)
            self.assertTrue(begun.wait(30))
            rest = [
                pool.submit(self.attempt.share, slow) for _ in range(others)
            ]
            futures.wait(rest, 0.2)
            self.go_on.set()
            return [
                each.exception(30) or each.result() for each in (first, *rest)
            ]

    def test_all_have_the_result_of_one(self):
        self.assertEqual(['yes'] * 6, self.together(lambda: 'yes'))
        self.assertEqual(1, self.times)

    def test_all_have_the_error_of_one(self):
        results = self.together(lambda: 1 / 0)
        self.assertEqual(
            [ZeroDivisionError] * 6, [type(each) for each in results]
        )
        self.assertEqual(1, self.times)

    def test_who_comes_later_tries_anew(self):
        self.assertRaises(ZeroDivisionError, self.attempt.share, lambda: 1 / 0)
        self.assertEqual(1, self.attempt.share(lambda: 1))
        self.assertEqual(2, self.attempt.share(lambda: 2))

    def test_what_stops_the_one_stops_none_of_the_others(self):
        def stop():
            raise Stopped

        first, *rest = self.together(stop)
        self.assertIsInstance(first, Stopped)
        self.assertEqual(
            [errors.Unavailable] * 5, [type(each) for each in rest]
        )
        self.assertEqual(1, self.attempt.share(lambda: 1))


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
    def test_one_that_is_stopped_as_it_waits_for_its_turn_holds_up_nobody(
        self,
    ):
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
        locks = iter([threading.Lock(), StoppedOnce(join)])
        patched = types.SimpleNamespace(Lock=lambda: next(locks))
        with mock.patch.object(sharing, 'threading', patched):
            rounds = sharing.Rounds()
        self.assertRaises(Stopped, rounds.share, len, {})
        follower.join(10)
        self.assertEqual([errors.Unavailable], [type(one) for one in told])
        self.assertEqual(1, rounds.share(len, {'a': 'one'}))

    def test_an_error_is_for_its_round_alone(self):
        rounds = sharing.Rounds()
        self.assertRaises(
            ZeroDivisionError, rounds.share, lambda items: 1 / 0, {}
        )
        self.assertEqual(1, rounds.share(len, {'a': 'one'}))


class BatchesTest(testtools.TestCase):
    def test_what_comes_while_a_batch_is_done_is_done_together(self):
        batches, begun = [], threading.Event()
        go_on = threading.Event()
        self.addCleanup(go_on.set)

        def do(items):
            batches.append(items)
            begun.set()
            self.assertTrue(go_on.wait(30))
            return [key for key, item in items.items() if item]

        shared = sharing.Batches(do)
        with futures.ThreadPoolExecutor(6) as pool:
            first = pool.submit(shared.share, {'first': True})
            self.assertTrue(begun.wait(30))
            rest = [
                pool.submit(shared.share, {number: number % 2})
                for number in range(5)
            ]
            while len(shared) < 5:
                go_on.wait(0.001)
            go_on.set()
            self.assertEqual({'first'}, first.result(30))
            self.assertEqual(
                [set(), {1}, set(), {3}, set()],
                [each.result(30) for each in rest],
            )
        self.assertEqual([1, 5], [len(each) for each in batches])

    def test_of_nothing_nothing_is_done(self):
        shared = sharing.Batches(self.fail)
        self.assertEqual(set(), shared.share({}))

    def together(self, do, items, *options):
        """Hand in items one by one, as one batch; return what each gets."""
        begun, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def stalling(batch):
            if 'before' not in batch:
                return do(batch)
            begun.set()
            self.assertTrue(go_on.wait(30))
            return ()

        shared = sharing.Batches(stalling, *options)
        with futures.ThreadPoolExecutor(len(items) + 1) as pool:
            pool.submit(shared.share, {'before': None})
            self.assertTrue(begun.wait(30))
            rest = [
                pool.submit(shared.share, {key: item})
                for key, item in items.items()
            ]
            while len(shared) < len(items):
                go_on.wait(0.001)
            go_on.set()
            return [each.exception(30) or each.result() for each in rest]

    def test_one_that_fails_fails_alone(self):
        def do(items):
            return [key for key, item in items.items() if 1 / item]

        results = self.together(do, {'a': 1, 'b': 0, 'c': 2})
        self.assertEqual([{'a'}, {'c'}], [results[0], results[2]])
        self.assertIsInstance(results[1], ZeroDivisionError)

    def test_what_is_nobodys_fault_fails_them_all_at_once(self):
        asked = []

        def do(items):
            asked.append(items)
            raise ConnectionError

        results = self.together(
            do,
            {'a': 1, 'b': 2},
            lambda exc: not isinstance(exc, ConnectionError),
        )
        self.assertEqual(
            [ConnectionError] * 2, [type(each) for each in results]
        )
        self.assertEqual(1, len(asked))
