# SPDX-License-Identifier: Apache-2.0
"""Threads, their limits and shared values in one process of heat-engine.

Each scan has a thread of its own, so that none waits for another: one looks
for deployments of dead engines, one for stacks that stand still, one for runs
of dead engines, one keeps schedules, one tells webhooks, one exports metrics.
"""

import collections
from collections import abc
import contextlib
import dataclasses
import functools
import os
import random
import threading
import time
from typing import Any, Generic, TypeVar

from oslo_config import cfg

from heat_plugins import foreign
from heat_plugins import metrics

LOG = foreign.logger(__name__)


_Key = TypeVar('_Key', bound=abc.Hashable)
_Value = TypeVar('_Value')

# Seconds between two scans where rescue_interval is 0.
_RETRY = 30.0

_lock = threading.Lock()
# The process that scans; after a fork the child must start its own scans.
_process: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scan:
    """A task that a process repeats at an interval.

    :ivar name: of its thread.
    :ivar wanted: what it looks for, for messages.
    :ivar begin: returns what scans once; None if nothing can.
    :ivar spread: the most seconds until the first, of processes that start
        together; None for as many as between two.
    :ivar interval: seconds between two; None for ``rescue_interval``.
    :ivar option: without which it does not start; None: it always does.
    """

    name: str
    wanted: str
    begin: abc.Callable[[], abc.Callable[[], object] | None]
    spread: float | None = None
    interval: float | None = None
    option: str | None = 'rescue_interval'


class Shared(Generic[_Key, _Value]):
    """Values that all threads of a process share, one for each key.

    :param make: makes one; it sends no request, and so cannot fail.
    :param is_idle: says whether no thread needs one now.
    :ivar most: how many that are idle to keep, the latest used.
    :ivar kept: all, the latest used last.
    """

    def __init__(
        self,
        make: abc.Callable[[_Key], _Value],
        is_idle: abc.Callable[[_Value], bool],
        most: int,
    ) -> None:
        self._make = make
        self._is_idle = is_idle
        self.most = most
        self._lock = threading.Lock()
        self.kept: collections.OrderedDict[_Key, _Value] = (
            collections.OrderedDict()
        )

    def get(self, key: _Key) -> _Value:
        """Return the value of a key; make it if there is none."""
        with self._lock:
            value = self.kept.get(key)
            if value is None:
                value = self.kept[key] = self._make(key)
                idle = [k for k, v in self.kept.items() if self._is_idle(v)]
                for each in idle[: max(0, len(idle) - self.most)]:
                    del self.kept[each]
            if key in self.kept:
                self.kept.move_to_end(key)
            return value

    def values(self) -> list[_Value]:
        """Return a copy of all values, the latest used last."""
        with self._lock:
            return [*self.kept.values()]

    def forget(self, value: _Value) -> None:
        """Forget a value that is idle."""
        with self._lock:
            for key, kept in [*self.kept.items()]:
                if kept is value and self._is_idle(value):
                    del self.kept[key]


class Places:
    """Limits the tasks of a process, each in a thread of its own.

    :param most: the most threads.
    :param most_of_project: those of one project.
    """

    def __init__(self, most: int, most_of_project: int) -> None:
        self._most = most
        self._most_of_project = most_of_project
        self._lock = threading.Lock()
        # The project of each, by what it is about.
        self._taken: dict[str, str] = {}

    def take(self, key: str, project_id: str) -> bool:
        """Take a place unless there is none, or the key has one."""
        with self._lock:
            taken = [*self._taken.values()]
            if (
                key in self._taken
                or len(taken) >= self._most
                or taken.count(project_id) >= self._most_of_project
            ):
                return False
            self._taken[key] = project_id
            return True

    def leave(self, key: str) -> None:
        """Release the place of a key."""
        with self._lock:
            self._taken.pop(key, None)

    def run(
        self, key: str, name: str, do: abc.Callable[..., object], *args: Any
    ) -> None:
        """Do something in a thread, and leave the place that was taken."""

        def run() -> None:
            """Call the function; then the key's place is free again."""
            try:
                do(*args)
            finally:
                self.leave(key)

        try:
            threading.Thread(target=run, name=name, daemon=True).start()
        except BaseException:
            self.leave(key)
            raise


def with_scans(
    *scans: Scan,
    before: abc.Callable[[], None],
    after: abc.Callable[[Any], None],
) -> abc.Callable[[abc.Callable[[Any], None]], Any]:
    """Return a wrapper that adds scans to the start of an engine.

    :param before: called before the start.
    :param after: called with the engine that has started.

    Heat tells plugins nothing of that, and those who never start an engine
    load plugins, too: the parent of forked workers, and tools.
    """

    def wrap(start: abc.Callable[[Any], None]) -> Any:
        def start_and_watch(engine: Any) -> None:
            before()
            start(engine)
            wanted = ', or for '.join(scan.wanted for scan in scans)
            for what, do in (
                (f'scan for {wanted}', functools.partial(watch, *scans)),
                ('lead runs', functools.partial(after, engine)),
            ):
                try:
                    do()
                except Exception as exc:
                    LOG.warning(
                        'heat-engine cannot %s: %s', what, foreign.brief(exc)
                    )

        return start_and_watch

    return wrap


def watch(*scans: Scan) -> None:
    """Start the scans of this process, unless it scans already."""
    global _process
    with _lock:
        if _process == os.getpid():
            return
        _process = os.getpid()
    for scan in scans:
        if scan.option is None or cfg.CONF.heat_plugins[scan.option]:
            threading.Thread(
                target=repeat, args=(scan,), name=scan.name, daemon=True
            ).start()


def repeat(scan: Scan) -> None:
    """Scan again and again, in a thread of its own, whatever fails."""
    interval = scan.interval or (
        cfg.CONF.heat_plugins.rescue_interval or _RETRY
    )
    look = scan.begin()
    if look is None:
        return
    spread = interval if scan.spread is None else scan.spread
    # Processes that start together scan at different times.
    # Not a secret.
    time.sleep(random.uniform(0, spread))  # noqa: S311 # nosec B311
    while True:
        try:
            look()
        except Exception as exc:
            metrics.count(metrics.SCANS_FAILED, scan.name)
            LOG.warning(
                'Cannot scan for %s; retrying: %s',
                scan.wanted,
                foreign.brief(exc),
            )
        time.sleep(interval)


class Turns:
    """Gives threads turns.

    A thread that takes longer than `lease` no longer holds up the next: it may
    itself wait for something.

    :param lease: seconds.
    :param clock: seconds, monotonic.
    :param places: how many may do it at a time.
    :param changed: what threads wait for.
    :ivar present: one for each thread that has a turn or wants one.
    """

    def __init__(
        self,
        lease: float,
        clock: abc.Callable[[], float] = time.monotonic,
        *,
        places: int = 1,
        changed: threading.Condition | None = None,
    ) -> None:
        self._lease = lease
        self._places = places
        self._clock = clock
        self._changed = changed or threading.Condition()
        self.present: set[object] = set()
        # Until when those hold their turn that have one.
        self._holders: dict[object, float] = {}

    @contextlib.contextmanager
    def turn(self) -> abc.Iterator[None]:
        """Wait for one's turn, and have it."""
        own = object()
        self.present.add(own)
        try:
            with self._changed:
                while pause := self._pause():
                    self._changed.wait(pause)
                self._holders[own] = self._clock() + self._lease
            yield
        finally:
            with self._changed:
                self._holders.pop(own, None)
                self.present.discard(own)
                self._changed.notify()

    def _pause(self) -> float:
        """Return for how long all places are taken at most."""
        now = self._clock()
        busy = [until - now for until in self._holders.values() if until > now]
        return min(busy) if len(busy) >= self._places else 0.0
