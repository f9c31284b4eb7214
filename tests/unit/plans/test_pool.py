# SPDX-License-Identifier: Apache-2.0
"""Many requests are made at a time, but not too many."""

import threading

import testtools

from heat_plugins import pool
from heat_plugins.objectstore import errors


class PoolTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.pool = pool.Pool(workers=3, wait=0)

    def test_results_come_in_the_order_of_things(self):
        self.assertEqual([1, 4, 9], self.pool.each(lambda n: n * n, [1, 2, 3]))
        self.assertEqual([], self.pool.each(lambda n: n, []))

    def test_so_many_are_made_at_a_time_and_no_more(self):
        together = threading.Barrier(3)
        running = []
        most = []

        def call(number):
            running.append(number)
            most.append(len(running))
            together.wait(10)
            running.remove(number)

        self.pool.each(call, range(9))
        self.assertEqual(3, max(most))

    def test_what_has_not_begun_does_not_begin_after_an_error(self):
        begun = []

        def call(number):
            begun.append(number)
            raise ZeroDivisionError

        self.assertRaises(
            ZeroDivisionError, pool.Pool(workers=1).each, call, range(99)
        )
        self.assertEqual([0], begun)

    def test_an_outage_is_ridden_out_for_a_while(self):
        calls = []

        def call(thing):
            calls.append(thing)
            if len(calls) < 4:
                raise errors.Unavailable('later')
            return 'done'

        self.assertEqual('done', self.pool.insist(call, 'a'))
        self.assertEqual(4, len(calls))

    def test_an_outage_that_stays_is_told_and_others_are_at_once(self):
        for error, times in ((errors.Unavailable('x'), 4), (KeyError(), 1)):
            calls = []

            def call(thing, error=error, calls=calls):
                calls.append(thing)
                raise error

            self.assertRaises(type(error), self.pool.insist, call, 'a')
            self.assertEqual(times, len(calls))
