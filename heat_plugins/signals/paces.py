# SPDX-License-Identifier: Apache-2.0
"""How often to poll for signals, and which sleeping thread polls.

Agents ask for their configs twice a minute, and most actions are short. So
fast polls follow a delivery, unless earlier signals of the same root stack
have taken long. They also follow an arrival, as others arrive soon. While
nothing arrives, the interval grows.
"""

from collections import abc
import dataclasses
import math
import statistics
import threading
import time

#: The least seconds between two polls, whatever is asked for.
LEAST = 0.25

# Seconds of fast polls: after a delivery, and after an arrival.
_DELIVERY = 30.0
_ARRIVAL = 5.0

# For how many of the usual seconds from delivery to arrival to poll fast.
_MARGIN = 2.0

# The last arrivals that tell what is usual.
_REMEMBERED = 16

# The last polls that tell what one costs.
_COSTS = 5

# The interval is that part of the time for which nothing has arrived: five
# seconds after two minutes.
_PART = 1 / 24

# Polls take at most this part of the time while they are fast: 1 / _SHARE.
_SHARE = 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class PollLimits:
    """Seconds between two polls.

    :ivar fast: while a signal is likely. No faster than `LEAST`, and no
        slower than `interval`.
    :ivar interval: at first, otherwise.
    :ivar interval_max: to which that grows while nothing arrives.
    """

    fast: float = LEAST
    interval: float = 1.0
    interval_max: float = 5.0

    def after(self, quiet: float) -> float:
        """Return the interval when nothing has arrived for some seconds."""
        grown = min(quiet * _PART, self.interval_max)
        return max(self.interval, grown, LEAST)


class PollPace:
    """When to poll next for the signals of one root stack.

    :param clock: seconds, monotonic.
    """

    def __init__(
        self,
        limits: PollLimits,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._clock = clock
        self._delivered_at = -math.inf
        self._arrived_at = -math.inf
        self._quiet_since = clock()
        # Seconds from delivery to arrival, of the last signals.
        self._usual: list[float] = []
        # Seconds that the last polls took.
        self._costs: list[float] = []

    def deliver(self) -> None:
        """Note that a server was given an action just now."""
        self._delivered_at = self._quiet_since = self._clock()

    def arrive(self, since: float | None = None) -> None:
        """Note that an action has ended just now.

        :param since: when it was delivered; None if its server did not end it.
        """
        now = self._clock()
        self._arrived_at = self._quiet_since = now
        if since is not None:
            self._usual = [*self._usual[1 - _REMEMBERED :], now - since]

    def interval(self, cost: float = 0.0, *, failed: bool = False) -> float:
        """Return the seconds from the end of a poll to the next one.

        :param cost: how many seconds that poll took, if any. A store that
            answers slowly is polled less often; one slow answer says nothing,
            as servers that signal together slow it down for a moment.
        :param failed: whether the last one failed.
        """
        now = self._clock()
        slow = self._limits.after(now - self._quiet_since)
        if cost:
            self._costs = [*self._costs[1 - _COSTS :], cost]
        # The seconds after a delivery in which signals arrive.
        answer = statistics.median(self._usual or [_DELIVERY])
        expected = (
            min(max(_MARGIN * answer, _ARRIVAL), _DELIVERY)
            if answer <= _DELIVERY
            else 0.0
        )
        is_likely = (
            now - self._arrived_at < _ARRIVAL
            or now - self._delivered_at < expected
        )
        if failed or not is_likely:
            return slow
        usual = statistics.median(self._costs or [0.0])
        # From the begin of one poll to that of the next.
        period = max(self._limits.fast, LEAST, _SHARE * usual)
        return min(max(period - cost, usual), slow)


#: Waits for an event, for some seconds at most.
Sleep = abc.Callable[[threading.Event, float], object]


class Sleepers:
    """The threads that sleep; one of them leads, and polls for all.

    Each is known by the event that wakes it. It works with native threads, and
    with green ones where `threading` is patched.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: set[threading.Event] = set()
        self._leader: threading.Event | None = None

    def leads(self, woken: threading.Event) -> bool:
        """Say whether a sleeper leads; without a leader it takes the lead."""
        with self._lock:
            self._events.add(woken)
            if self._leader is None:
                self._leader = woken
            return self._leader is woken

    def leave(self, woken: threading.Event) -> None:
        """Remove a sleeper; another one takes the lead."""
        with self._lock:
            self._events.discard(woken)
            if self._leader is woken:
                self._leader = next(iter(self._events), None)
                self.wake_leader()

    def wake_leader(self) -> None:
        """Wake the thread that polls, as it must poll sooner."""
        with self._lock:
            if self._leader is not None:
                self._leader.set()
