# SPDX-License-Identifier: Apache-2.0
"""Export the metrics of all processes of heat-engine on one host.

It needs prometheus_client, which `metrics_scan` asks for only where an
operator wants metrics.

Each process counts in files of a folder that they share: the multiprocess
mode of prometheus_client. The process that holds a lock on the folder serves
the sums; the others try to get the lock every few seconds, so that one of them
takes over when that process dies.
"""

from collections import abc
import fcntl
import os
import pathlib
import shutil
import stat
import tempfile
import time
from typing import Any, Final

import prometheus_client
from prometheus_client import multiprocess
from prometheus_client import values

from heat_plugins import foreign
from heat_plugins import metrics

LOG = foreign.logger(__name__)

# Seconds between two measurements, and two attempts to bind the port.
_INTERVAL: Final = 10.0

# Bytes that must be free: a full disk kills a process that writes to a file
# in its memory.
_ROOM: Final = 16 * 1024 * 1024


def folder_of(host: str, port: int) -> pathlib.Path:
    """Return the folder of all processes that share an address; make it.

    :raises OSError: it cannot be used.
    """
    name = f'heat-plugins-metrics-{os.geteuid()}-{host}-{port}'
    path = pathlib.Path(tempfile.gettempdir(), name)
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid != os.geteuid()
        or status.st_mode & 0o077
    ):
        raise OSError(f'{path} is no folder of this user alone')
    if shutil.disk_usage(path).free < _ROOM:
        raise OSError(f'The file system of {path} is full')
    return path


def recorders(
    folder: pathlib.Path,
) -> dict[tuple[metrics.Metric, str], metrics.Recorder]:
    """Make recorders that count in files of a folder; see `metrics.install`.

    Counting starts at 0 where no process of an earlier start is alive.
    """
    os.environ['PROMETHEUS_MULTIPROC_DIR'] = str(folder)
    # The variable alone counts only before the first import.
    values.ValueClass = values.MultiProcessValue()
    with (folder / 'starting').open('a') as lock:
        # No other process makes its files meanwhile.
        fcntl.flock(lock, fcntl.LOCK_EX)
        files = [*folder.glob('*.db')]
        if not any(map(_is_alive, files)):
            for file in files:
                file.unlink()
        return {
            (metric, value): recorder
            for metric in metrics.TABLE
            for value, recorder in _recorders_of(metric)
        }


# The class of each kind, and its method that takes a number.
_CLASSES: Final = {
    metrics.MetricKind.COUNTER: (prometheus_client.Counter, 'inc'),
    metrics.MetricKind.GAUGE: (prometheus_client.Gauge, 'set'),
    metrics.MetricKind.HISTOGRAM: (prometheus_client.Histogram, 'observe'),
}


def _recorders_of(
    metric: metrics.Metric,
) -> abc.Iterator[tuple[str, metrics.Recorder]]:
    """Yield what counts each label's value of a metric, for Prometheus."""
    labels = (metric.label,) if metric.label else ()
    known: dict[str, Any] = {'registry': None}
    if metric.kind is metrics.MetricKind.GAUGE:
        known['multiprocess_mode'] = f'live{metric.across}'
    if metric.kind is metrics.MetricKind.HISTOGRAM:
        known['buckets'] = metrics.BUCKETS
    cls, method = _CLASSES[metric.kind]
    made = cls(metric.name, metric.help, labels, **known)
    for value in metric.values:
        series = made.labels(value) if labels else made
        yield value, getattr(series, method)


def _owner(file: pathlib.Path) -> str:
    """Return the number of a file's process: counter_9.db has "9"."""
    return file.stem.rpartition('_')[2]


def _is_alive(file: pathlib.Path) -> bool:
    """Say whether the process of a file is alive."""
    try:
        os.kill(int(_owner(file)), 0)
    except (OSError, ValueError):
        # There is none, it is of another user, or the file of an earlier
        # release.
        return False
    return True


class Exporter:
    """Measures for one process, and serves all if it leads.

    :param measure: sets the gauges.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        address: tuple[str, int],
        measure: abc.Callable[[], None],
    ) -> None:
        self._folder = folder
        # What cleans up temporary files leaves a folder with a lock alone.
        self._lock = os.open(folder, os.O_RDONLY)
        self._address = address
        self._measure = measure
        self._serves = False
        self._failures = 0

    def keep(self) -> None:
        """Measure and serve until the process ends."""
        while True:
            self.step()
            time.sleep(_INTERVAL)

    def step(self) -> None:
        """Measure, and serve from now on if no other process does."""
        self._measure()
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # Another process serves all.
            return
        for gauge in self._folder.glob('gauge_live*.db'):
            if not _is_alive(gauge):
                multiprocess.mark_process_dead(
                    _owner(gauge), str(self._folder)
                )
        if self._serves:
            return
        host, port = self._address
        registry = prometheus_client.CollectorRegistry()
        multiprocess.MultiProcessCollector(registry, str(self._folder))
        try:
            prometheus_client.start_http_server(port, host, registry)
        except OSError as exc:
            self._failures += 1
            # Once, and not for the port of a process that is just dying.
            if self._failures == 2:
                LOG.warning(
                    'heat-engine cannot bind port %(port)s of %(host)s for '
                    'metrics; retrying: %(error)s. Remedy: set metrics_port '
                    'to a free port and restart heat-engine',
                    {'port': port, 'host': host, 'error': foreign.brief(exc)},
                )
            return
        LOG.info('Serving metrics at %s, port %s', host, port)
        self._serves = True
