# SPDX-License-Identifier: Apache-2.0
"""The table of metrics, and what it costs to count."""

import pathlib
import re

from heat_plugins import metrics
from heat_plugins.runs import run_records

#: What makes a time series for each tenant, stack, server or resource.
UNBOUNDED = {'tenant', 'project', 'stack', 'server', 'resource', 'name', 'id'}


def test_the_table_is_whole_and_its_labels_name_nothing_of_users():
    every = vars(metrics).values()
    named = [each for each in every if isinstance(each, metrics.Metric)]
    assert list(metrics.TABLE) == named
    for metric in named:
        assert metric.label not in UNBOUNDED
        assert len(metric.values) <= 6


def test_each_state_of_a_run_and_each_end_of_a_target_is_counted():
    phases = {phase.value: phase.ended for phase in run_records.Phase}
    ends = {value for value, ended in phases.items() if ended}
    assert set(metrics.RUNS.values) == ends
    assert set(metrics.RUNNING.values) == phases.keys() - ends
    ends = {state.value for state in run_records.State if state.ended}
    ends.remove(run_records.State.SKIPPED.value)
    assert set(metrics.TARGETS.values) == ends


def test_a_number_goes_to_its_metric_and_value(request):
    request.addfinalizer(lambda: metrics.install({}))
    found = []
    series = ((metrics.POLLS, 'ok'), (metrics.WAITING, ''))
    metrics.install(dict.fromkeys(series, found.append))
    metrics.count(metrics.POLLS, 'ok')
    metrics.count(metrics.POLLS, 'a name of a server')
    metrics.observe(metrics.WAITING, 3)
    assert found == [1, 3]


def test_nothing_that_an_engine_imports_needs_prometheus_client():
    needs = r'^(?:from|import) .*(?:prometheus_client|metrics_serving)'
    found = [
        path.name
        for path in pathlib.Path(metrics.__file__).parent.rglob('*.py')
        if re.search(needs, path.read_text(), re.MULTILINE)
    ]
    assert found == ['metrics_serving.py']
