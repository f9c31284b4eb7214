# SPDX-License-Identifier: Apache-2.0
"""List the signals in a container, at a bounded cost.

A member of the project can put any number of objects into the container. So
a listing is read up to a limit; beyond that each awaited name is asked for by
itself, a few at each poll, in turn.
"""

import bisect
from collections import abc
import itertools
import time

from heat_plugins import foreign
from heat_plugins.objectstore import stores
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

#: Entries that one poll reads beyond those that the awaited signals and
#: their reports can be.
SPARE = 4000

#: Signals and reports that one poll asks for by themselves.
ONE_BY_ONE = 100

#: Seconds until we list an overfull container again.
OVERFULL_SECONDS = 60


class Poller:
    """Polls one container for signals.

    :param clock: seconds, monotonic.
    """

    def __init__(
        self, container: str, clock: abc.Callable[[], float] = time.monotonic
    ) -> None:
        self._container = container
        self._clock = clock
        self._overfull_until = float('-inf')
        # The signal asked for last, and the awaited signals that have arrived.
        self._last = ''
        self._arrived: set[str] = set()

    def poll(
        self, store: stores.ObjectStore, wanted: abc.Collection[str]
    ) -> abc.Collection[str]:
        """Return which awaited names are known to have arrived.

        :param wanted: the names of signals and of reports.
        :raises errors.ServiceError: the container cannot be read.
        """
        if self._clock() >= self._overfull_until:
            limit = SPARE + len(wanted)
            listed = store.iterate(self._container, signal_names.SIGNALS)
            names = {
                entry.name for entry in itertools.islice(listed, limit + 1)
            }
            if len(names) <= limit:
                return names
            LOG.warning(
                'Container %(container)s holds more than %(limit)d objects '
                'under %(folder)s. Each poll requests %(names)d awaited '
                'signals one by one. Delete the objects that no deployment '
                'has created',
                {
                    'container': self._container,
                    'limit': limit,
                    'folder': signal_names.SIGNALS,
                    'names': ONE_BY_ONE,
                },
            )
            self._overfull_until = self._clock() + OVERFULL_SECONDS
            self._arrived |= names
        # A HEAD is far cheaper than a listing with the name as its prefix.
        ordered = sorted(wanted)
        start = bisect.bisect_right(ordered, self._last)
        for name in (ordered[start:] + ordered[:start])[:ONE_BY_ONE]:
            if store.has_object(self._container, name):
                self._arrived.add(name)
            else:
                self._arrived.discard(name)
            self._last = name
        self._arrived &= set(wanted)
        return frozenset(self._arrived)
