# SPDX-License-Identifier: Apache-2.0
"""What the services do between two moments.

Swift's requests come from the log of its proxy; RPC messages and database
statements from the counters that run in heat-engine, below our classes and
Heat's alike; CPU and memory from the kernel.
"""

import collections
import dataclasses
import time
from typing import Any

from tests.bench import engine_state
from tests.functional import base

SERVICES = ('heat', 'swift', 'keystone')


#: A moment, and what Heat and the kernel had counted up to then.
Mark = dict[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Counts:
    """What was done in a time.

    :ivar seconds: how long it was.
    :ivar swift: requests by verb.
    :ivar rpc: messages by method.
    :ivar db: statements by verb.
    :ivar cpu: seconds by service.
    :ivar threads: of heat-engine, at the end.
    """

    seconds: float
    swift: dict[str, int]
    rpc: dict[str, int]
    db: dict[str, int]
    cpu: dict[str, float]
    threads: int = 0


class Meter:
    """Counts what a cloud's services do."""

    def __init__(self, cloud: base.Cloud) -> None:
        self._cloud = cloud

    def mark(self) -> Mark:
        """Wait for Heat's next count, at most a second, and take it."""
        since = time.time()
        found = engine_state.until(
            lambda: self._cloud.heat_counters(since),
            30,
            "heat-engine's counters",
        )
        usage = {name: self._cloud.usage(name) for name in SERVICES}
        return {
            **found[0],
            'cpu': {name: one['cpu_seconds'] for name, one in usage.items()},
            'threads': usage['heat']['threads'],
        }

    def between(self, begin: Mark, end: Mark) -> Counts:
        return Counts(
            seconds=end['time'] - begin['time'],
            swift=dict(
                collections.Counter(
                    one['method']
                    for one in self._cloud.swift_requests(begin['time'])
                    if one['time'] < end['time']
                )
            ),
            rpc=_difference(begin['rpc'], end['rpc']),
            db=_difference(begin['db'], end['db']),
            cpu={
                name: round(end['cpu'][name] - begin['cpu'][name], 2)
                for name in SERVICES
            },
            threads=end['threads'],
        )

    def peak_bytes(self) -> dict[str, int]:
        """Return the most memory that each has held since its start."""
        return {
            name: self._cloud.usage(name)['peak_rss_bytes']
            for name in SERVICES
        }


def _difference(before: dict[str, int], after: dict[str, int]):
    changed = {key: after[key] - before.get(key, 0) for key in after}
    return {key: count for key, count in changed.items() if count}
