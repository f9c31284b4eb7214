# SPDX-License-Identifier: Apache-2.0
"""What the services do between two moments.

Swift's requests come from the log of its proxy; RPC messages and database
statements from the counters that run in heat-engine, below our classes and
Heat's alike; CPU and memory from the kernel.
"""

import collections
import time

from tests.bench import engine_state

SERVICES = ('heat', 'swift', 'keystone')


class Meter:
    """Counts what a cloud's services do."""

    def __init__(self, cloud):
        self._cloud = cloud

    def mark(self):
        """Wait for Heat's next count, at most a second.

        Return it with what the kernel had counted up to that moment.
        """
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

    def between(self, begin, end):
        """Return what was done between two marks.

        Its seconds; by verb the requests to Swift and the statements of the
        database, by method the messages of RPC, by service the seconds of
        CPU; and the threads of heat-engine at the end.
        """
        return {
            'seconds': end['time'] - begin['time'],
            'swift': collections.Counter(
                one['method']
                for one in self._cloud.swift_requests(begin['time'])
                if one['time'] < end['time']
            ),
            # What has not grown is left out.
            **{
                kind: collections.Counter(end[kind])
                - collections.Counter(begin[kind])
                for kind in ('rpc', 'db')
            },
            'cpu': {
                name: round(end['cpu'][name] - begin['cpu'][name], 2)
                for name in SERVICES
            },
            'threads': end['threads'],
        }

    def peak_bytes(self):
        """Return the most memory that each has held since its start."""
        return {
            name: self._cloud.usage(name)['peak_rss_bytes']
            for name in SERVICES
        }
