# SPDX-License-Identifier: Apache-2.0
"""Counters of a service, for benchmarks.

Every second a line of JSON is appended to a file: cumulative counts of RPC
messages by method, of database statements by verb, CPU seconds and memory.
"""

import collections
import json
import os
import resource
import threading
import time


class Counter:
    """Counts by name, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: collections.Counter[str] = collections.Counter()

    def add(self, name: str) -> None:
        with self._lock:
            self._counts[name] += 1

    def snapshot(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counts)


rpc = Counter()
statements = Counter()


def write_to(path: str, seconds: float = 1.0) -> None:
    """Append the counts to a file for as long as the process lives."""
    thread = threading.Thread(
        target=_write, args=(path, seconds), name='counters', daemon=True
    )
    thread.start()


def snapshot() -> dict[str, object]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    queries = statements.snapshot()
    calls = rpc.snapshot()
    return {
        'time': time.time(),
        'pid': os.getpid(),
        'rpc': calls,
        'rpc_total': sum(calls.values()),
        'db': queries,
        'db_total': sum(queries.values()),
        'cpu_seconds': used.ru_utime + used.ru_stime,
        'rss_bytes': _rss(),
        'threads': threading.active_count(),
    }


def _write(path: str, seconds: float) -> None:
    with open(path, 'a', buffering=1, encoding='utf-8') as stream:
        while True:
            stream.write(json.dumps(snapshot()) + '\n')
            time.sleep(seconds)


def _rss() -> int:
    with open('/proc/self/statm') as stream:
        return int(stream.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
