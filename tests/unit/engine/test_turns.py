# SPDX-License-Identifier: Apache-2.0
"""One does something after another, and nobody holds up the rest."""

import contextlib
import threading

import testtools

from heat_plugins.engine import process


class Changed(threading.Condition):
    """Time passes only where somebody waits."""

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

    def test_a_turn_that_nobody_else_wants_is_had_at_once(self):
        for _ in range(3):
            with self.turns.turn():
                pass
        self.assertEqual(1000.0, self.time.now)

    def test_who_takes_long_holds_up_the_next_for_its_lease(self):
        with self.turns.turn():
            self.time.now += 0.2
            with self.turns.turn():
                self.assertAlmostEqual(1000.5, self.time.now)
        self.assertEqual(0, len(self.turns))

    def test_who_took_too_long_does_not_end_the_turn_of_another(self):
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
                    # The first one's lease is over.
                    self.assertAlmostEqual(1000.5, self.time.now)

    def test_one_that_fails_lets_the_next_one_go(self):
        with (
            testtools.ExpectedException(ZeroDivisionError),
            self.turns.turn(),
        ):
            _ = 1 / 0
        with self.turns.turn():
            self.assertEqual(1000.0, self.time.now)

    def test_one_that_is_stopped_while_it_waits_leaves_the_queue(self):
        self.time.stops = True
        with self.turns.turn():
            with (
                testtools.ExpectedException(KeyboardInterrupt),
                self.turns.turn(),
            ):
                self.fail('it had no turn')
            self.assertEqual(0, len(self.turns))
        with self.turns.turn():
            pass


class ThreadsTest(testtools.TestCase):
    def test_they_go_one_after_another(self):
        found = process.Turns(60)
        busy, most = [], []

        def go():
            with found.turn():
                busy.append(1)
                most.append(len(busy))
                busy.pop()

        with found.turn():
            threads = [threading.Thread(target=go) for _ in range(50)]
            for thread in threads:
                thread.start()
            while len(found) < 50:
                pass
        for thread in threads:
            thread.join(30)
        self.assertEqual([1] * 50, most)
        self.assertTrue(found.is_idle)
