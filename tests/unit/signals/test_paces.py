# SPDX-License-Identifier: Apache-2.0
"""Polls are fast while a signal is likely, and seldom in a quiet wait."""

import itertools

import testtools

from heat_plugins.signals import paces


class PaceTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.use(paces.PollLimits())

    def use(self, limits):
        self.pace = paces.PollPace(limits, lambda: self.now)
        self.pace.deliver()

    def assert_next(self, seconds, *, after=0):
        self.now += after
        assert self.pace.interval() == seconds

    def polls(self, seconds, cost=0.0):
        """Return the seconds after which polls begin, within a time."""
        begun = self.now
        found = []
        while (passed := self.now - begun) < seconds:
            found.append(passed)
            self.now += cost
            self.now += self.pace.interval(cost)
        return found

    def test_a_server_that_is_not_known_may_answer_fast(self):
        assert len(self.polls(30)) == 120
        assert len(self.polls(30)) < 25
        self.polls(60)
        self.assert_next(5.0)
        self.assert_next(5.0, after=3600)

    def test_there_are_never_more_than_four_a_second(self):
        self.use(paces.PollLimits(fast=0.01, interval=0.01, interval_max=0.01))
        for earlier, later in itertools.pairwise(self.polls(200)):
            assert later - earlier >= 0.25

    def test_polls_are_fast_as_long_as_servers_usually_take(self):
        for answers, after, expected in (
            ([9, 10, 11], 19, 0.25),
            ([9, 10, 11], 21, 1.0),
            ([300] * 3, 0, 1.0),
            # One slow server makes not all of them slow.
            ([10, 10, 3000], 0, 0.25),
            # What is usual may change.
            ([300] * 40 + [10] * 20, 0, 0.25),
        ):
            self.use(paces.PollLimits())
            for seconds in answers:
                self.pace.deliver()
                self.now += seconds
                self.pace.arrive(self.now - seconds)
                self.now += 600
            self.pace.deliver()
            self.assert_next(expected, after=after)

    def test_others_follow_an_arrival_and_no_other_end(self):
        self.now += 1000
        self.pace.arrive(self.now - 1000)
        self.assert_next(0.25)
        self.assert_next(1.0, after=6)
        self.use(paces.PollLimits())
        self.now += 1000
        self.pace.arrive()
        self.pace.deliver()
        self.assert_next(0.25, after=1)

    def test_a_store_that_answers_slowly_is_polled_less_often(self):
        assert self.pace.interval(cost=0.2) == 0.8
        for _ in range(5):
            interval = self.pace.interval(cost=20)
        assert interval == 1.0

    def test_one_slow_answer_makes_no_poll_late(self):
        for cost in (0.02, 0.02, 0.02):
            self.assertAlmostEqual(0.23, self.pace.interval(cost))
        for cost in (5.0, 5.0):
            assert self.pace.interval(cost) == 0.02
        assert self.pace.interval(5.0) == 1.0

    def test_they_begin_four_times_a_second_whatever_they_cost(self):
        for earlier, later in itertools.pairwise(self.polls(10, cost=0.04)):
            self.assertAlmostEqual(0.25, later - earlier)
        # One that fails makes them slow.
        assert self.pace.interval(failed=True) == 1.0

    def test_who_asks_for_slow_polls_has_no_fast_ones(self):
        self.use(paces.PollLimits(fast=10.0, interval=3.0, interval_max=3.0))
        self.assert_next(3.0)
        # A limit below the interval keeps it as it is.
        limits = paces.PollLimits(interval=3.0, interval_max=1.0)
        assert limits.after(3600) == 3.0
