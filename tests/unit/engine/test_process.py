# SPDX-License-Identifier: Apache-2.0
"""The threads of one process of heat-engine."""

from concurrent import futures
import contextlib
import os
import threading
import time
from unittest import mock

from oslo_config import cfg
import testtools

from heat_plugins import errors
from heat_plugins.engine import process
from tests.unit import heat_fixture

SCANS = [
    process.Scan(name=name, wanted=name, begin=lambda: lambda: None)
    for name in ('deployments', 'operations')
]

START = threading.Thread.start


class WatchTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.started = []
        self.patch(
            threading.Thread, 'start', lambda thread: self.started.append(1)
        )
        self.patch(process, '_process', None)

    def watch(self, interval=5):
        cfg.CONF.set_override('rescue_interval', interval, 'heat_plugins')
        process.watch(*SCANS)
        return len(self.started)

    def test_a_process_begins_once(self):
        self.assertEqual(2, self.watch())
        self.assertEqual(2, self.watch())

    def test_a_forked_process_begins_for_itself(self):
        self.watch()
        self.patch(process, '_process', os.getpid() + 1)
        self.assertEqual(4, self.watch())

    def start(self):
        """Start an engine, of which Heat's part does nothing."""
        wrap = process.with_scans(*SCANS, report=self.started.append)
        wrap(lambda engine: self.started.append('Heat'))('engine')

    def test_it_begins_when_an_engine_has_started(self):
        cfg.CONF.set_override('rescue_interval', 5, 'heat_plugins')
        self.start()
        self.assertEqual(['Heat', 1, 1, 'engine'], self.started)

    def test_an_engine_starts_without_it(self):
        self.patch(threading.Thread, 'start', mock.Mock(side_effect=OSError))
        cfg.CONF.set_override('rescue_interval', 5, 'heat_plugins')
        self.start()
        self.assertEqual(['Heat', 'engine'], self.started)

    def test_an_interval_of_nothing_means_never(self):
        self.assertEqual(0, self.watch(interval=0))

    def test_a_scan_waits_for_no_other(self):
        is_slow, has_scanned = threading.Event(), threading.Event()
        begun = []

        def last(scan):
            """Return what scans once, and ends its thread."""

            def look():
                scan()
                raise SystemExit

            return lambda: look

        def start(thread):
            begun.append(thread)
            run = thread.run

            def guarded():
                with contextlib.suppress(SystemExit):
                    run()

            thread.run = guarded
            START(thread)

        def end():
            is_slow.set()
            for thread in begun:
                thread.join(10)

        self.addCleanup(end)
        scans = [
            process.Scan(name='slow', wanted='x', begin=last(is_slow.wait)),
            process.Scan(
                name='quick', wanted='y', begin=last(has_scanned.set)
            ),
        ]
        self.patch(threading.Thread, 'start', start)
        cfg.CONF.set_override('rescue_interval', 0.01, 'heat_plugins')
        process.watch(*scans)
        self.assertTrue(has_scanned.wait(10))

    def test_a_scan_that_fails_is_repeated_with_a_warning(self):
        scan = mock.Mock(side_effect=[OSError('why\nSELECT'), SystemExit])
        self.patch(time, 'sleep', lambda seconds: None)
        with self.assertLogs(process.LOG.name, 'WARNING') as logs:
            self.assertRaises(
                SystemExit,
                process._repeat,
                process.Scan(name='x', wanted='y', begin=lambda: scan),
            )
        self.assertEqual(
            ['Cannot scan for y; retrying: OSError: why'],
            [one.getMessage() for one in logs.records],
        )

    def test_processes_that_start_together_scan_at_different_times(self):
        cfg.CONF.set_override('rescue_interval', 60, 'heat_plugins')
        for spread, most in ((None, 60), (1.0, 1)):
            slept = []
            self.patch(time, 'sleep', slept.append)
            scan = process.Scan(
                name='x',
                wanted='y',
                begin=lambda: mock.Mock(side_effect=SystemExit),
                spread=spread,
            )
            for _ in range(50):
                self.assertRaises(SystemExit, process._repeat, scan)
            self.assertLess(most / 2, max(slept))
            self.assertLess(max(slept), most)


class PlacesTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def test_a_project_leaves_places_for_others(self):
        places = process.Places(3, 2)
        taken = [
            places.take(key, project)
            for key, project in [
                ('a', '1'),
                ('a', '1'),
                ('b', '1'),
                ('c', '1'),
                ('d', '2'),
                ('e', '3'),
            ]
        ]
        self.assertEqual([True, False, True, False, True, False], taken)
        places.leave('a')
        self.assertTrue(places.take('e', '3'))

    def test_a_place_is_left_whatever_happens(self):
        places = process.Places(1, 1)
        places.take('a', '1')
        self.patch(threading.Thread, 'start', mock.Mock(side_effect=OSError))
        self.assertRaises(OSError, places.run, 'a', 'name', print)
        self.assertTrue(places.take('a', '1'))
        self.patch(threading.Thread, 'start', lambda thread: thread.run())
        self.assertRaises(
            ZeroDivisionError, places.run, 'a', 'name', lambda: 1 / 0
        )
        self.assertTrue(places.take('a', '1'))


class BoundedReadsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.asked = []
        self.answers = threading.Event()
        self.ended = threading.Semaphore(0)
        self.addCleanup(self.answers.set)

    def hang(self):
        self.asked.append(1)
        self.answers.wait(30)
        self.ended.release()
        return 'late'

    def unavailable(self, reads, key='stack', **group):
        raised = self.assertRaises(
            errors.Unavailable, reads.read, key, self.hang, **group
        )
        self.assertIn('no answer within', str(raised))

    def let_end(self, reads):
        self.answers.set()
        while reads._reads:
            time.sleep(0.01)

    def test_it_returns_what_is_read(self):
        reads = process.BoundedReads(30)
        self.assertEqual('read', reads.read('stack', lambda: 'read'))

    def test_it_raises_what_the_service_does(self):
        def deny():
            raise errors.Denied('no role')

        reads = process.BoundedReads(30)
        self.assertRaises(errors.Denied, reads.read, 'stack', deny)

    def test_a_caller_waits_once_for_all_that_a_service_does_not_tell(self):
        reads = process.BoundedReads(0.05)
        for _ in range(3):
            self.unavailable(reads)
        self.assertEqual(1, len(self.asked))
        # It does not hold up others.
        self.assertEqual('read', reads.read('other', lambda: 'read'))

    def test_it_waits_once_for_a_group(self):
        reads = process.BoundedReads(0.5)
        self.unavailable(reads, 1, group='stack')
        began = time.monotonic()
        for key in range(8):
            self.unavailable(reads, key, group='stack')
        self.assertLess(time.monotonic() - began, 0.5)
        # The threads of a group are limited, and so are all.
        self.assertEqual(4, len(self.asked))
        reads = process.BoundedReads(0.01, most=(2, 1))
        for key in range(3):
            self.unavailable(reads, key)
        self.assertEqual(6, len(self.asked))

    def test_who_asks_meanwhile_waits_for_the_same_read(self):
        reads = process.BoundedReads(30)
        found, waiting = [], []
        wait = futures.wait

        def let_end_when_two_wait(*args):
            waiting.append(1)
            if len(waiting) == 2:
                self.answers.set()
            return wait(*args)

        self.patch(futures, 'wait', let_end_when_two_wait)
        callers = [
            threading.Thread(
                target=lambda: found.append(reads.read('stack', self.hang))
            )
            for _ in range(2)
        ]
        for each in callers:
            each.start()
        for each in callers:
            each.join()
        self.assertEqual(['late'] * 2, found)
        self.assertEqual(1, len(self.asked))

    def test_what_comes_late_is_for_who_gets_no_answer_in_time(self):
        reads = process.BoundedReads(0.05)
        self.unavailable(reads)
        self.let_end(reads)
        self.answers.clear()
        # Also while the service is asked again.
        for _ in range(2):
            self.assertEqual('late', reads.read('stack', self.hang))
        self.assertEqual(2, len(self.asked))
        self.let_end(reads)
        # What is new goes before.
        self.assertEqual('new', reads.read('stack', lambda: 'new'))
        self.answers.clear()
        self.unavailable(reads)

    def test_it_is_forgotten_after_a_while(self):
        reads = process.BoundedReads(0.05, memory=0.3)
        self.unavailable(reads)
        self.let_end(reads)
        self.answers.clear()
        time.sleep(0.3)
        self.unavailable(reads)

    def test_it_reads_again_once_the_service_has_answered(self):
        reads = process.BoundedReads(0.05)
        self.unavailable(reads)
        self.let_end(reads)
        self.assertEqual('late', reads.read('stack', self.hang))
        self.assertEqual(2, len(self.asked))

    def test_it_reads_again_where_a_service_never_answers(self):
        reads = process.BoundedReads(0.05, memory=0.0)
        self.unavailable(reads)
        self.unavailable(reads)
        self.assertEqual(2, len(self.asked))

    def test_the_end_of_an_old_read_leaves_a_newer_one_overdue(self):
        reads = process.BoundedReads(0.05, memory=0.2)
        old = threading.Event()
        self.addCleanup(old.set)
        self.assertRaises(
            errors.Unavailable, reads.read, 'stack', lambda: old.wait(30)
        )
        time.sleep(0.2)
        self.unavailable(reads)
        old.set()
        while len(reads._reads) > 1:
            time.sleep(0.01)
        self.assertTrue(reads._is_overdue('stack'))
