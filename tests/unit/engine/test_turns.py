# SPDX-License-Identifier: Apache-2.0
"""Threads take turns, and none holds up the rest for longer than its lease."""

import contextlib
import threading

import testtools

from heat_plugins.engine import process


class Changed(threading.Condition):
    """Time passes only where a thread waits."""

    now = 1000.0
    stops = False

    def wait(self, timeout=None):
        assert timeout > 0
        if self.stops:
            raise KeyboardInterrupt
        self.now += timeout


class LeaseTest(testtools.TestCase):
    """In one thread."""

    def setUp(self):
        super().setUp()
        self.time = Changed(threading.RLock())
        self.turns = self.made()

    def made(self, **more):
        return process.Turns(
            0.5, lambda: self.time.now, changed=self.time, **more
        )

    def test_a_free_turn_is_had_at_once_also_after_a_failure(self):
        for _ in range(3):
            with contextlib.suppress(ZeroDivisionError), self.turns.turn():
                _ = 1 / 0
        assert self.time.now == 1000.0

    def test_a_turn_holds_up_the_next_for_its_lease(self):
        with self.turns.turn():
            self.time.now += 0.2
            with self.turns.turn():
                self.assertAlmostEqual(1000.5, self.time.now)
        assert len(self.turns) == 0

    def test_a_turn_that_was_too_long_does_not_end_another(self):
        with contextlib.ExitStack() as slow:
            slow.enter_context(self.turns.turn())
            self.time.now += 1
            with self.turns.turn():
                slow.close()
                begun = self.time.now
                with self.turns.turn():
                    self.assertAlmostEqual(begun + 0.5, self.time.now)

    def test_some_may_have_a_turn_at_a_time(self):
        self.turns = self.made(places=2)
        with self.turns.turn():
            self.time.now += 0.2
            with self.turns.turn():
                self.assertAlmostEqual(1000.2, self.time.now)
                with self.turns.turn():
                    # The first lease is over.
                    self.assertAlmostEqual(1000.5, self.time.now)

    def test_a_thread_that_is_stopped_as_it_waits_leaves_the_queue(self):
        self.time.stops = True
        with self.turns.turn():
            with (
                testtools.ExpectedException(KeyboardInterrupt),
                self.turns.turn(),
            ):
                self.fail('it had no turn')
            assert len(self.turns) == 0
        with self.turns.turn():
            pass


def test_threads_go_one_after_another():
    turns, busy, most = process.Turns(60), [], []

    def go():
        with turns.turn():
            busy.append(1)
            most.append(len(busy))
            busy.pop()

    with turns.turn():
        threads = [threading.Thread(target=go) for _ in range(50)]
        for thread in threads:
            thread.start()
        while len(turns) < 50:
            pass
    for thread in threads:
        thread.join(30)
    assert most == [1] * 50
    assert turns.is_idle
