# SPDX-License-Identifier: Apache-2.0
"""Polls are fast while a signal is likely, and seldom in a quiet wait."""

import itertools

import testtools

from heat_plugins.signals import paces


class PaceTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.pace = paces.PollPace(paces.PollLimits(), lambda: self.now)

    def polls(self, seconds, cost=0.0):
        """Return the seconds after which polls begin, within a time."""
        begun = self.now
        found = []
        while (passed := self.now - begun) < seconds:
            found.append(passed)
            self.now += cost
            self.now += self.pace.interval(cost)
        return found

    def act(self, seconds):
        """Let a server answer in so many seconds."""
        self.pace.deliver()
        begun = self.now
        self.now += seconds
        self.pace.arrive(begun)
        self.now += 600

    def test_a_server_that_is_not_known_may_answer_fast(self):
        self.pace.deliver()
        assert len(self.polls(30)) == 120
        assert len(self.polls(30)) < 25

    def test_there_are_never_more_than_four_a_second(self):
        self.pace = paces.PollPace(
            paces.PollLimits(fast=0.01, interval=0.01, interval_max=0.01),
            lambda: self.now,
        )
        self.pace.deliver()
        for earlier, later in itertools.pairwise(self.polls(200)):
            assert later - earlier >= 0.25

    def test_after_two_quiet_minutes_there_is_one_in_five_seconds(self):
        self.pace.deliver()
        self.polls(120)
        assert self.pace.interval() == 5.0
        self.now += 3600
        assert self.pace.interval() == 5.0

    def test_polls_are_fast_as_long_as_servers_usually_take(self):
        for seconds in (9, 10, 11):
            self.act(seconds)
        self.pace.deliver()
        self.now += 19
        assert self.pace.interval() == 0.25
        self.now += 2
        assert self.pace.interval() == 1.0

    def test_a_delivery_to_slow_servers_is_polled_for_slowly(self):
        for _ in range(3):
            self.act(300)
        self.pace.deliver()
        assert self.pace.interval() == 1.0

    def test_one_slow_server_makes_not_all_of_them_slow(self):
        for seconds in (10, 10, 3000):
            self.act(seconds)
        self.pace.deliver()
        assert self.pace.interval() == 0.25

    def test_what_is_usual_may_change(self):
        for seconds in [300] * 40 + [10] * 20:
            self.act(seconds)
        self.pace.deliver()
        assert self.pace.interval() == 0.25

    def test_others_follow_an_arrival(self):
        self.pace.deliver()
        self.now += 1000
        self.pace.arrive(self.now - 1000)
        assert self.pace.interval() == 0.25
        self.now += 6
        assert self.pace.interval() == 1.0

    def test_who_ends_otherwise_says_nothing_of_servers(self):
        self.now += 1000
        self.pace.arrive()
        self.now += 1000
        self.pace.deliver()
        assert self.pace.interval() == 0.25

    def test_a_store_that_answers_slowly_is_polled_less_often(self):
        self.pace.deliver()
        assert self.pace.interval(cost=0.2) == 0.8
        for _ in range(5):
            interval = self.pace.interval(cost=20)
        assert interval == 1.0

    def test_one_slow_answer_makes_no_poll_late(self):
        self.pace.deliver()
        for cost in (0.02, 0.02, 0.02):
            self.assertAlmostEqual(0.23, self.pace.interval(cost))
        for cost in (5.0, 5.0):
            assert self.pace.interval(cost) == 0.02
        assert self.pace.interval(5.0) == 1.0

    def test_they_begin_four_times_a_second_whatever_they_cost(self):
        self.pace.deliver()
        for earlier, later in itertools.pairwise(self.polls(10, cost=0.04)):
            self.assertAlmostEqual(0.25, later - earlier)

    def test_one_that_fails_is_polled_slowly(self):
        self.pace.deliver()
        assert self.pace.interval(failed=True) == 1.0

    def test_who_asks_for_slow_polls_has_no_fast_ones(self):
        limits = paces.PollLimits(fast=10.0, interval=3.0, interval_max=3.0)
        self.pace = paces.PollPace(limits, lambda: self.now)
        self.pace.deliver()
        assert self.pace.interval() == 3.0

    def test_a_limit_below_the_interval_keeps_it_as_it_is(self):
        limits = paces.PollLimits(interval=3.0, interval_max=1.0)
        assert limits.after(3600) == 3.0
