# SPDX-License-Identifier: Apache-2.0
"""Metrics of several processes on one host."""

import functools
import logging
import operator
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from unittest import mock
from urllib import request

import fixtures
from oslo_config import cfg
import testtools

from heat_plugins import engine
from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.engine import metrics_scan
from heat_plugins.engine import metrics_serving
from heat_plugins.engine import process
from heat_plugins.engine import rescue
from heat_plugins.engine import traversals
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_scans
from heat_plugins.engine.runs import schedule_keeping
from tests.unit import heat_fixture
from tests.unit.engine import run_world

#: A process that counts what it is told to, and serves.
WORKER = """
import pathlib, sys, time
from heat_plugins import metrics
from heat_plugins.engine import metrics_serving

folder = pathlib.Path(sys.argv[1])
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
    exporter.step()
    time.sleep(0.2)
"""

#: The same where threads are green, and one of them must not wait.
GREEN = f"""
import eventlet; eventlet.monkey_patch()
import threading, time

waiting = 0

def tick():
    global waiting
    while True:
        time.sleep(0.05)
        waiting += 1

threading.Thread(target=tick, daemon=True).start()
{WORKER}
"""

NAMES = {
    'complete': 'heat_plugins_deployment_results_total{result="complete"}',
    'waiting': 'heat_plugins_deployments_waiting',
    'oldest': 'heat_plugins_deployments_oldest_wait_seconds',
    'requests': 'heat_plugins_store_request_seconds_count{status="2xx"}',
}


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
        def is_shown():
            shown = scrape(self.port)
            return {n: shown.get(NAMES[n]) for n in wanted} == wanted

        until(is_shown)

    def test_one_serves_the_sums_of_all_and_when_it_dies_another_one(self):
        first = self.worker(2)
        self.shows(complete=2)
        # An increase from nothing to one would be none.
        shown = scrape(self.port)
        for metric in metrics.TABLE:
            is_histogram = metric.kind is metrics.MetricKind.HISTOGRAM
            name = f'{metric.name}_count' if is_histogram else metric.name
            for value in metric.values:
                label = f'{{{metric.label}="{value}"}}' if value else ''
                assert f'{name}{label}' in shown
        second = self.worker(3)
        # A client that is silent holds up no other.
        with socket.create_connection(('127.0.0.1', self.port)):
            self.shows(complete=5, waiting=5, oldest=30, requests=2)
        first.kill()
        first.wait()
        # The sums stay; the dead one no longer waits.
        self.shows(complete=5, waiting=3, oldest=30, requests=2)
        second.kill()
        second.wait()
        # A new start counts from zero.
        self.worker(4)
        self.shows(complete=4, waiting=4, requests=1)

    def test_it_works_on_green_threads(self):
        """Those of Heat 24 are eventlet's."""
        worker = self.worker(1, GREEN)
        self.shows(complete=1)
        # The others of the process go on while it waits for requests.
        until(lambda: scrape(self.port)[NAMES['waiting']] > 20)
        assert worker.poll() is None

    def test_one_warning_says_that_another_service_has_the_port(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        dead = pathlib.Path(self.folder, 'gauge_livesum_999999999.db')
        dead.touch()
        exporter = metrics_serving.Exporter(
            pathlib.Path(self.folder), ('127.0.0.1', self.port), lambda: None
        )
        with socket.create_server(('127.0.0.1', self.port)):
            for _ in range(3):
                exporter.step()
        (line,) = log.output.splitlines()
        assert f'cannot bind port {self.port}' in line
        assert not dead.exists()
        exporter.step()
        assert isinstance(scrape(self.port), dict)


class FolderTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.home = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.MonkeyPatch('tempfile.tempdir', str(self.home))
        )

    def test_each_port_has_its_own_that_no_other_user_may_read(self):
        paths = {metrics_serving.folder_of('::1', n) for n in (1, 2)}
        assert [p.stat().st_mode & 0o777 for p in paths] == [0o700] * 2
        usage = mock.Mock(free=1000)
        with mock.patch('shutil.disk_usage', return_value=usage):
            self.assertRaises(OSError, metrics_serving.folder_of, '::1', 1)
        path = metrics_serving.folder_of('::1', 1)
        path.chmod(0o770)
        self.assertRaises(OSError, metrics_serving.folder_of, '::1', 1)
        path.chmod(0o700)
        path.symlink_to(path.rename(self.home / 'elsewhere'))
        self.assertRaises(OSError, metrics_serving.folder_of, '::1', 1)


class ScanTest(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(metrics.install, {})

    def test_it_is_off_by_default_and_needs_no_other_scan(self):
        started = []
        self.patch(threading.Thread, 'start', lambda t: started.append(t))
        cfg.CONF.set_override('rescue_interval', 0, 'heat_plugins')
        self.patch(process, '_process', None)
        process.watch(rescue.SCAN, metrics_scan.SCAN)
        assert started == []
        self.patch(process, '_process', None)
        cfg.CONF.set_override('metrics_port', 9, 'heat_plugins')
        process.watch(rescue.SCAN, metrics_scan.SCAN)
        assert [t.name for t in started] == ['heat-plugins-metrics']

    def test_without_prometheus_client_one_warning_names_the_remedy(self):
        self.addCleanup(setattr, engine, 'metrics_serving', metrics_serving)
        del engine.metrics_serving
        cfg.CONF.set_override('metrics_port', 9, 'heat_plugins')
        with (
            mock.patch.dict(sys.modules, {metrics_serving.__name__: None}),
            self.assertLogs(metrics_scan.LOG.name, 'WARNING') as logs,
        ):
            process.repeat(metrics_scan.SCAN)
        (line,) = logs.output
        assert 'pip install heat-plugins[metrics]' in line

    def observed(self):
        observed = {}
        metrics.install(
            {
                (each, value): functools.partial(
                    operator.setitem, observed, (each.name, value)
                )
                for each in metrics.TABLE
                for value in each.values
            }
        )
        metrics_scan.measure()
        return {
            (name.removeprefix('heat_plugins_'), value): number
            for (name, value), number in observed.items()
        }

    def test_an_engine_measures_what_waits(self):
        leader = run_world.World().leader()
        leader.wake('run-1', 'run-2')
        self.patch(type(leader), 'failing', 1)
        leading.install(leader)
        self.addCleanup(leading.install, None)
        found = {'running': (3, int(time.time()) - 60), 'paused': (1, 0)}
        self.patch(run_rows.RunRows, 'in_progress', lambda rows: found)
        observed = self.observed()
        self.assertAlmostEqual(
            60, observed.pop(('runs_oldest_seconds', '')), delta=9
        )
        assert observed == {
            ('deployments_waiting', ''): 0,
            ('deployments_oldest_wait_seconds', ''): 0,
            ('runs_stuck', ''): 1,
            ('runs_in_progress', 'running'): 3,
            ('runs_in_progress', 'paused'): 1,
            ('runs_in_progress', 'waiting-for-approval'): 0,
            ('runs_in_progress', 'stopping'): 0,
        }

    def test_what_the_database_does_not_say_is_left_as_it_is(self):
        def fail(rows):
            raise errors.Unavailable('away')

        self.patch(run_rows.RunRows, 'in_progress', fail)
        names = {name for name, _ in self.observed()}
        assert names == {
            'deployments_waiting',
            'deployments_oldest_wait_seconds',
            'runs_stuck',
        }

    def test_each_scan_that_fails_is_counted(self):
        scans = (
            rescue.SCAN,
            traversals.SCAN,
            schedule_keeping.SCAN,
            run_scans.SCAN,
            run_scans.RETENTION,
            run_scans.NOTICES,
        )
        assert metrics.SCANS_FAILED.values == tuple(
            scan.name for scan in scans
        )
