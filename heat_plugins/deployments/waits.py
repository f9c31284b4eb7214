# SPDX-License-Identifier: Apache-2.0
"""Members whose servers have an action, until each has answered or is late."""

from collections import abc
import dataclasses
import time

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import members
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher


@dataclasses.dataclass(kw_only=True)
class Wait:
    """A member whose server has a config, and has not answered."""

    task: members.Task
    delivery: deliveries.Delivery
    ticket: watcher.Ticket
    since: float
    has_begun: bool = False


class Waits:
    """Polls for the signals of members, and settles their rows.

    :param polls: what polls for the signals of the stack.
    :param ended: told how each has ended, once that is stored.
    :param patience: seconds to block at most, unless a member is late earlier.
    """

    def __init__(
        self,
        fleet: fleets.Fleet,
        polls: watcher.Watcher,
        pace: fleets.Pace,
        ended: abc.Callable[[members.Task, body.Outcome], None],
        patience: float,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._fleet = fleet
        self._watcher = polls
        self._pace = pace
        self._tell_end = ended
        self._patience = patience
        self._clock = clock
        self._waits: dict[str, Wait] = {}

    def __len__(self) -> int:
        """Return how many have not answered."""
        return len(self._waits)

    @property
    def started(self) -> int:
        """How many of these have reported that they run it."""
        return sum(wait.has_begun for wait in self.each())

    def each(self) -> list[Wait]:
        """Return those that have not answered."""
        return list(self._waits.values())

    def add(
        self,
        made: abc.Iterable[tuple[members.Task, deliveries.Delivery]],
    ) -> None:
        """Wait for what was delivered."""
        waits = [
            Wait(
                task=task,
                delivery=delivery,
                ticket=delivery.ticket,
                since=self._clock(),
            )
            for task, delivery in made
        ]
        self._waits |= {one.delivery.deployment_id: one for one in waits}
        self._watcher.join(*(one.ticket for one in waits))

    def signed_by(
        self, signers: abc.Collection[keys.Signer | None]
    ) -> list[Wait]:
        """Return those whose URLs are signed by one of these."""
        return [
            one
            for one in self.each()
            if one.delivery.signalling.signer in signers
        ]

    def dead_signers(
        self, known: abc.Collection[keys.Signer]
    ) -> set[keys.Signer]:
        """Return what has signed URLs that no longer work.

        :param known: those that need no check.
        """
        signers = {one.delivery.signalling.signer for one in self.each()}
        return {
            signer
            for signer in signers.difference(known)
            if signer is not None and not self._fleet.key_holds(signer)
        }

    def leave(self, waits: abc.Iterable[Wait]) -> None:
        """Stop polling for some, and leave to the servers what they have."""
        for one in waits:
            self._watcher.leave(one.ticket)
            self._waits.pop(one.delivery.deployment_id, None)

    def withdraw(self, reasons: abc.Mapping[watcher.Ticket, str]) -> None:
        """Take from servers what they have not ended; it fails.

        :raises errors.ServiceError: some could not be withdrawn.
        """
        if not reasons:
            return
        waits = [self._waits[each.deployment_id] for each in reasons]
        # They may have started it.
        self._fleet.request_stop([str(each.object_name) for each in reasons])
        self._fleet.detach(
            {each.deployment_id: why for each, why in reasons.items()}
        )
        self._fleet.push({wait.delivery.server_id for wait in waits})
        for ticket, reason in reasons.items():
            self._ended(ticket, body.failure(reason))

    def collect(self, patience: float) -> None:
        """Take the results that have come."""
        sights = self._watcher.wait(
            [one.ticket for one in self.each()],
            min(patience, self._until_late()),
        )
        arrived = [
            ticket
            for ticket, sight in sights.items()
            if sight in (watcher.Sight.ARRIVED, watcher.Sight.PEEK)
        ]
        ended = {
            ticket
            for ticket, sight in sights.items()
            if sight in (watcher.Sight.SETTLED, watcher.Sight.SUPERSEDED)
        }
        trouble = None
        if arrived:
            uncounted, trouble = self._take(arrived, sights)
            ended |= uncounted
        if ended:
            self._read(ended)
        self._note_starts()
        trouble = trouble or (
            self._watcher.trouble.error if self._watcher.trouble else None
        )
        if trouble is not None:
            raise trouble

    def _take(
        self,
        tickets: abc.Sequence[watcher.Ticket],
        sights: abc.Mapping[watcher.Ticket, watcher.Sight],
    ) -> tuple[set[watcher.Ticket], errors.ServiceError | None]:
        """Fetch signals and settle by them.

        :returns: those that another process has ended, and what kept signals
            from being fetched.
        """
        names = [str(ticket.object_name) for ticket in tickets]
        trouble = None
        outcomes = {}
        for ticket, found in zip(
            tickets, self._fleet.fetch(names), strict=True
        ):
            wait = self._waits[ticket.deployment_id]
            if isinstance(found, errors.NotFound):
                if sights[ticket] is watcher.Sight.ARRIVED:
                    self._watcher.absent(ticket)
            elif isinstance(found, errors.ServiceError) and not isinstance(
                found, errors.BadSignal
            ):
                trouble = found
            else:
                outcomes[ticket] = _outcome(wait, found)
        counted = set(self._fleet.settle(outcomes)) if outcomes else set()
        for ticket in counted:
            self._ended(ticket, outcomes[ticket])
        self._fleet.discard(
            [
                name
                for each in outcomes
                for name in (each.object_name, each.report_name)
                if name and (name in names or self._watcher.has_begun(each))
            ]
        )
        return set(outcomes) - counted, trouble

    def _read(self, tickets: abc.Collection[watcher.Ticket]) -> None:
        """Read the outcomes that another process has written."""
        rows = self._fleet.read({each.deployment_id for each in tickets})
        for ticket in tickets:
            row = rows.get(ticket.deployment_id)
            if row is None or row.config.id != ticket.config_id:
                outcome = body.failure('its deployment was withdrawn')
            elif row.in_progress:
                # The watcher has forgotten it, and its row is not settled.
                self._watcher.join(ticket)
                continue
            else:
                outcome = row.outcome
            self._ended(ticket, outcome)

    def _ended(self, ticket: watcher.Ticket, outcome: body.Outcome) -> None:
        wait = self._waits.pop(ticket.deployment_id)
        self._watcher.leave(ticket)
        self._tell_end(wait.task, outcome)

    def _note_starts(self) -> None:
        begun = [
            wait
            for wait in self.each()
            if not wait.has_begun and self._watcher.has_begun(wait.ticket)
        ]
        if begun:
            self._fleet.begin([wait.ticket for wait in begun])
        for wait in begun:
            wait.has_begun = True

    def _until_late(self) -> float:
        """Return the seconds until a member may have missed its time."""
        now = self._clock()
        until = [
            one.since + limit
            for one in self.each()
            for limit, counts in (
                (self._pace.timeout, True),
                (self._pace.delivery_timeout, not one.has_begun),
            )
            if limit is not None and counts
        ]
        return max(0.0, min(until, default=self._patience + now) - now)

    def check_times(self) -> None:
        """Fail members that have not answered in their time."""
        now = self._clock()
        late = {}
        for wait in self.each():
            age = now - wait.since
            limit, start = self._pace.timeout, self._pace.delivery_timeout
            if limit is not None and age >= limit:
                late[wait.ticket] = (
                    f'it has not signalled {wait.task.action} within '
                    f'{limit:.0f} s (property "timeout")'
                )
            elif start is not None and age >= start and not wait.has_begun:
                late[wait.ticket] = (
                    f'it has not reported within {start:.0f} s (property '
                    '"delivery_timeout") that it has started '
                    f'{wait.task.action}'
                )
        if late:
            # What has come since the last poll counts.
            sights = dict.fromkeys(late, watcher.Sight.PEEK)
            ended, trouble = self._take(list(late), sights)
            if trouble is not None:
                raise trouble
            if ended:
                self._read(ended)
            self.withdraw(
                {
                    ticket: reason
                    for ticket, reason in late.items()
                    if ticket.deployment_id in self._waits
                }
            )


def _outcome(wait: Wait, found: bytes | errors.ServiceError) -> body.Outcome:
    """Return what a signal, or one that cannot be used, means."""
    if isinstance(found, errors.ServiceError):
        return body.failure(str(found))
    delivery = wait.delivery
    return body.read(found, delivery.draft.outputs, delivery.mask)
