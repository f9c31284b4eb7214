# SPDX-License-Identifier: Apache-2.0
"""The thread that exports the metrics of a process of heat-engine."""

from collections import abc
import time

from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins.engine import hubs
from heat_plugins.engine import process
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import leading
from heat_plugins.runs import run_records

LOG = foreign.logger(__name__)


# The states of runs that wait for no user.
_MOVING = (run_records.Phase.RUNNING.value, run_records.Phase.STOPPING.value)


def measure(clock: abc.Callable[[], float] = time.time) -> None:
    """Set the gauges of this process, and those of all runs in progress.

    The latter stay as they are while the database does not answer.
    """
    waiting, oldest = hubs.waiting()
    metrics.observe(metrics.WAITING, waiting)
    metrics.observe(metrics.OLDEST, oldest)
    metrics.observe(
        metrics.STUCK, sum(leader.failing for leader in leading.leaders)
    )
    try:
        counts = run_rows.RunRows().in_progress()
    except errors.Error as exc:
        LOG.debug('Cannot count runs: %s', exc)
        return
    for state in metrics.RUNNING.values:
        number, _ = counts.get(state, (0, 0))
        metrics.observe(metrics.RUNNING, number, state)
    moving = [
        created for state, (_, created) in counts.items() if state in _MOVING
    ]
    oldest = max(0.0, clock() - min(moving)) if moving else 0.0
    metrics.observe(metrics.OLDEST_RUN, oldest)


def begin() -> abc.Callable[[], object] | None:
    """Begin to count; return the exporter, None if nothing can export."""
    options = cfg.CONF.heat_plugins
    address = str(options.metrics_host), int(options.metrics_port)
    try:
        # An engine without metrics needs no prometheus_client.
        from heat_plugins.engine import metrics_serving

        folder = metrics_serving.folder_of(*address)
        metrics.install(metrics_serving.recorders(folder))
        return metrics_serving.Exporter(folder, address, measure).keep
    except Exception as exc:
        metrics.install({})
        LOG.warning(
            'heat-engine exports no metrics on port %(port)s: %(reason)s. '
            'Remedy: mend that, and restart heat-engine; prometheus_client '
            'comes with "pip install heat-plugins[metrics]"',
            {'port': address[1], 'reason': foreign.brief(exc)},
        )
        return None


#: Starts with each engine, where metrics_port is set.
SCAN = process.Scan(
    name='heat-plugins-metrics',
    wanted='metrics to export',
    begin=begin,
    spread=0.0,
    option='metrics_port',
)
