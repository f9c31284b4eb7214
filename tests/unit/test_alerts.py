# SPDX-License-Identifier: Apache-2.0
"""The alert rules and the dashboard of contrib/metrics."""

import functools
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import yaml

from heat_plugins import metrics

ROOT = pathlib.Path(__file__).parents[2] / 'contrib/metrics'
RULES = ROOT / 'alerts.yml'

#: Values of labels that are Prometheus's own.
OTHERS = {'le': {'3.0'}, 'job': {'heat-engine'}}

#: What a process of heat-engine shows before anything has happened.
EXPORT = """
import pathlib, sys
import prometheus_client
from prometheus_client import multiprocess
from heat_plugins import metrics
from heat_plugins.engine import metrics_serving

folder = pathlib.Path(sys.argv[1])
metrics.install(metrics_serving.recorders(folder))
registry = prometheus_client.CollectorRegistry()
multiprocess.MultiProcessCollector(registry, sys.argv[1])
print(prometheus_client.generate_latest(registry).decode())
"""

#: What goes on in half a minute of a cloud without faults, by a pattern of
#: series; of the gauges, what they show.
QUIET = {
    r'deployments_waiting': '5+0x120',
    r'oldest_wait_seconds': '600+0x120',
    r'results_total{result="(complete|failed)"': '0+1x120',
    r'polls_total{result="ok"': '0+20x120',
    r'request_seconds_bucket{le="(3\.0|10\.0|30\.0|60\.0|\+Inf)",'
    r'status="[24]xx"': '0+9x120',
    r'request_seconds_count{status="[24]xx"': '0+9x120',
    r'(runs|targets)_total{outcome="(complete|failed)"': '0+1x120',
    r'runs_in_progress{state="(running|paused)"': '7+0x120',
    r'ticks_total{outcome="(started|late|skipped)"': '0+1x120',
    # An engine that an operator restarts.
    r'rescued_total{kind="resource"': '0 3 3+0x118',
}

#: What else goes on during a fault, and the alert that fires alone.
FAULTS = {
    'HeatPluginsDeploymentWaitsLong': {'oldest_wait': '3000+30x120'},
    'HeatPluginsServersDoNotAnswer': {'result="unanswered"': '0+1x120'},
    # Three polls in a row get a 503, once.
    'HeatPluginsStoreFails': {
        'le="3.0",status="5xx"|count{status="5xx"': '0+0x65 8+0x55'
    },
    'HeatPluginsStoreDenies': {
        'le="3.0",status="denied"|count{status="denied"': '0+0x65 8+0x55'
    },
    'HeatPluginsStoreSlow': {'count{status="2xx"': '0+10x120'},
    'HeatPluginsTicksMissed': {'outcome="missed"': '0+0x60 1+0x60'},
    'HeatPluginsRescues': {'kind="resource"': '0+1x120'},
    'HeatPluginsRunsStuck': {'runs_stuck': '1+0x120'},
    # The database is away for a minute.
    'HeatPluginsScansFail': {'failed_total{scan': '0+0x60 2+0x60'},
    'HeatPluginsNotificationsFail': {'notifications': '0+0x60 1+0x60'},
}


@functools.cache
def shown():
    """Return all series that an engine shows."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, '-c', EXPORT, folder],
            capture_output=True,
            text=True,
            check=True,
        )
    lines = done.stdout.splitlines()
    return [x.rsplit(' ', 1)[0] for x in lines if x and x[0] != '#']


def series(fault):
    """Return what Prometheus has read in an hour."""
    known = {**QUIET, **fault}
    return [
        {'series': labelled('up'), 'values': '1+0x120'},
        *of_engine(known),
    ]


def of_engine(known):
    return [
        {
            'series': labelled(name),
            'values': next(
                (
                    known[pattern]
                    for pattern in reversed(known)
                    if re.search(pattern, name)
                ),
                '0+0x120',
            ),
        }
        for name in shown()
    ]


def labelled(name):
    """Return the name of a series with the labels that Prometheus adds."""
    stem, _, labels = name.rstrip('}').partition('{')
    added = 'instance="a",job="heat-engine"'
    return f'{stem}{{{labels},{added}}}' if labels else f'{stem}{{{added}}}'


def fires(tmp_path, alert, input_series):
    """Hold that one alert fires after 35 minutes, or (None) that none does."""
    wanted = [{'labels': f'{{alertname="{alert}"}}', 'value': 1}]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    file = tmp_path / 'test.yml'
    file.write_text(
        yaml.safe_dump(
            {
                'rule_files': [str(RULES)],
                'evaluation_interval': '30s',
                'tests': [
                    {
                        'interval': '30s',
                        'input_series': input_series,
                        'promql_expr_test': [
                            {
                                'expr': expression,
                                'eval_time': '35m',
                                'exp_samples': wanted if alert else [],
                            }
                        ],
                    }
                ],
            }
        )
    )
    promtool('test', 'rules', str(file))


def promtool(*words):
    if shutil.which('promtool') is None:
        pytest.skip("there is no promtool; Debian's package prometheus has it")
    done = subprocess.run(['promtool', *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def rules():
    (group,) = yaml.safe_load(RULES.read_text())['groups']
    return group['rules']


def expressions():
    """Return each expression of the rules and of the dashboard."""
    yield from (rule['expr'] for rule in rules())
    dashboard = json.loads((ROOT / 'dashboard.json').read_text())
    for panel in dashboard['panels']:
        yield from (target['expr'] for target in panel['targets'])


def test_prometheus_reads_the_rules():
    promtool('check', 'rules', str(RULES))


def test_each_metric_of_an_expression_is_in_the_table():
    names = {
        f'{metric.name}{suffix}'
        for metric in metrics.TABLE
        for suffix in (
            ('_bucket', '_count', '_sum')
            if metric.kind is metrics.MetricKind.HISTOGRAM
            else ('',)
        )
    }
    for expression in expressions():
        used = set(re.findall(r'heat_plugins_\w+', expression))
        assert used and used <= names, expression


def test_each_value_of_a_label_in_an_expression_is_in_the_table():
    for expression in expressions():
        matched = re.findall(r'(\w+)=~?"([^"]+)"', expression)
        for label, text in matched:
            values = {
                value
                for metric in metrics.TABLE
                if metric.label == label
                for value in metric.values
            } or OTHERS[label]
            assert set(text.split('|')) <= values, expression


def test_the_dashboard_shows_each_metric():
    dashboard = (ROOT / 'dashboard.json').read_text()
    for metric in metrics.TABLE:
        assert metric.name in dashboard


def test_each_alert_has_its_fault():
    named = {rule['alert'] for rule in rules()}
    assert named == {*FAULTS, 'HeatPluginsNoMetrics'}


def test_a_quiet_hour_fires_none(tmp_path):
    fires(tmp_path, None, series({}))


@pytest.mark.parametrize('alert', FAULTS)
def test_a_fault_fires_its_alert_and_no_other(tmp_path, alert):
    fires(tmp_path, alert, series(FAULTS[alert]))


def test_engines_that_are_gone_fire_one(tmp_path):
    fires(tmp_path, 'HeatPluginsNoMetrics', [])


@pytest.mark.parametrize('is_up', ['0', '1'])
def test_a_host_that_shows_none_fires_one(tmp_path, is_up):
    """Nothing answers there, or another service has the port."""
    shown = {
        'series': 'up{instance="b",job="heat-engine"}',
        'values': f'{is_up}+0x120',
    }
    fires(tmp_path, 'HeatPluginsNoMetrics', [*series({}), shown])
