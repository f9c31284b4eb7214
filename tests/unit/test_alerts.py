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
DASHBOARD = (ROOT / 'dashboard.json').read_text()

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

SILENT = 'HeatPluginsNoMetrics'


@functools.cache
def shown():
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, '-c', EXPORT, folder]
        text = subprocess.check_output(command, text=True)
    return re.findall(r'^([^#\n].*) ', text, re.M)


def series(name, values, host='a'):
    """Return a series as Prometheus stores it: with the host's labels."""
    stem, _, labels = name.rstrip('}').partition('{')
    added = [labels] if labels else []
    added += [f'instance="{host}"', 'job="heat-engine"']
    return {'series': f'{stem}{{{",".join(added)}}}', 'values': values}


def hour(fault):
    found = [series('up', '1+0x120')]
    for name in shown():
        known = {'': '0+0x120', **QUIET, **fault}.items()
        *_, values = (v for pattern, v in known if re.search(pattern, name))
        found.append(series(name, values))
    return found


def promtool(*words):
    if shutil.which('promtool') is None:
        pytest.skip("there is no promtool; Debian's package prometheus has it")
    done = subprocess.run(['promtool', *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


GROUPS = yaml.safe_load(RULES.read_text())['groups']
RULE = [rule for group in GROUPS for rule in group['rules']]

EXPRESSIONS = [rule['expr'] for rule in RULE] + [
    target['expr']
    for panel in json.loads(DASHBOARD)['panels']
    for target in panel['targets']
]


@pytest.mark.parametrize('expression', EXPRESSIONS)
def test_what_an_expression_names_is_in_the_table(expression):
    suffixes = {metrics.MetricKind.HISTOGRAM: ('_bucket', '_count', '_sum')}
    names = {
        f'{metric.name}{suffix}'
        for metric in metrics.TABLE
        for suffix in suffixes.get(metric.kind, ('',))
    }
    used = set(re.findall(r'heat_plugins_\w+', expression))
    assert used and used <= names
    for label, text in re.findall(r'(\w+)=~?"([^"]+)"', expression):
        labelled = [m.values for m in metrics.TABLE if m.label == label]
        values = set().union(*labelled)
        assert set(text.split('|')) <= (values or OTHERS[label])


def test_each_metric_is_on_the_dashboard_and_each_alert_has_its_fault():
    assert [m.name for m in metrics.TABLE if m.name not in DASHBOARD] == []
    assert {rule['alert'] for rule in RULE} == {*FAULTS, SILENT}


@pytest.mark.parametrize(
    ('alert', 'made'),
    [
        pytest.param(None, lambda: hour({}), id='none'),
        *(
            pytest.param(alert, lambda f=fault: hour(f), id=alert)
            for alert, fault in FAULTS.items()
        ),
        pytest.param(SILENT, list, id='engines that are gone'),
        # Nothing answers there, or another service has the port.
        *(
            pytest.param(
                SILENT,
                lambda up=up: [*hour({}), series('up', f'{up}+0x120', 'b')],
                id=f'a host that shows none, up {up}',
            )
            for up in (0, 1)
        ),
    ],
)
def test_a_fault_fires_its_alert_and_no_other(tmp_path, alert, made):
    """After 35 minutes."""
    wanted = [{'labels': f'{{alertname="{alert}"}}', 'value': 1}]
    expression = {
        'expr': 'count by (alertname) (ALERTS{alertstate="firing"})',
        'eval_time': '35m',
        'exp_samples': wanted if alert else [],
    }
    test = {'interval': '30s', 'input_series': made()}
    test['promql_expr_test'] = [expression]
    content = {'rule_files': [str(RULES)], 'evaluation_interval': '30s'}
    content['tests'] = [test]
    file = tmp_path / 'test.yml'
    file.write_text(yaml.safe_dump(content))
    if alert is None:
        promtool('check', 'rules', str(RULES))
    promtool('test', 'rules', str(file))
