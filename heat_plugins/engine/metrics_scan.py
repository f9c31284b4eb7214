# SPDX-License-Identifier: Apache-2.0
"""The thread that exports the metrics of a process of heat-engine."""

from collections import abc

from oslo_config import cfg

from heat_plugins import config
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins.engine import hubs
from heat_plugins.engine import process
from heat_plugins.engine.runs import fleet_watching

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)


def measure() -> None:
    """Set the gauges of this process."""
    waiting, oldest = hubs.waiting()
    metrics.observe(metrics.WAITING, waiting)
    metrics.observe(metrics.OLDEST, oldest)
    metrics.observe(metrics.STUCK, fleet_watching.BACKOFF.count)


def begin() -> abc.Callable[[], object] | None:
    """Begin to count; return what exports that, None if nothing can."""
    options = cfg.CONF.heat_plugins
    address = str(options.metrics_host), int(options.metrics_port)
    try:
        # An engine without metrics needs no prometheus_client.
        from heat_plugins.engine import metrics_serving

        folder = metrics_serving.Folder.of(*address)
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
