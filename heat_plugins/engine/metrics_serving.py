# SPDX-License-Identifier: Apache-2.0
"""Export the metrics of all processes of heat-engine on one host.

It needs prometheus_client, which `metrics_scan` asks for only where an
operator wants metrics.

Each process counts in files of a folder that they share, as the multiprocess
mode of prometheus_client does. The process that binds the port sums them up
for Prometheus; the others try to bind it every few seconds, so that one of
them takes over when that process dies. What dead processes have counted moves
into one file of each type: sums stay, and files stay few.

A process holds a lock of its own file as long as it lives: another process
may get the number of one that has died.
"""

from collections import abc
import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import socket
import stat
import tempfile
import time
from typing import Any, Final

import prometheus_client
from prometheus_client import mmap_dict
from prometheus_client import multiprocess
from prometheus_client import values

from heat_plugins import foreign
from heat_plugins import metrics

LOG = foreign.logger(__name__)

# Seconds between two measurements, and two attempts to bind the port; and for
# which a client may be silent.
_INTERVAL: Final = 10.0
_PATIENCE: Final = 5.0

# Bytes that must be free: a full disk kills a process that writes to a file
# in its memory.
_ROOM: Final = 16 * 1024 * 1024

_ALIVE: Final = '.alive'


class Folder:
    """The files of all processes that share a port.

    :raises OSError: it cannot be used.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.geteuid()
            or status.st_mode & 0o077
        ):
            raise OSError(f'{path} is no folder of this user alone')
        if not self._has_room:
            raise OSError(f'The file system of {path} is full')
        self._lock = self._hold()

    @classmethod
    def of(cls, host: str, port: int) -> 'Folder':
        """Return the folder of those that serve at an address."""
        name = f'heat-plugins-metrics-{os.geteuid()}-{host}-{port}'
        return cls(pathlib.Path(tempfile.gettempdir(), name))

    @property
    def _has_room(self) -> bool:
        return shutil.disk_usage(self.path).free >= _ROOM

    def _hold(self) -> int:
        """Hold the lock of this process; return its file descriptor."""
        path = self.path / f'{os.getpid()}{_ALIVE}'
        new = path.with_suffix('.new')
        lock = os.open(new, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        # With its lock, so that none takes this process for a dead one.
        new.rename(path)
        return lock

    def refresh(self) -> None:
        """Keep what cleans up temporary files from deleting these."""
        for each in self.path.iterdir():
            with contextlib.suppress(FileNotFoundError):
                os.utime(each)

    def bury(self) -> None:
        """Unite the files of processes that have died."""
        # Before it is known who lives: a process is locked before it has any.
        files = [*self.path.glob('*.db')]
        alive = {'dead'}
        for path in self.path.glob(f'*{_ALIVE}'):
            if _is_locked(path):
                alive.add(path.stem)
            else:
                path.unlink()
        for path in files if self._has_room else ():
            kind, _, owner = path.stem.rpartition('_')
            if owner not in alive:
                if not kind.startswith('gauge'):
                    _add(path, self.path / f'{kind}_dead.db')
                path.unlink()


def _is_locked(path: pathlib.Path) -> bool:
    """Say whether the process of a file lives."""
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _add(path: pathlib.Path, total: pathlib.Path) -> None:
    """Add the values of a file to those of another."""
    sums = mmap_dict.MmapedDict(str(total))
    try:
        values = mmap_dict.MmapedDict.read_all_values_from_file(str(path))
        counted = [*values]
    except Exception as exc:
        # A process was killed as it made it.
        LOG.info('%s is unreadable: %s', path, foreign.brief(exc))
        counted = []
    for key, value, _, _ in counted:
        sums.write_value(key, sums.read_value(key)[0] + value, 0.0)
    sums.close()


def recorders(
    folder: Folder,
) -> dict[tuple[metrics.Metric, str], metrics.Recorder]:
    """Make what counts in the files of a folder, for `metrics.install`."""
    # It reads that whenever it opens a file; and when it is imported, which
    # may have been before.
    os.environ['PROMETHEUS_MULTIPROC_DIR'] = str(folder.path)
    if not values.ValueClass._multiprocess:
        values.ValueClass = values.MultiProcessValue()
    return {
        (metric, value): recorder
        for metric in metrics.TABLE
        for value, recorder in _recorders_of(metric)
    }


# The class of each kind, and its method that takes a number.
_CLASSES: Final = {
    metrics.Kind.COUNTER: (prometheus_client.Counter, 'inc'),
    metrics.Kind.GAUGE: (prometheus_client.Gauge, 'set'),
    metrics.Kind.HISTOGRAM: (prometheus_client.Histogram, 'observe'),
}


def _recorders_of(
    metric: metrics.Metric,
) -> abc.Iterator[tuple[str, metrics.Recorder]]:
    labels = (metric.label,) if metric.label else ()
    known: dict[str, Any] = {'registry': None}
    if metric.kind is metrics.Kind.GAUGE:
        known['multiprocess_mode'] = f'live{metric.across}'
    if metric.kind is metrics.Kind.HISTOGRAM:
        known['buckets'] = metrics.BUCKETS
    cls, method = _CLASSES[metric.kind]
    made = cls(metric.name, metric.help, labels, **known)
    for value in metric.values:
        series = made.labels(value) if labels else made
        yield value, getattr(series, method)


class _Answer(prometheus_client.MetricsHandler):
    """Answers one request, in the thread that makes it."""

    timeout = _PATIENCE


class Exporter:
    """Measures for one process, and serves all while it has the port.

    :param measure: sets the gauges.
    """

    def __init__(
        self,
        folder: Folder,
        address: tuple[str, int],
        measure: abc.Callable[[], None],
    ) -> None:
        self._folder = folder
        self._address = address
        self._measure = measure
        self._listener: socket.socket | None = None
        registry = prometheus_client.CollectorRegistry()
        multiprocess.MultiProcessCollector(registry, str(folder.path))
        self._answer = _Answer.factory(registry)

    def keep(self) -> None:
        """Measure and serve until the process ends."""
        while True:
            self.step(_INTERVAL)

    def step(self, seconds: float) -> None:
        """Measure, and serve for some seconds if no other process does."""
        until = time.monotonic() + seconds
        self._measure()
        self._folder.refresh()
        self._listener = self._listener or self._bind()
        if self._listener is None:
            time.sleep(seconds)
            return
        self._folder.bury()
        while (left := until - time.monotonic()) > 0:
            self._listener.settimeout(left)
            self._serve(self._listener)

    def _bind(self) -> socket.socket | None:
        """Bind the port; None if another process has it."""
        host, _ = self._address
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        try:
            listener = socket.create_server(self._address, family=family)
        except OSError as exc:
            if exc.errno != errno.EADDRINUSE:
                raise
            return None
        LOG.info('Serving metrics at %s, port %s', *self._address)
        return listener

    def _serve(self, listener: socket.socket) -> None:
        """Answer one request, in this thread, if one comes in time."""
        try:
            connection, client = listener.accept()
        except TimeoutError:
            return
        try:
            with connection:
                self._answer(connection, client, None)
        except Exception as exc:
            # Its client may have left.
            LOG.info('Cannot send metrics: %s', foreign.brief(exc))
