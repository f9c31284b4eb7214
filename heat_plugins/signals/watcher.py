# SPDX-License-Identifier: Apache-2.0
"""One shared look for all the deployments that wait.

Heat asks each waiting resource once a second whether it is done. Here all
that wait for one root stack share what one of them has seen: the first to
ask after the interval has passed looks, with one listing of the container
and one read of the deployments' rows, and the others answer from memory.
There is no thread: where nobody waits, nothing happens.
"""

from collections import abc
import dataclasses
import enum
import threading
import time
from typing import Protocol

from heat_plugins import foreign
from heat_plugins.objectstore import errors

LOG = foreign.logger(__name__)

# The interval is that part of the time for which nothing has arrived. So it
# does not grow at first: Heat asks once a second, and anything above the
# first second would be two.
_PATIENCE = 30

#: Looks past the listing in a second, for all that wait for one root stack.
#: They began together, so all would come at once.
PEEKS = 10


class Sight(enum.Enum):
    """What is to be seen of a deployment."""

    WAITING = 'nothing yet'
    ARRIVED = 'its signal lies in the object store'
    PEEK = 'nothing, but it is time for a look past the listing'
    SETTLED = 'its row is no longer in progress'
    SUPERSEDED = 'its row belongs to another action, or is gone; or it left'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ticket:
    """Who waits for what.

    :ivar object_name: where the signal will lie; None where it comes
        another way, and only the row can tell.
    :ivar report_name: where a report that the server has begun would lie.
    """

    deployment_id: str
    config_id: str
    object_name: str | None
    report_name: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """What matters of a deployment's row.

    :ivar begun: whether its server has reported that it has begun.
    """

    config_id: str
    in_progress: bool
    begun: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pace:
    """How often to look, in seconds.

    :ivar interval: between two looks, at first and after each arrival.
    :ivar interval_max: to which that grows while nothing arrives.
    :ivar direct: before the first look past the listing; doubles each time.
    :ivar rows: between two reads of the rows of deployments whose signals
        lie in the object store; those seldom end another way. 0: with each
        look.
    """

    interval: float
    interval_max: float
    direct: float
    rows: float = 0.0

    def after(self, quiet: float) -> float:
        """Return how long to wait when nothing has arrived for so long."""
        grown = min(quiet / _PATIENCE, self.interval_max)
        return max(self.interval, grown)


class Source(Protocol):
    """Where to look."""

    def names(self, wanted: abc.Collection[str]) -> abc.Collection[str]:
        """List the signals that lie in the object store.

        :param wanted: the names that matter.
        :raises errors.SignalError: that was not possible.
        """

    def rows(self, ids: abc.Collection[str]) -> abc.Mapping[str, Row]:
        """Read the rows of deployments; those that are gone are left out."""


@dataclasses.dataclass(kw_only=True)
class _Wait:
    since: int
    next_peek: float
    peek_after: float
    believe_from: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Look:
    """What one look saw; `number` tells whether it began late enough."""

    number: int
    names: abc.Collection[str]
    rows: abc.Mapping[str, Row]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trouble:
    """The object store has not answered for some time."""

    since: float
    error: errors.SignalError
    clock: abc.Callable[[], float] = dataclasses.field(
        default=time.monotonic, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        error: errors.SignalError,
        before: 'Trouble | None',
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> 'Trouble':
        """Return the trouble that an error begins, or goes on with."""
        since = before.since if before else clock()
        return cls(since=since, error=error, clock=clock)

    @property
    def seconds(self) -> float:
        """For how long it has lasted."""
        return self.clock() - self.since


class Watcher:
    """Looks for the signals of the deployments of one root stack."""

    def __init__(
        self,
        source: Source,
        pace: Pace,
        clock: abc.Callable[[], float] = time.monotonic,
        *,
        stack_id: str = '',
    ) -> None:
        """Begin with nobody who waits.

        :param stack_id: of the root stack, for the log.
        """
        self._stack_id = stack_id
        self._source = source
        self._pace = pace
        self._clock = clock
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._waits: dict[Ticket, _Wait] = {}
        self._count = 0
        self._seen = _Look(number=0, names=frozenset(), rows={})
        self._quiet_since = 0.0
        self._next_look = 0.0
        self._next_rows = 0.0
        # The looks past the listing in the present second, and its end.
        self._peeks = 0
        self._peeks_until = 0.0
        #: Since when the listing fails; None if it does not.
        self.trouble: Trouble | None = None

    def __len__(self) -> int:
        return len(self._waits)

    def join(self, ticket: Ticket) -> None:
        """Begin to look for a signal.

        Whoever waited for another action of the deployment does so no more.
        """
        with self._lock:
            self._forget(ticket.deployment_id)
            if not self._waits:
                # Nobody has looked meanwhile, so nobody knows how long the
                # object store has been out of order.
                self.trouble = None
            # A look that has begun before now may have read the row of the
            # action before this one.
            self._waits[ticket] = _Wait(
                since=self._count,
                next_peek=self._clock() + self._pace.direct,
                peek_after=self._pace.direct,
            )
            self._hasten()

    def leave(self, ticket: Ticket) -> None:
        """Stop looking for a signal."""
        with self._lock:
            self._waits.pop(ticket, None)

    def look(self, ticket: Ticket) -> Sight:
        """Say what is to be seen; looks anew only if it is time to.

        :param ticket: one that has joined. If its deployment was forgotten
            since, or has joined for another action, it is superseded.
        """
        if ticket not in self._waits:
            return Sight.SUPERSEDED
        self._look_if_due()
        with self._lock:
            wait = self._waits.get(ticket)
            if wait is None:
                return Sight.SUPERSEDED
            if self._seen.number > wait.since:
                row = self._seen.rows.get(ticket.deployment_id)
                if row is None or row.config_id != ticket.config_id:
                    return Sight.SUPERSEDED
                if not row.in_progress:
                    return Sight.SETTLED
            if ticket.object_name is None:
                return Sight.WAITING
            now = self._clock()
            if (
                ticket.object_name in self._seen.names
                and now >= wait.believe_from
            ):
                return Sight.ARRIVED
            if now < wait.next_peek or not self._may_peek(now):
                return Sight.WAITING
            wait.peek_after *= 2
            wait.next_peek = now + wait.peek_after
            return Sight.PEEK

    def _may_peek(self, now: float) -> bool:
        """Say whether another look past the listing is due this second."""
        if now >= self._peeks_until:
            self._peeks_until = now + 1
            self._peeks = 0
        self._peeks += 1
        return self._peeks <= PEEKS

    def has_begun(self, ticket: Ticket) -> bool:
        """Say whether the last look has seen a report of the server."""
        seen = self._seen
        if ticket.report_name is not None:
            return ticket.report_name in seen.names
        row = seen.rows.get(ticket.deployment_id)
        return (
            row is not None and row.begun and row.config_id == ticket.config_id
        )

    def absent(self, ticket: Ticket) -> None:
        """Take note that a signal which the listing shows is not there.

        Some listings go on showing what has expired. It is believed again
        when the time comes to look past the listing.
        """
        with self._lock:
            wait = self._waits.get(ticket)
            if wait is not None:
                wait.peek_after *= 2
                wait.believe_from = self._clock() + wait.peek_after
                wait.next_peek = wait.believe_from

    def forget(self, deployment_id: str) -> None:
        """Stop looking for all signals of a deployment."""
        with self._lock:
            self._forget(deployment_id)

    def _forget(self, deployment_id: str) -> None:
        for ticket in list(self._waits):
            if ticket.deployment_id == deployment_id:
                del self._waits[ticket]

    def _hasten(self) -> None:
        self._quiet_since = self._clock()
        self._next_look = min(
            self._next_look, self._clock() + self._pace.interval
        )

    def _look_if_due(self) -> None:
        if self._clock() < self._next_look:
            return
        if not self._looking.acquire(blocking=False):
            return
        try:
            self._look()
        finally:
            self._looking.release()

    def _look(self) -> None:
        with self._lock:
            if self._clock() < self._next_look:
                return
            self._count += 1
            number = self._count
            tickets = list(self._waits)
        wanted = {
            name
            for each in tickets
            for name in (each.object_name, each.report_name)
            if name
        }
        # What has arrived is still there if the listing fails.
        names = wanted & set(self._seen.names)
        rows = self._seen.rows
        seen_rows = self._seen.number
        arrived = settled = False
        trouble = None
        try:
            if self._wants_rows(tickets):
                rows = self._source.rows({t.deployment_id for t in tickets})
                seen_rows = number
                settled = not all(row.in_progress for row in rows.values())
                self._next_rows = self._clock() + self._pace.rows
            if wanted:
                listed = wanted & set(self._source.names(wanted))
                arrived = bool(listed - names)
                names = listed
        except errors.SignalError as exc:
            trouble = Trouble.of(exc, self.trouble, self._clock)
        with self._lock:
            self._note(trouble)
            self._seen = _Look(number=seen_rows, names=names, rows=rows)
            now = self._clock()
            if settled or arrived:
                self._quiet_since = now
            quiet = now - self._quiet_since
            self._next_look = now + self._pace.after(quiet)

    def _note(self, trouble: Trouble | None) -> None:
        """Log that trouble begins, or is over; not each look that fails."""
        before, self.trouble = self.trouble, trouble
        if trouble is not None and before is None:
            LOG.warning(
                'Signals of stack %(stack)s cannot be looked for, which is '
                'tried again: %(error)s',
                {'stack': self._stack_id, 'error': trouble.error},
            )
        elif trouble is None and before is not None:
            LOG.info(
                'Signals of stack %(stack)s can be looked for again, after '
                '%(seconds)d s',
                {'stack': self._stack_id, 'seconds': before.seconds},
            )

    def _wants_rows(self, tickets: abc.Iterable[Ticket]) -> bool:
        """Say whether this look is to read the rows, too."""
        return self._clock() >= self._next_rows or any(
            # Nothing else tells of these.
            each.object_name is None
            for each in tickets
        )
