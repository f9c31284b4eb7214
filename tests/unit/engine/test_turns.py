# SPDX-License-Identifier: Apache-2.0
"""One does something after another, and nobody holds up the rest."""

import contextlib
import threading

import testtools

from heat_plugins.engine import process


class LeaseTest(testtools.TestCase):
    """In one thread: time passes only where somebody waits."""

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.turns = process.Turns(0.5, lambda: self.now, self.sleep)

    def sleep(self, woken, seconds):
        self.assertGreater(seconds, 0)
        self.now += seconds

    def test_a_turn_that_nobody_else_wants_is_had_at_once(self):
        for _ in range(3):
            with self.turns.turn():
                pass
        self.assertEqual(1000.0, self.now)

    def test_who_takes_long_holds_up_the_next_for_its_lease(self):
        with self.turns.turn():
            self.now += 0.2
            with self.turns.turn():
                self.assertAlmostEqual(1000.5, self.now)
        self.assertEqual(0, len(self.turns))

    def test_who_took_too_long_does_not_end_the_turn_of_another(self):
        with contextlib.ExitStack() as slow:
            slow.enter_context(self.turns.turn())
            self.now += 1
            with self.turns.turn():
                slow.close()
                begun = self.now
                with self.turns.turn():
                    self.assertAlmostEqual(begun + 0.5, self.now)

    def test_some_may_have_a_turn_at_a_time(self):
        self.turns = process.Turns(0.5, lambda: self.now, self.sleep, places=2)
        with self.turns.turn():
            self.now += 0.2
            with self.turns.turn():
                self.assertAlmostEqual(1000.2, self.now)
                with self.turns.turn():
                    # The first one's lease is over.
                    self.assertAlmostEqual(1000.5, self.now)

    def test_one_that_fails_lets_the_next_one_go(self):
        with (
            testtools.ExpectedException(ZeroDivisionError),
            self.turns.turn(),
        ):
            _ = 1 / 0
        with self.turns.turn():
            self.assertEqual(1000.0, self.now)

    def test_one_that_is_stopped_while_it_waits_leaves_the_queue(self):
        def stop(woken, seconds):
            raise KeyboardInterrupt

        self.turns = process.Turns(0.5, lambda: self.now, stop)
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
    def test_they_go_one_after_another_in_their_order(self):
        found = process.Turns(60)
        order, busy = [], []

        def go(number):
            with found.turn():
                busy.append(number)
                order.append((number, len(busy)))
                busy.remove(number)

        with found.turn():
            threads = []
            for number in range(50):
                thread = threading.Thread(target=go, args=(number,))
                thread.start()
                threads.append(thread)
                while len(found) <= number:
                    pass
        for thread in threads:
            thread.join(30)
        self.assertEqual([(number, 1) for number in range(50)], order)
