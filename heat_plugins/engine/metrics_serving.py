# SPDX-License-Identifier: Apache-2.0
"""Export the metrics of all processes of heat-engine on one host.

It needs prometheus_client, which `metrics_scan` asks for only where an
operator wants metrics.

Each process counts in files of a folder that they share, as the multiprocess
mode of prometheus_client does. One of them holds a lock, binds the port and
sums up the files for Prometheus; the others try to get the lock every few
seconds, so that one of them takes over when that process dies. What dead
processes have counted moves into one file of each type: sums stay, and files
stay few.

A process holds a lock of its own file as long as it lives, under a name that
no other process gets: numbers of processes recur, in containers always.
"""

from collections import abc
import contextlib
import fcntl
import io
import os
import pathlib
import secrets
import shutil
import socket
import stat
import tempfile
import time
from typing import Any, Final, TextIO

import prometheus_client
from prometheus_client import mmap_dict
from prometheus_client import multiprocess
from prometheus_client import values

from heat_plugins import foreign
from heat_plugins import metrics

LOG = foreign.logger(__name__)

# Seconds between two measurements, and two attempts to bind the port; and in
# which a client must have sent its request; and the most bytes of that.
_INTERVAL: Final = 10.0
_PATIENCE: Final = 5.0
_MOST: Final = 65536

# Bytes that must be free: a full disk kills a process that writes to a file
# in its memory.
_ROOM: Final = 16 * 1024 * 1024

_ALIVE: Final = '.alive'

# What is complete in it replaces the file of a dead process and the sum.
_MERGED: Final = '.merged'

_Values = list[tuple[str, float]]


class Folder:
    """The files of all processes that share a port.

    :ivar owner: what the names of this process's files end with.
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
        self.owner = f'{os.getpid()}-{secrets.token_hex(8)}'
        self._alive = self._hold()
        self._leading: TextIO | None = None

    @classmethod
    def of(cls, host: str, port: int) -> 'Folder':
        """Return the folder of those that serve at an address."""
        name = f'heat-plugins-metrics-{os.geteuid()}-{host}-{port}'
        return cls(pathlib.Path(tempfile.gettempdir(), name))

    @property
    def _has_room(self) -> bool:
        return shutil.disk_usage(self.path).free >= _ROOM

    def _hold(self) -> TextIO | None:
        """Hold the lock of this process as long as the file is open."""
        new = self.path / f'{self.owner}.new'
        lock = _locked(new)
        # With its lock, so that none takes this process for a dead one.
        new.rename(new.with_suffix(_ALIVE))
        return lock

    def leads(self) -> bool:
        """Say whether this process is the one that serves all."""
        self._leading = self._leading or _locked(self.path / 'serving')
        return self._leading is not None

    def refresh(self) -> None:
        """Keep what cleans up temporary files from deleting these."""
        for each in self.path.iterdir():
            with contextlib.suppress(FileNotFoundError):
                os.utime(each)

    def bury(self) -> None:
        """Unite the files of processes that have died; the leader may."""
        self._replace()
        # Before it is known who lives: a process is locked before it has any.
        files = [*self.path.glob('*.db')]
        alive = {'dead', *self._living()}
        for path in files:
            kind, _, owner = path.stem.rpartition('_')
            if owner in alive:
                continue
            counted = [] if kind.startswith('gauge') else _values(path)
            if not counted:
                path.unlink()
            elif self._has_room:
                self._merge(counted, path, self.path / f'{kind}_dead.db')

    def _living(self) -> abc.Iterator[str]:
        """Return the owners that live; delete the locks of others."""
        for path in self.path.glob(f'*{_ALIVE}'):
            lock = _locked(path)
            if lock is None:
                yield path.stem
            else:
                path.unlink()
                lock.close()

    def _merge(
        self, counted: _Values, path: pathlib.Path, total: pathlib.Path
    ) -> None:
        """Add what a file has counted to the total, and delete the file."""
        new = total.with_suffix('.new')
        new.unlink(missing_ok=True)
        sums = mmap_dict.MmapedDict(str(new))
        for key, value in [*_values(total), *counted]:
            sums.write_value(key, sums.read_value(key)[0] + value, 0.0)
        sums.close()
        new.rename(path.with_suffix(_MERGED))
        self._replace()

    def _replace(self) -> None:
        """Put a new total in its place, after a crash too."""
        for merged in self.path.glob(f'*{_MERGED}'):
            merged.with_suffix('.db').unlink(missing_ok=True)
            kind, _, _ = merged.stem.rpartition('_')
            merged.rename(self.path / f'{kind}_dead.db')


def _locked(path: pathlib.Path) -> TextIO | None:
    """Lock a file until it is closed; None if another process has that."""
    file = path.open('a')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _values(path: pathlib.Path) -> _Values:
    """Return what a file has counted; nothing if it is unreadable."""
    try:
        read = mmap_dict.MmapedDict.read_all_values_from_file(str(path))
        return [(key, value) for key, value, _, _ in read]
    except FileNotFoundError:
        return []
    except Exception as exc:
        # A process was killed as it made it.
        LOG.info('%s is unreadable: %s', path, foreign.brief(exc))
        return []


def recorders(
    folder: Folder,
) -> dict[tuple[metrics.Metric, str], metrics.Recorder]:
    """Make what counts in the files of a folder, for `metrics.install`."""
    # It reads that whenever it opens a file.
    os.environ['PROMETHEUS_MULTIPROC_DIR'] = str(folder.path)
    owner = folder.owner
    values.ValueClass = values.MultiProcessValue(lambda: owner)
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

    def setup(self) -> None:
        super().setup()
        self.rfile = io.BytesIO(_request(self.connection))


def _request(connection: socket.socket) -> bytes:
    """Read a request, which has no body, within one time for all of it.

    :raises TimeoutError: it has not come by then.
    """
    until = time.monotonic() + _PATIENCE
    text = b''
    while b'\r\n\r\n' not in text and len(text) < _MOST:
        if (left := until - time.monotonic()) <= 0:
            raise TimeoutError('The request takes too long')
        connection.settimeout(left)
        part = connection.recv(_MOST)
        if not part:
            break
        text += part
    connection.settimeout(_PATIENCE)
    return text


class Exporter:
    """Measures for one process, and serves all if it leads.

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
        self._failures = 0
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
        if self._folder.leads():
            self._folder.refresh()
            self._folder.bury()
            self._listener = self._listener or self._bind()
        while (left := until - time.monotonic()) > 0:
            if self._listener is None:
                time.sleep(left)
            else:
                self._listener.settimeout(left)
                self._serve(self._listener)

    def _bind(self) -> socket.socket | None:
        """Bind the port; None if that fails."""
        host, port = self._address
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        try:
            listener = socket.create_server(self._address, family=family)
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
            return None
        self._failures = 0
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
