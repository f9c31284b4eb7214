# SPDX-License-Identifier: Apache-2.0
"""One shared poll for all deployments that wait in one root stack.

Their threads sleep until something concerns them. One of the threads polls for
all, with one listing of the container and one read of the deployments' rows,
and wakes those whose signals have arrived. There is no other thread: while no
deployment waits, nothing is polled.
"""

from collections import abc
import dataclasses
import enum
import threading
import time
from typing import Protocol

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins import retrying
from heat_plugins.signals import paces

LOG = foreign.logger(__name__)

#: Seconds between two requests past the listing, at most, for all that wait
#: for one root stack. They began together, so all would come at once.
PEEK_SECONDS = 10.0

# Seconds to leave a poll to the thread that makes it.
_POLLING = 0.05


class Observation(enum.Enum):
    """The result of a poll for a deployment."""

    WAITING = 'nothing yet'
    ARRIVED = 'its signal lies in the object store'
    PEEK = 'nothing, but a request past the listing is due'
    SETTLED = 'its row is no longer in progress'
    SUPERSEDED = 'its row belongs to another action, or is gone; or it left'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ticket:
    """A deployment that waits, and the signal that it waits for.

    :ivar object_name: of the signal; None where it comes another way, and only
        the row shows it.
    :ivar report_name: of the report that the server has started.
    """

    deployment_id: str
    config_id: str
    object_name: str | None
    report_name: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchedRow:
    """The part of a deployment's row that a poll reads.

    :ivar begun: whether its server has reported that it has started.
    """

    config_id: str
    in_progress: bool
    begun: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class WatchLimits:
    """Seconds between polls.

    :ivar polls: for listings.
    :ivar direct: before the first request past the listing; doubles each time.
    :ivar rows: between two reads of the rows of deployments whose signals lie
        in the object store; those seldom end another way. 0 reads with each
        poll.
    """

    polls: paces.PollLimits = dataclasses.field(
        default_factory=paces.PollLimits
    )
    direct: float
    rows: float = 0.0


class SignalSource(Protocol):
    """A reader of signal names and rows for polls."""

    def names(self, wanted: abc.Collection[str]) -> abc.Collection[str]:
        """List the signals that lie in the object store.

        :param wanted: the awaited names.
        :raises errors.ServiceError: the object store cannot be read.
        """

    def rows(self, ids: abc.Collection[str]) -> abc.Mapping[str, WatchedRow]:
        """Read the rows of deployments; those that are gone are left out."""


@dataclasses.dataclass(kw_only=True)
class _Wait:
    """One ticket that has joined.

    :ivar since: the number of the last poll that began before it joined.
    :ivar begun: when it joined.
    :ivar woken: wakes the thread that sleeps until then; None if none does.
    """

    ticket: Ticket
    since: int
    begun: float
    next_peek: float
    peek_after: float
    believe_from: float = 0.0
    woken: threading.Event | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Poll:
    """The result of one poll; `number` tells whether it began late enough."""

    number: int
    names: abc.Collection[str]
    rows: abc.Mapping[str, WatchedRow]


class Watcher:
    """Polls for the signals of the deployments of one root stack."""

    def __init__(
        self,
        source: SignalSource,
        limits: WatchLimits,
        clock: abc.Callable[[], float] = time.monotonic,
        *,
        sleep: paces.Sleep = threading.Event.wait,
        stack_id: str = '',
    ) -> None:
        """Begin with no deployment that waits.

        :param stack_id: of the root stack, for the log.
        """
        self._stack_id = stack_id
        self._source = source
        self._limits = limits
        self._clock = clock
        self._sleep = sleep
        self._pace = paces.PollPace(limits.polls, clock)
        self._lock = threading.Lock()
        self._polling = threading.Lock()
        # By the id of the deployment.
        self._waits: dict[str, _Wait] = {}
        self._sleepers = paces.Sleepers()
        self._count = 0
        self._seen = _Poll(number=0, names=frozenset(), rows={})
        self._next_poll = 0.0
        self._next_rows = 0.0
        # When the next request past the listing may be.
        self._next_peek = 0.0
        #: Since when the listing fails; None if it does not.
        self.outage: retrying.Outage | None = None

    def __len__(self) -> int:
        return len(self._waits)

    @property
    def oldest(self) -> float:
        """For how many seconds the first has waited; 0 if none waits."""
        with self._lock:
            now = self._clock()
            begun = (wait.begun for wait in self._waits.values())
            return now - min(begun, default=now)

    @property
    def until_poll(self) -> float:
        """For how many seconds no poll is due."""
        return max(0.0, self._next_poll - self._clock())

    def join(self, *tickets: Ticket) -> None:
        """Begin to poll for signals.

        A wait for another action of the same deployment ends.
        """
        with self._lock:
            if not self._waits:
                # There was no poll meanwhile, so it is unknown how long the
                # object store has been failing.
                self.outage = None
            now = self._clock()
            for ticket in tickets:
                self._forget(ticket.deployment_id)
                # A poll that has started before now may have read the row of
                # the action before this one.
                self._waits[ticket.deployment_id] = _Wait(
                    ticket=ticket,
                    since=self._count,
                    begun=now,
                    next_peek=now + self._limits.direct,
                    peek_after=self._limits.direct,
                )
            self._pace.deliver()
            self._next_poll = min(self._next_poll, now + self._pace.interval())
        self._sleepers.wake_leader()

    def leave(self, *tickets: Ticket) -> None:
        """Stop polling for signals."""
        with self._lock:
            for ticket in tickets:
                if self._find(ticket) is not None:
                    self._forget(ticket.deployment_id)

    def wait(
        self, tickets: abc.Collection[Ticket], seconds: float
    ) -> dict[Ticket, Observation]:
        """Block until a poll shows something of some tickets.

        One of the threads that block polls for all. `forget` and `join` wake
        the thread whose wait they end.

        :param tickets: that have joined; no other thread waits for them.
        :param seconds: at most; 0 does not block.
        :returns: those that are not WAITING; empty if time is up.
        """
        until = self._clock() + seconds
        woken = threading.Event()
        self._wake_by(woken, tickets)
        try:
            while True:
                woken.clear()
                leads = self._sleepers.leads(woken)
                if leads and any(map(self._find, tickets)):
                    self._poll_if_due()
                with self._lock:
                    seen: dict[Ticket, Observation] = {
                        each: observation
                        for each in tickets
                        if (observation := self._observe(each, may_peek=True))
                        is not Observation.WAITING
                    }
                now = self._clock()
                if seen or now >= until:
                    return seen
                pause = until - now
                if leads:
                    # Another one may poll at the moment.
                    pause = min(pause, max(self._next_poll - now, _POLLING))
                self._sleep(woken, pause)
        finally:
            self._wake_by(None, tickets)
            self._sleepers.leave(woken)

    def _wake_by(
        self, woken: threading.Event | None, tickets: abc.Iterable[Ticket]
    ) -> None:
        """Set the event by which deployments that wait are woken."""
        with self._lock:
            for ticket in tickets:
                wait = self._find(ticket)
                if wait is not None:
                    wait.woken = woken

    def _find(self, ticket: Ticket) -> _Wait | None:
        """Return what waits for a signal; None if nothing does."""
        wait = self._waits.get(ticket.deployment_id)
        return wait if wait is not None and wait.ticket == ticket else None

    def _observe(self, ticket: Ticket, *, may_peek: bool) -> Observation:
        """Return what is known of a signal that is waited for."""
        wait = self._find(ticket)
        if wait is None:
            return Observation.SUPERSEDED
        if self._seen.number > wait.since:
            row = self._seen.rows.get(ticket.deployment_id)
            if row is None or row.config_id != ticket.config_id:
                return Observation.SUPERSEDED
            if not row.in_progress:
                return Observation.SETTLED
        if ticket.object_name is None:
            return Observation.WAITING
        now = self._clock()
        if ticket.object_name in self._seen.names and now >= wait.believe_from:
            return Observation.ARRIVED
        if not may_peek or now < wait.next_peek or not self._may_peek(now):
            return Observation.WAITING
        wait.peek_after *= 2
        wait.next_peek = now + wait.peek_after
        return Observation.PEEK

    def _may_peek(self, now: float) -> bool:
        """Say whether a request past the listing may be made.

        With the listings they are one request a second at most, unless these
        are that many by themselves.
        """
        if now < self._next_peek:
            return False
        left = 1 - 1 / self._pace.interval()
        self._next_peek = now + 1 / max(left, 1 / PEEK_SECONDS)
        return True

    def has_begun(self, ticket: Ticket) -> bool:
        """Say whether the last poll has seen a report of the server."""
        seen = self._seen
        if ticket.report_name is not None:
            return ticket.report_name in seen.names
        row = seen.rows.get(ticket.deployment_id)
        return (
            row is not None and row.begun and row.config_id == ticket.config_id
        )

    def absent(self, ticket: Ticket) -> None:
        """Note that a signal is missing although the listing shows it.

        Some listings still show expired objects. The listing counts again when
        the next request past it is due.
        """
        with self._lock:
            wait = self._find(ticket)
            if wait is not None:
                wait.peek_after *= 2
                wait.believe_from = self._clock() + wait.peek_after
                wait.next_peek = wait.believe_from

    def forget(self, deployment_id: str) -> None:
        """Stop polling for the signal of a deployment."""
        with self._lock:
            self._forget(deployment_id)

    def _forget(self, deployment_id: str) -> None:
        """End a wait, and wake its thread."""
        wait = self._waits.pop(deployment_id, None)
        if wait is not None and wait.woken is not None:
            wait.woken.set()

    def _poll_if_due(self) -> None:
        """Look for signals, if it is time and no other thread does."""
        is_due = self._clock() >= self._next_poll
        if not is_due or not self._polling.acquire(blocking=False):
            return
        try:
            self._poll()
        finally:
            self._polling.release()

    def _poll(self) -> None:
        """List the signals once, for all that wait."""
        with self._lock:
            begun = self._clock()
            if begun < self._next_poll:
                return
            self._count += 1
            number = self._count
            waits = list(self._waits.values())
        tickets = [wait.ticket for wait in waits]
        wanted = {
            name
            for each in tickets
            for name in (each.object_name, each.report_name)
            if name
        }
        # What has arrived is still there if the listing fails.
        names = known = wanted & set(self._seen.names)
        rows = self._seen.rows
        seen_rows = self._seen.number
        outage = None
        try:
            # Only its row shows the end of a ticket without an object.
            if begun >= self._next_rows or any(
                each.object_name is None for each in tickets
            ):
                rows = self._source.rows({t.deployment_id for t in tickets})
                seen_rows = number
                self._next_rows = self._clock() + self._limits.rows
            if wanted:
                names = wanted & set(self._source.names(wanted))
        except errors.ServiceError as exc:
            outage = retrying.Outage.of(exc, self.outage, self._clock)
        metrics.count(metrics.POLLS, 'failed' if outage else 'ok')
        with self._lock:
            self._note(outage)
            self._seen = _Poll(number=seen_rows, names=names, rows=rows)
            if seen_rows == number and not all(
                row.in_progress for row in rows.values()
            ):
                self._pace.arrive()
            new = names - known
            for wait in waits:
                if wait.ticket.object_name in new:
                    self._pace.arrive(wait.begun)
            now = self._clock()
            self._next_poll = now + self._pace.interval(
                now - begun, failed=outage is not None
            )
            self._wake()

    def _wake(self) -> None:
        """Wake the threads that wait for deployments in this poll."""
        for wait in self._waits.values():
            if wait.woken is not None and not wait.woken.is_set():
                observation = self._observe(wait.ticket, may_peek=False)
                if observation is not Observation.WAITING:
                    wait.woken.set()

    def _note(self, outage: retrying.Outage | None) -> None:
        """Log the start and the end of an outage, not each failed poll."""
        before, self.outage = self.outage, outage
        if outage is not None and before is None:
            LOG.warning(
                'Cannot list the signals of stack %(stack)s; retrying: '
                '%(error)s',
                {'stack': self._stack_id, 'error': outage.error},
            )
        elif outage is None and before is not None:
            LOG.info(
                'Listing the signals of stack %(stack)s works again, after '
                '%(seconds)d s',
                {'stack': self._stack_id, 'seconds': before.seconds},
            )
