# SPDX-License-Identifier: Apache-2.0
"""Who waits sleeps until its signal is seen; one of all polls."""

import threading

from heat_plugins.signals import paces
from heat_plugins.signals import watcher
from tests.unit import threads
from tests.unit.signals import test_watcher

ARRIVED = watcher.Observation.ARRIVED


class Case(test_watcher.Case):
    """Time passes only where somebody sleeps."""

    def setUp(self):
        super().setUp()
        self.meanwhile = lambda: None
        self.slept = []
        self.watcher = watcher.Watcher(
            self.source,
            watcher.WatchLimits(
                polls=paces.PollLimits(), direct=60.0, rows=3.0
            ),
            self.clock,
            sleep=self.sleep,
        )

    def sleep(self, woken, seconds):
        assert seconds > 0
        self.slept.append(seconds)
        if not woken.is_set():
            self.clock.now += seconds
        self.meanwhile()

    def arrive_after(self, seconds, *tickets):
        due = self.clock.now + seconds

        def arrive():
            if self.clock.now >= due:
                for each in tickets:
                    self.arrive(each)

        self.meanwhile = arrive


class OneTest(Case):
    def test_a_signal_is_seen_at_the_next_poll(self):
        waiting = self.join()
        self.arrive_after(0.6, waiting)
        begun = self.clock.now
        assert self.watcher.wait([waiting], 1.0) == {waiting: ARRIVED}
        self.assertAlmostEqual(0.75, self.clock.now - begun, delta=0.01)

    def test_it_takes_no_longer_than_it_may(self):
        waiting = self.join()
        begun = self.clock.now
        assert self.watcher.wait([waiting], 1.0) == {}
        assert self.clock.now - begun == 1.0
        # The last of them as the time ends.
        assert self.source.listings == 5
        for _ in range(600):
            self.watcher.wait([waiting], 1.0)
        # 30 s of four a second, then ever fewer.
        assert self.source.listings < 120 + 60 + 30 + 100

    def test_who_joins_meanwhile_is_polled_for_soon(self):
        waiting = self.join(1)
        for _ in range(200):
            self.watcher.wait([waiting], 1.0)
        listings, begun = self.source.listings, self.clock.now
        self.meanwhile = lambda: self.join(2) and self.stop()
        self.watcher.wait([waiting], 10.0)
        assert self.source.listings - listings > 10
        assert self.clock.now - begun < 15

    def stop(self):
        self.meanwhile = lambda: None

    def test_who_is_forgotten_meanwhile_wakes(self):
        waiting = self.join()
        self.meanwhile = lambda: self.watcher.forget('d1')
        assert self.watcher.wait([waiting], 100) == {
            waiting: watcher.Observation.SUPERSEDED
        }
        assert len(self.slept) == 1

    def test_a_poll_that_another_one_makes_is_left_to_it(self):
        waiting, other = self.join(1), self.join(2)
        answers = []

        def wait():
            self.source.before_names = lambda: None
            answers.append(self.watcher.wait([other], 0.2))

        self.source.before_names = wait
        assert self.watcher.wait([waiting], 0.2) == {}
        assert answers == [{}]
        assert self.source.listings == 1


class ManyTest(Case):
    def test_one_may_wait_for_many(self):
        tickets = [self.join(number) for number in range(1000)]
        self.arrive_after(2.1, tickets[5], tickets[7])
        self.row(tickets[9], in_progress=False)
        assert self.watcher.wait(tickets, 1.0) == {
            tickets[9]: watcher.Observation.SETTLED
        }
        self.watcher.leave(tickets[9])
        rest = [each for each in tickets if each is not tickets[9]]
        assert self.watcher.wait(rest, 1.0) == {}
        assert self.watcher.wait(rest, 10.0) == dict.fromkeys(
            [tickets[5], tickets[7]], ARRIVED
        )

    def test_past_the_listing_one_looks_at_a_time(self):
        tickets = [self.join(number) for number in range(1000)]
        self.clock.now += 100
        found = self.watcher.wait(tickets, 0)
        assert [*found.values()] == [watcher.Observation.PEEK]


class ThreadsTest(test_watcher.Case):
    """With real threads, and no clock but theirs."""

    def test_one_polls_for_all_and_each_wakes_for_its_own_signal(self):
        self.watcher = watcher.Watcher(
            self.source, watcher.WatchLimits(direct=1e9, rows=1e9)
        )
        tickets = [self.join(number) for number in range(50)]
        pollers = set()
        self.source.before_names = lambda: pollers.add(
            threading.current_thread()
        )
        listed = threading.Event()

        def wait(waiting):
            while True:
                found = self.watcher.wait([waiting], 60)
                if found:
                    break
            assert found == {waiting: ARRIVED}
            self.watcher.leave(waiting)

        def answer():
            for each in tickets:
                self.arrive(each)
                listed.wait(0.002)

        threads.run(
            answer, *(lambda each=each: wait(each) for each in tickets)
        )
        assert len(self.watcher) == 0
        assert len(pollers) < 25
