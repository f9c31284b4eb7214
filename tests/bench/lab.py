# SPDX-License-Identifier: Apache-2.0
"""The mini cloud that all is measured on, with the one or the other class.

Both sides use the same cloud, one after another: the same databases, users
and servers. Heat and Swift are restarted for each round, so that neither
memory nor connections nor caches are left from the round before.
"""

import contextlib
import sqlite3

from tests.bench import engine_state
from tests.bench import scenarios
from tests.functional import base

_DATABASE = 'data/heat.sqlite'

_TYPE = 'OS::Heat::SoftwareDeployment'

# Servers in a stack: what Heat does for each grows with their number.
_TOGETHER = 100


#: Whose classes serve the deployments.
SIDES = {'ours': 'heat-plugins', 'heats': "Heat's own"}


class Lab:
    """A mini cloud for measurements.

    :param servers: as many as the largest scenario needs.
    :ivar servers: their ids, from the first start on.
    :param store: ``swift`` or ``rgw``.
    """

    def __init__(self, servers, store):
        self.cloud = base.Cloud('bench')
        self._count = servers
        self._profile = base.catalog.STORES[store]
        self.servers = []

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        # After an error its logs may tell why.
        self.cloud.down(purge=kind is None)

    def reset(self):
        """Forget all that is stored, after something has gone wrong."""
        self.cloud.down(purge=True)
        self.servers = []

    def start(self, side='ours', waiting=None):
        """Start Heat with the classes of a side, and a new Swift.

        The servers are there, and Heat has not made them since its start: it
        would keep memory of that.

        :param waiting: how many resources wait at a time; None for as many
            as there are servers.
        """
        if not self.servers:
            self._up(side, _TOGETHER)
            for first in range(0, self._count, _TOGETHER):
                self.servers += self._make(
                    first, min(_TOGETHER, self._count - first)
                )
        self._up(side, self._count if waiting is None else waiting)

    def _up(self, side, waiting):
        if self.cloud.path.exists():
            # At once: there is nothing in progress.
            for service in ('heat', 'swift'):
                self._kill(service)
        for log in ('swift-requests', 'heat-counters'):
            (self.cloud.path / f'logs/{log}.jsonl').unlink(missing_ok=True)
        self.cloud.up(
            profile=self._profile,
            plugin=base.ROOT if side == 'ours' else 'none',
            # Each waiting resource holds a thread; some more for the rest.
            # Heat starts a thread for each message until it has all of them.
            executor_threads=waiting + 64,
        )
        # Nothing here needs it, and it is never quite idle.
        self._kill('mistral')
        served = self.cloud.resource_classes()[_TYPE]
        if served.startswith('heat_plugins.') != (side == 'ours'):
            raise RuntimeError(f'{_TYPE} is served by {served}')

    def _kill(self, service):
        if self.cloud.usage(service)['running']:
            self.cloud.kill(service)

    def _make(self, first, count):
        stack = base.Stack(
            self.cloud.session(),
            scenarios.servers(count, first),
            name=f'servers{first}',
            timeout_mins=30,
        )
        with self.state() as state:
            engine_state.until(
                lambda: state.stacks([stack.id]) == {'CREATE_COMPLETE'},
                900,
                'the servers',
            )
            return state.server_ids(stack.id)

    def database(self):
        """Return Heat's database, to write to it."""
        return sqlite3.connect(self.cloud.path / _DATABASE, timeout=60)

    def state(self):
        """Return a context of what Heat's database says."""
        file = self.cloud.path / _DATABASE
        return contextlib.closing(engine_state.EngineState(file))
