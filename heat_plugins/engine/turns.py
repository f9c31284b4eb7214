# SPDX-License-Identifier: Apache-2.0
"""Turns at something that few may do at a time, and that may take long."""

import collections
from collections import abc
import contextlib
import threading
import time

from heat_plugins.signals import sleepers


class Turns:
    """Lets one do something after another, in the order in which they came.

    Who takes longer than `lease` no longer holds up the next: it may be
    waiting for something itself.

    :param lease: seconds.
    :param clock: seconds, monotonic.
    """

    def __init__(
        self,
        lease: float,
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: sleepers.Sleep = threading.Event.wait,
    ) -> None:
        self._lease = lease
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._queue: collections.deque[threading.Event] = collections.deque()
        # Whose turn it is, and until when it holds up others.
        self._holder: threading.Event | None = None
        self._until = 0.0

    def __len__(self) -> int:
        """Return how many wait for their turn."""
        return len(self._queue)

    @contextlib.contextmanager
    def turn(self) -> abc.Iterator[None]:
        """Wait for one's turn, and have it."""
        woken = threading.Event()
        with self._lock:
            self._queue.append(woken)
        try:
            while (pause := self._take(woken)) is not None:
                self._sleep(woken, pause)
                woken.clear()
            yield
        finally:
            self._leave(woken)

    def _take(self, woken: threading.Event) -> float | None:
        """Return for how long to wait for one's turn; None if it is now."""
        with self._lock:
            rest = self._until - self._clock()
            if self._queue[0] is not woken:
                # Who goes before wakes it.
                return max(rest, 10 * self._lease)
            if self._holder is not None and rest > 0:
                return rest
            self._queue.popleft()
            self._holder = woken
            self._until = self._clock() + self._lease
            # It is the first now, and waits for the end of the lease.
            self._wake_first()
            return None

    def _leave(self, woken: threading.Event) -> None:
        with self._lock:
            if self._holder is woken:
                self._holder = None
            with contextlib.suppress(ValueError):
                # What stops a thread may do so while it waits.
                self._queue.remove(woken)
            self._wake_first()

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].set()
