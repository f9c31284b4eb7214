# SPDX-License-Identifier: Apache-2.0
"""Metrics of several processes on one host."""

import contextlib
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from unittest import mock
from urllib import request

import fixtures
from oslo_config import cfg
from prometheus_client import mmap_dict
import testtools

from heat_plugins import metrics
from heat_plugins.engine import metrics_scan
from heat_plugins.engine import metrics_serving
from heat_plugins.engine import process
from heat_plugins.engine import rescue
from heat_plugins.engine import traversals
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import schedule_keeping
from tests.unit import heat_fixture

#: A process that counts what it is told to, and serves.
WORKER = """
import pathlib, sys
from heat_plugins import metrics
from heat_plugins.engine import metrics_serving

folder = metrics_serving.Folder(pathlib.Path(sys.argv[1]))
metrics.install(metrics_serving.recorders(folder))
waiting = float(sys.argv[3])
metrics.count(metrics.RESULTS, 'complete', waiting)
metrics.observe(metrics.STORE, 0.02, '2xx')
exporter = metrics_serving.Exporter(
    folder,
    ('127.0.0.1', int(sys.argv[2])),
    lambda: [
        metrics.observe(metrics.WAITING, waiting),
        metrics.observe(metrics.OLDEST, 10 * waiting),
    ],
)
print(flush=True)
while True:
    exporter.step(0.2)
"""

#: The same where threads are green, and one of them must not wait.
GREEN = f"""
import eventlet; eventlet.monkey_patch()
import threading, time

def tick():
    global waiting
    while True:
        time.sleep(0.05)
        waiting += 1

threading.Thread(target=tick, daemon=True).start()
{WORKER}
"""

#: The same in a container, where numbers of processes recur.
CONTAINED = f"""
import os
os.getpid = lambda: 9
{WORKER}
"""

COMPLETE = 'heat_plugins_deployment_results_total{result="complete"}'
WAITING = 'heat_plugins_deployments_waiting'
OLDEST = 'heat_plugins_deployments_oldest_wait_seconds'
REQUESTS = 'heat_plugins_store_request_seconds_count{status="2xx"}'


def free_port():
    with socket.create_server(('127.0.0.1', 0)) as server:
        return server.getsockname()[1]


def scrape(port):
    url = f'http://127.0.0.1:{port}/metrics'
    with request.urlopen(url, timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    pairs = [line.rsplit(' ', 1) for line in lines if line[0] != '#']
    return {name: float(value) for name, value in pairs}


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError('not in time')


class SeveralProcessesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path
        os.chmod(self.folder, 0o700)
        self.port = free_port()

    def worker(self, number, code=WORKER):
        words = [sys.executable, '-c', code, self.folder, str(self.port)]
        worker = subprocess.Popen(
            [*words, str(number)], stdout=subprocess.PIPE
        )
        self.addCleanup(worker.stdout.close)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        worker.stdout.readline()
        return worker

    def shows(self, **wanted):
        names = {
            'complete': COMPLETE,
            'waiting': WAITING,
            'oldest': OLDEST,
            'requests': REQUESTS,
        }

        def is_shown():
            shown = scrape(self.port)
            return {n: shown.get(names[n]) for n in wanted} == wanted

        until(is_shown)

    def test_one_serves_the_sums_of_all(self):
        self.worker(2)
        self.worker(3)
        self.shows(complete=5, waiting=5, oldest=30, requests=2)

    def test_when_it_dies_another_one_serves_and_sums_stay(self):
        first = self.worker(2)
        self.shows(complete=2)
        self.worker(3)
        self.shows(complete=5, waiting=5)
        first.send_signal(signal.SIGKILL)
        first.wait()
        # What the dead one has waited for, it no longer does.
        self.shows(complete=5, waiting=3, oldest=30, requests=2)

    def test_files_of_the_dead_become_one_of_each_type(self):
        last = self.worker(1)
        for _ in range(5):
            dead = self.worker(1)
            dead.kill()
            dead.wait()
        self.shows(complete=6, waiting=1)
        until(lambda: len(os.listdir(self.folder)) == 8)
        (alive,) = pathlib.Path(self.folder).glob(f'{last.pid}-*.alive')
        self.assertEqual(
            {
                'serving',
                'counter_dead.db',
                'histogram_dead.db',
                f'counter_{alive.stem}.db',
                f'histogram_{alive.stem}.db',
                f'gauge_livemax_{alive.stem}.db',
                f'gauge_livesum_{alive.stem}.db',
                alive.name,
            },
            set(os.listdir(self.folder)),
        )

    def test_processes_of_one_number_count_apart(self):
        self.worker(2, CONTAINED)
        self.worker(3, CONTAINED)
        self.shows(complete=5, waiting=5, requests=2)

    def test_an_unreadable_file_of_the_dead_is_dropped(self):
        for name in ('counter_1.db', 'histogram_2.db'):
            pathlib.Path(self.folder, name).write_bytes(b'\xff\x7f\0\0')
        self.worker(1)
        self.shows(complete=1)

    def test_it_works_on_green_threads(self):
        """Those of Heat 24 are eventlet's."""
        worker = self.worker(1, GREEN)
        self.shows(complete=1)
        # The others of the process go on while it waits for requests.
        until(lambda: scrape(self.port)[WAITING] > 20)
        self.assertIsNone(worker.poll())

    def test_each_metric_is_shown_before_it_is_counted(self):
        """An increase from nothing to one would be none."""
        self.worker(0)
        shown = until(lambda: scrape(self.port))
        for metric in metrics.TABLE:
            is_histogram = metric.kind is metrics.Kind.HISTOGRAM
            name = f'{metric.name}_count' if is_histogram else metric.name
            for value in metric.values:
                label = f'{{{metric.label}="{value}"}}' if value else ''
                self.assertIn(f'{name}{label}', shown)

    def test_a_silent_client_holds_up_others_for_seconds_only(self):
        self.worker(1)
        self.shows(complete=1)
        with socket.create_connection(('127.0.0.1', self.port)):
            begun = time.monotonic()
            self.shows(complete=1)
        self.assertLess(time.monotonic() - begun, 15)

    def exporter(self):
        """Return one of this process, which has bound the port if it can."""
        folder = metrics_serving.Folder(pathlib.Path(self.folder))
        exporter = metrics_serving.Exporter(
            folder, ('127.0.0.1', self.port), lambda: None
        )
        exporter.step(0)
        return exporter

    def test_a_slow_client_holds_up_others_for_seconds_only(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'heat_plugins.engine.metrics_serving._PATIENCE', 0.3
            )
        )
        exporter, left = self.exporter(), threading.Event()
        end = time.monotonic() + 10

        def drip():
            slow = socket.create_connection(('127.0.0.1', self.port))
            # The server may close it.
            with slow, contextlib.suppress(OSError):
                while time.monotonic() < end and not left.wait(0.05):
                    slow.sendall(b'x')

        client = threading.Thread(target=drip)
        client.start()
        self.addCleanup(client.join)
        self.addCleanup(left.set)
        exporter.step(0.2)
        self.assertLess(time.monotonic(), end)

    def test_one_warning_says_that_another_service_has_the_port(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        dead = pathlib.Path(self.folder, 'gauge_livesum_1.db')
        dead.touch()
        with socket.create_server(('127.0.0.1', self.port)):
            exporter = self.exporter()
            for _ in range(3):
                exporter.step(0)
        (line,) = log.output.splitlines()
        self.assertIn(f'cannot bind port {self.port}', line)
        self.assertFalse(dead.exists())
        exporter.step(0)
        socket.create_connection(('127.0.0.1', self.port)).close()

    def test_no_request_starts_a_thread(self):
        exporter = self.exporter()
        threads, shown = [], []
        client = threading.Thread(
            target=lambda: shown.append(scrape(self.port))
        )
        client.start()
        with mock.patch.object(threading.Thread, 'start', threads.append):
            while client.is_alive():
                exporter.step(0.1)
        self.assertEqual(([], 1), (threads, len(shown)))


class FolderTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.home = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.MonkeyPatch('tempfile.tempdir', str(self.home))
        )

    def test_no_other_user_may_read_it(self):
        folder = metrics_serving.Folder.of('127.0.0.1', 9)
        self.assertEqual(0o700, folder.path.stat().st_mode & 0o777)

    def test_each_port_has_its_own(self):
        paths = {metrics_serving.Folder.of('::1', n).path for n in (1, 2)}
        self.assertEqual(2, len(paths))

    def test_one_that_others_may_write_into_is_refused(self):
        path = metrics_serving.Folder.of('127.0.0.1', 9).path
        path.chmod(0o770)
        self.assertRaises(OSError, metrics_serving.Folder.of, '127.0.0.1', 9)

    def test_a_link_to_elsewhere_is_refused(self):
        path = metrics_serving.Folder.of('127.0.0.1', 9).path
        there = path.rename(self.home / 'elsewhere')
        path.symlink_to(there)
        self.assertRaises(OSError, metrics_serving.Folder.of, '127.0.0.1', 9)

    def test_a_full_disk_is_refused(self):
        usage = mock.Mock(free=1000)
        with mock.patch('shutil.disk_usage', return_value=usage):
            self.assertRaises(
                OSError, metrics_serving.Folder.of, '127.0.0.1', 9
            )

    def test_files_in_use_stay_young(self):
        folder = metrics_serving.Folder.of('127.0.0.1', 9)
        (held,) = folder.path.iterdir()
        os.utime(held, (0, 0))
        folder.refresh()
        self.assertGreater(held.stat().st_mtime, time.time() - 60)

    def test_who_dies_as_it_sums_counts_nothing_twice(self):
        folder = metrics_serving.Folder.of('127.0.0.1', 9)
        dead, total = (
            folder.path / f'counter_{name}.db' for name in ('1', 'dead')
        )
        for number, path in enumerate((dead, total), start=1):
            counted = mmap_dict.MmapedDict(str(path))
            counted.write_value('key', number, 0.0)
            counted.close()
        with mock.patch.object(pathlib.Path, 'unlink', side_effect=OSError):
            self.assertRaises(OSError, folder.bury)
        folder.bury()
        read = mmap_dict.MmapedDict.read_all_values_from_file
        self.assertEqual([3.0], [value for _, value, _, _ in read(total)])
        self.assertFalse(dead.exists())


class ScanTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.addCleanup(metrics.install, {})

    def test_it_is_off_by_default(self):
        started = []
        self.patch(threading.Thread, 'start', lambda t: started.append(t))
        self.patch(process, '_process', None)
        process.watch(metrics_scan.SCAN)
        self.assertEqual([], started)

    def test_it_needs_no_other_scan(self):
        started = []
        self.patch(threading.Thread, 'start', lambda t: started.append(t))
        self.patch(process, '_process', None)
        cfg.CONF.set_override('metrics_port', 9, 'heat_plugins')
        cfg.CONF.set_override('rescue_interval', 0, 'heat_plugins')
        process.watch(rescue.SCAN, metrics_scan.SCAN)
        self.assertEqual(['heat-plugins-metrics'], [t.name for t in started])

    def test_without_prometheus_client_one_warning_names_the_remedy(self):
        code = (
            'import sys; sys.modules["prometheus_client"] = None\n'
            'import logging; logging.basicConfig()\n'
            'from oslo_config import cfg\n'
            'from heat_plugins.engine import metrics_scan, process\n'
            'cfg.CONF.set_override("metrics_port", 9, "heat_plugins")\n'
            'process._repeat(metrics_scan.SCAN)\n'
        )
        done = subprocess.run(
            [sys.executable, '-c', code],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        lines = [x for x in done.stderr.splitlines() if 'WARNING' in x]
        self.assertEqual(1, len(lines), done.stderr)
        self.assertIn('pip install heat-plugins[metrics]', lines[0])

    def test_an_engine_that_cannot_count_leaves_no_file_behind(self):
        home = self.useFixture(fixtures.TempDir()).path
        self.patch(tempfile, 'tempdir', home)
        cfg.CONF.set_override('metrics_port', 9, 'heat_plugins')

        def recorders(folder):
            raise OSError

        self.patch(metrics_serving, 'recorders', recorders)
        self.assertIsNone(metrics_scan.begin())
        folder = metrics_serving.Folder.of('127.0.0.1', 9)
        folder.bury()
        self.assertEqual(
            [f'{folder.owner}.alive'], os.listdir(str(folder.path))
        )

    def test_an_engine_measures_what_waits(self):
        # Another test may have left operations that have failed.
        backoff = fleet_watching.Backoff()
        self.patch(fleet_watching, 'BACKOFF', backoff)
        observed = {}
        metrics.install(
            {
                (each, ''): lambda number, each=each: observed.update(
                    {each.name: number}
                )
                for each in metrics.TABLE
            }
        )
        metrics_scan.measure()
        self.assertEqual(
            {
                metrics.WAITING.name: 0,
                metrics.OLDEST.name: 0,
                metrics.STUCK.name: 0,
            },
            observed,
        )

    def test_each_scan_that_fails_is_counted(self):
        scans = (
            rescue.SCAN,
            traversals.SCAN,
            fleet_watching.SCAN,
            schedule_keeping.SCAN,
        )
        self.assertEqual(
            tuple(scan.name for scan in scans), metrics.SCANS_FAILED.values
        )
