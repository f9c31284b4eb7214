# SPDX-License-Identifier: Apache-2.0
"""Threads take turns, and none holds up the rest for longer than its lease."""

import contextlib
import threading

import pytest

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


@pytest.fixture
def time():
    return Changed(threading.RLock())


def made(time, places=1):
    return process.Turns(0.5, lambda: time.now, places=places, changed=time)


def test_a_turn_holds_up_the_next_for_its_lease_and_not_after_a_failure(time):
    turns = made(time)
    for _ in range(3):
        with contextlib.suppress(ZeroDivisionError), turns.turn():
            _ = 1 / 0
    assert time.now == 1000.0
    with turns.turn():
        time.now += 0.2
        with turns.turn():
            assert time.now == pytest.approx(1000.5)
    assert len(turns) == 0


def test_a_turn_that_was_too_long_does_not_end_another(time):
    turns = made(time)
    with contextlib.ExitStack() as slow:
        slow.enter_context(turns.turn())
        time.now += 1
        with turns.turn():
            slow.close()
            begun = time.now
            with turns.turn():
                assert time.now == pytest.approx(begun + 0.5)


def test_some_may_have_a_turn_at_a_time(time):
    turns = made(time, places=2)
    with turns.turn():
        time.now += 0.2
        with turns.turn():
            assert time.now == pytest.approx(1000.2)
            with turns.turn():
                # The first lease is over.
                assert time.now == pytest.approx(1000.5)


def test_a_thread_that_is_stopped_as_it_waits_leaves_the_queue(time):
    turns = made(time)
    time.stops = True
    with turns.turn():
        with pytest.raises(KeyboardInterrupt), turns.turn():
            pytest.fail('it had no turn')
        assert len(turns) == 0
    with turns.turn():
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
