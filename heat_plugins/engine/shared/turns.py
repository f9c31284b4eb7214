# SPDX-License-Identifier: Apache-2.0
"""Turns at something that few may do at a time, and that may take long."""

import collections
from collections import abc
import contextlib
import threading
import time

from heat_plugins.signals import paces


class Turns:
    """Lets one do something after another, in the order in which they came.

    Who takes longer than `lease` no longer holds up the next: it may be
    waiting for something itself.

    :param lease: seconds.
    :param clock: seconds, monotonic.
    :param places: how many may do it at a time.
    """

    def __init__(
        self,
        lease: float,
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: paces.Sleep = threading.Event.wait,
        *,
        places: int = 1,
    ) -> None:
        self._lease = lease
        self._places = places
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._queue: collections.deque[threading.Event] = collections.deque()
        # Whose turn it is, and until when it holds up others.
        self._holders: dict[threading.Event, float] = {}

    def __len__(self) -> int:
        """Return how many wait for their turn."""
        return len(self._queue)

    @property
    def is_idle(self) -> bool:
        """Whether no thread has or wants a turn."""
        return not (self._queue or self._holders)

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
            if self._queue[0] is not woken:
                # Who goes before wakes it.
                return 10 * self._lease
            now = self._clock()
            busy = [until for until in self._holders.values() if until > now]
            if len(busy) >= self._places:
                return min(busy) - now
            self._queue.popleft()
            self._holders[woken] = now + self._lease
            # It is the first now, and may have to wait for the end of a lease.
            self._wake_first()
            return None

    def _leave(self, woken: threading.Event) -> None:
        with self._lock:
            self._holders.pop(woken, None)
            with contextlib.suppress(ValueError):
                # What stops a thread may do so while it waits.
                self._queue.remove(woken)
            self._wake_first()

    def _wake_first(self) -> None:
        if self._queue:
            self._queue[0].set()
