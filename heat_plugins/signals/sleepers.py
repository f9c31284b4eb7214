# SPDX-License-Identifier: Apache-2.0
"""Those who sleep until something is seen, and the one of them who polls."""

from collections import abc
import threading

#: Waits for an event, for some seconds at most.
Sleep = abc.Callable[[threading.Event, float], object]


class Sleepers:
    """Who sleeps; one of them leads, and polls for all.

    Each is known by the event that wakes it. It works with native threads,
    and with green ones where `threading` is patched.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: set[threading.Event] = set()
        self._leader: threading.Event | None = None

    def leads(self, woken: threading.Event) -> bool:
        """Say whether a sleeper leads; it does so from now on if none does."""
        with self._lock:
            self._events.add(woken)
            if self._leader is None:
                self._leader = woken
            return self._leader is woken

    def leave(self, woken: threading.Event) -> None:
        """Sleep no longer; another one takes the lead."""
        with self._lock:
            self._events.discard(woken)
            if self._leader is woken:
                self._leader = next(iter(self._events), None)
                self._wake_leader()

    def wake_leader(self) -> None:
        """Wake the thread that polls, as it must poll sooner."""
        with self._lock:
            self._wake_leader()

    def _wake_leader(self) -> None:
        if self._leader is not None:
            self._leader.set()
