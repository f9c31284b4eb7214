# SPDX-License-Identifier: Apache-2.0
"""The threads of one process of heat-engine."""

import contextlib
import dataclasses
import os
import threading
import time
from unittest import mock

from oslo_config import cfg
import pytest

from heat_plugins.engine import process
from tests.unit import heat_fixture

SCANS = [
    process.Scan(name=name, wanted=name, begin=lambda: lambda: None)
    for name in ('deployments', 'schedules')
]


class WatchTest(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.started = []
        self.patch(
            threading.Thread, 'start', lambda thread: self.started.append(1)
        )
        self.patch(process, '_process', None)

    def test_a_process_begins_once_and_a_forked_one_for_itself(self):
        cfg.CONF.set_override('rescue_interval', 5, 'heat_plugins')
        for forked, expected in ((False, 2), (False, 2), (True, 4)):
            if forked:
                self.patch(process, '_process', os.getpid() + 1)
            process.watch(*SCANS)
            assert len(self.started) == expected

    def start(self):
        wrap = process.with_scans(
            *SCANS,
            before=lambda: self.started.append('before'),
            after=lambda engine: self.started.append(f'after {engine}'),
        )
        wrap(self.started.append)('Heat')

    def test_it_begins_when_an_engine_has_started(self):
        cfg.CONF.set_override('rescue_interval', 5, 'heat_plugins')
        self.start()
        assert self.started == ['before', 'Heat', 1, 1, 'after Heat']
        # Which starts without it, too.
        self.patch(threading.Thread, 'start', mock.Mock(side_effect=OSError))
        self.patch(process, '_process', None)
        del self.started[:]
        self.start()
        assert self.started == ['before', 'Heat', 'after Heat']

    def test_without_an_interval_only_scans_without_an_option_start(self):
        cfg.CONF.set_override('rescue_interval', 0, 'heat_plugins')
        process.watch(*SCANS, dataclasses.replace(SCANS[0], option=None))
        assert self.started == [1]

    def test_a_scan_that_fails_is_repeated_with_a_warning(self):
        fail = mock.Mock(side_effect=[OSError('why\nSELECT'), SystemExit])
        self.patch(time, 'sleep', lambda seconds: None)
        scan = dataclasses.replace(SCANS[0], begin=lambda: fail)
        with self.assertLogs(process.LOG.name, 'WARNING') as logs:
            self.assertRaises(SystemExit, process.repeat, scan)
        (line,) = logs.output
        assert line.endswith('for deployments; retrying: OSError: why')

    def test_processes_that_start_together_scan_at_different_times(self):
        cfg.CONF.set_override('rescue_interval', 60, 'heat_plugins')
        stop = mock.Mock(side_effect=SystemExit)
        for spread, most in ((None, 60), (1.0, 1)):
            slept, more = [], {'begin': lambda: stop, 'spread': spread}
            self.patch(time, 'sleep', slept.append)
            scan = dataclasses.replace(SCANS[0], **more)
            for _ in range(50):
                self.assertRaises(SystemExit, process.repeat, scan)
            assert most / 2 < max(slept) < most


class PlacesTest(heat_fixture.HeatTestCase):
    def test_a_project_leaves_places_for_others(self):
        places = process.Places(3, 2)
        # A key, and its project.
        wanted = ('a1', 'a1', 'b1', 'c1', 'd2', 'e3')
        taken = [places.take(*each) for each in wanted]
        assert taken == [True, False, True, False, True, False]
        places.leave('a')
        assert places.take('e', '3')

    def test_a_place_is_left_whatever_happens(self):
        places = process.Places(1, 1)
        places.take('a', '1')
        self.patch(threading.Thread, 'start', mock.Mock(side_effect=OSError))
        self.assertRaises(OSError, places.run, 'a', 'name', print)
        assert places.take('a', '1')
        self.patch(threading.Thread, 'start', lambda thread: thread.run())
        call = places.run, 'a', 'name', lambda: 1 / 0
        self.assertRaises(ZeroDivisionError, *call)
        assert places.take('a', '1')


# Threads take turns; none holds up the rest for longer than its lease.


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
def clock():
    return Changed(threading.RLock())


def made(clock, places=1):
    return process.Turns(0.5, lambda: clock.now, places=places, changed=clock)


def test_a_turn_holds_up_the_next_for_its_lease_and_not_after_a_failure(clock):
    turns = made(clock)
    for _ in range(3):
        with contextlib.suppress(ZeroDivisionError), turns.turn():
            _ = 1 / 0
    assert clock.now == 1000.0
    with turns.turn():
        clock.now += 0.2
        with turns.turn():
            assert clock.now == pytest.approx(1000.5)
    assert not turns.present


def test_a_turn_that_was_too_long_does_not_end_another(clock):
    turns = made(clock)
    with contextlib.ExitStack() as slow:
        slow.enter_context(turns.turn())
        clock.now += 1
        with turns.turn():
            slow.close()
            begun = clock.now
            with turns.turn():
                assert clock.now == pytest.approx(begun + 0.5)


def test_some_may_have_a_turn_at_a_time(clock):
    turns = made(clock, places=2)
    with turns.turn():
        clock.now += 0.2
        with turns.turn():
            assert clock.now == pytest.approx(1000.2)
            with turns.turn():
                # The first lease is over.
                assert clock.now == pytest.approx(1000.5)


def test_a_thread_that_is_stopped_as_it_waits_leaves_the_queue(clock):
    turns = made(clock)
    clock.stops = True
    with turns.turn():
        with pytest.raises(KeyboardInterrupt), turns.turn():
            pytest.fail('it had no turn')
        assert len(turns.present) == 1
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
        while len(turns.present) <= 50:
            pass
    for thread in threads:
        thread.join(30)
    assert most == [1] * 50
    assert not turns.present
