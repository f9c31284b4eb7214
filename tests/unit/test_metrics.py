# SPDX-License-Identifier: Apache-2.0
"""The table of metrics, and what it costs to count."""

import subprocess
import sys

import testtools

from heat_plugins import metrics
from heat_plugins.runs import run_records

#: What makes a time series for each tenant, stack, server or resource.
UNBOUNDED = {'tenant', 'project', 'stack', 'server', 'resource', 'name', 'id'}


class TableTest(testtools.TestCase):
    def test_the_table_is_whole(self):
        named = [
            each
            for each in vars(metrics).values()
            if isinstance(each, metrics.Metric)
        ]
        assert list(metrics.TABLE) == named

    def test_labels_have_few_values_and_name_nothing_of_users(self):
        for metric in metrics.TABLE:
            assert metric.label not in UNBOUNDED
            assert len(metric.values) <= 6

    def test_each_state_of_a_run_is_counted(self):
        ends = {phase.value for phase in run_records.Phase if phase.ended}
        assert set(metrics.RUNS.values) == ends
        others = {phase.value for phase in run_records.Phase} - ends
        assert set(metrics.RUNNING.values) == others

    def test_each_end_of_a_target_is_counted(self):
        ends = {state.value for state in run_records.State if state.ended}
        skipped = {run_records.State.SKIPPED.value}
        assert set(metrics.TARGETS.values) == ends - skipped


class CountTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(metrics.install, {})
        self.counted = []

    def test_without_an_exporter_nothing_is_counted(self):
        metrics.count(metrics.POLLS, 'ok')
        metrics.observe(metrics.WAITING, 3)

    def test_a_number_goes_to_its_metric_and_value(self):
        metrics.install(
            {
                (metrics.POLLS, 'ok'): self.counted.append,
                (metrics.WAITING, ''): self.counted.append,
            }
        )
        metrics.count(metrics.POLLS, 'ok')
        metrics.count(metrics.POLLS, 'failed')
        metrics.count(metrics.POLLS, 'a name of a server')
        metrics.observe(metrics.WAITING, 3)
        assert self.counted == [1, 3]

    def test_the_package_needs_no_prometheus_client(self):
        """Both the core and what starts with an engine."""
        code = (
            'import sys; sys.modules["prometheus_client"] = None\n'
            'from heat_plugins import metrics\n'
            'from heat_plugins.engine import patches\n'
            'metrics.count(metrics.POLLS, "ok")\n'
        )
        done = subprocess.run(
            [sys.executable, '-c', code], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
