# SPDX-License-Identifier: Apache-2.0
"""Wait until each member that runs an action has answered or is late.

How an answer comes is a value of the delivery, `deliveries.AnswersBy`: an
object in the object store, for which the shared watcher polls; the row itself,
which a signal settles; or a queue, which the transport reads.
"""

from collections import abc
import dataclasses
import math
import time

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import metrics
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher

# A signal may lie in the object store.
_MAY_LIE_THERE = (watcher.Observation.ARRIVED, watcher.Observation.PEEK)


@dataclasses.dataclass(kw_only=True)
class Wait:
    """A member with a delivered config and no answer yet.

    :ivar begun: when its action was first tried to be delivered.
    :ivar delivered: when its server was given what it has now.
    :ivar has_started: whether the server has reported that it runs it.
    """

    task: fleets.Task
    delivery: deliveries.Delivery
    begun: float
    delivered: float
    has_started: bool = False

    @property
    def ticket(self) -> watcher.Ticket:
        """The ticket that the watcher polls for."""
        return self.delivery.ticket

    def deadline(self, pace: fleets.RolloutPace) -> float:
        """Return when it must have answered; infinite: as the stack has."""
        return self.begun + (pace.timeout or math.inf)

    def report_deadline(self, pace: fleets.RolloutPace) -> float:
        """Return when it must have reported the start, where it can.

        Heat itself takes whatever lies in a Zaqar queue for the result.
        """
        signalling = self.delivery.signalling
        reports = signalling.takes_reports or signalling.report_name
        if self.has_started or not reports:
            return math.inf
        return self.delivered + (pace.delivery_timeout or math.inf)


#: Called with how a member has ended, once that is stored; None: it has not
#: failed.
Ended = abc.Callable[[fleets.Task, deliveries.Failure | None], None]


class Waits:
    """Polls for the answers of servers, and settles their rows.

    :param polls: what polls for the signals of the stack.
    """

    def __init__(
        self,
        answers: fleets.Answers,
        polls: watcher.Watcher,
        ended: Ended,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._answers = answers
        self._watcher = polls
        self._note_end = ended
        self._clock = clock
        self._waits: dict[str, Wait] = {}

    def __len__(self) -> int:
        """Return how many have not answered."""
        return len(self._waits)

    def each(self) -> list[Wait]:
        """Return those that have not answered."""
        return list(self._waits.values())

    def add(
        self,
        made: abc.Iterable[tuple[fleets.Task, deliveries.Delivery]],
        begun: float,
    ) -> None:
        """Wait for the signals of these deliveries.

        :param begun: when that was first tried.
        """
        now = self._clock()
        waits = [
            Wait(task=task, delivery=delivery, begun=begun, delivered=now)
            for task, delivery in made
        ]
        self._waits |= {wait.delivery.deployment_id: wait for wait in waits}
        self._watcher.join(*_tickets(filter(_is_watched, waits)))

    def leave(self, waits: abc.Iterable[Wait]) -> None:
        """Stop polling for some members; their servers keep the configs."""
        for wait in waits:
            self._watcher.leave(wait.ticket)
            self._waits.pop(wait.delivery.deployment_id, None)

    # Answers

    def collect(self, patience: float) -> None:
        """Take the results that have come.

        :raises errors.ServiceError: what keeps it from that.
        """
        tickets = _tickets(filter(_is_watched, self.each()))
        seen = self._watcher.wait(tickets, patience) if tickets else {}
        arrived = {
            ticket: observation
            for ticket, observation in seen.items()
            if observation in _MAY_LIE_THERE
        }
        outage = self._take(arrived)
        self._read(set(seen).difference(arrived), rejoins=True)
        self._start(
            [
                wait
                for wait in self.each()
                if not wait.has_started
                and _is_watched(wait)
                and self._watcher.has_begun(wait.ticket)
            ]
        )
        of_store = self._watcher.outage
        if of_store is not None and any(
            # What the object store does is nothing to other transports.
            ticket.object_name
            for ticket in _tickets(self.each())
        ):
            outage = outage or of_store.error
        if outage is not None:
            raise outage

    def look_again(self, waits: abc.Collection[Wait]) -> None:
        """Take results that have come since the last poll.

        :raises errors.ServiceError: there may be some.
        """
        tickets = _tickets(waits)
        outage = self._take(
            {
                ticket: watcher.Observation.PEEK
                for ticket in tickets
                if ticket.object_name is not None
            }
        )
        if outage is not None:
            raise outage
        self._read(tickets)

    def _take(
        self, seen: abc.Mapping[watcher.Ticket, watcher.Observation]
    ) -> errors.ServiceError | None:
        """Fetch signals and settle by them.

        :returns: what kept signals from being fetched.
        """
        if not seen:
            return None
        contents = self._answers.fetch(
            [str(each.object_name) for each in seen]
        )
        outage, outcomes = None, {}
        for (ticket, observation), content in zip(
            seen.items(), contents, strict=True
        ):
            if isinstance(content, errors.NotFound):
                if observation is watcher.Observation.ARRIVED:
                    self._watcher.absent(ticket)
            elif (failed := _unknown(content)) is not None:
                outage = failed
            elif isinstance(content, errors.ServiceError):
                outcomes[ticket] = body.failure(str(content))
            else:
                delivery = self._waits[ticket.deployment_id].delivery
                outcomes[ticket] = body.read(
                    content,
                    delivery.draft.outputs,
                    delivery.mask,
                    secrets=delivery.secrets,
                )
        self._settle(outcomes)
        return outage

    def _settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> None:
        """Store how actions have ended by their signals, and discard those."""
        if not outcomes:
            return
        counted = self._answers.settle(outcomes)
        # They may hold secrets, and no engine reads them again.
        self._answers.discard(
            [
                name
                for each in outcomes
                for name in (
                    each.object_name,
                    self._watcher.has_begun(each) and each.report_name,
                )
                if name
            ]
        )
        for ticket in counted:
            self._end(ticket, deliveries.Failure.of(outcomes[ticket]))
        self._read(set(outcomes).difference(counted), rejoins=True)

    def _read(
        self,
        tickets: abc.Iterable[watcher.Ticket],
        *,
        rejoins: bool = False,
    ) -> None:
        """Read the outcomes that another process has written.

        :param rejoins: whether the watcher may have forgotten those that are
            still in progress.
        """
        waited = [
            each for each in tickets if each.deployment_id in self._waits
        ]
        if not waited:
            return
        rows = self._answers.read({each.deployment_id for each in waited})
        for ticket in waited:
            row = rows.get(ticket.deployment_id)
            if self._note(ticket, row) and rejoins:
                self._watcher.join(ticket)

    def _note(
        self, ticket: watcher.Ticket, row: heat_values.DeploymentRow | None
    ) -> bool:
        """Take the outcome that a row has; say whether it has none yet."""
        wait = self._waits[ticket.deployment_id]
        if row is None or row.config.id != ticket.config_id:
            reason = (
                'Another process withdrew the deployment while it waited for '
                f'the signal of {wait.delivery.action}'
            )
            self._end(ticket, deliveries.Failure(reason=reason))
        elif not row.in_progress:
            self._end(ticket, deliveries.Failure.of(row.outcome))
        else:
            return True
        return False

    def _end(
        self, ticket: watcher.Ticket, failure: deliveries.Failure | None
    ) -> None:
        """End a wait, and count and note its result."""
        wait = self._waits.pop(ticket.deployment_id)
        self._watcher.leave(ticket)
        result = 'complete'
        if failure is not None:
            result = 'failed' if failure.is_result else 'unanswered'
        metrics.count(metrics.RESULTS, result)
        self._note_end(wait.task, failure)

    # Reports

    def _start(self, waits: abc.Sequence[Wait]) -> None:
        """Note that servers have started on an action."""
        if waits:
            self._answers.begin([wait.delivery for wait in waits])
        for wait in waits:
            wait.has_started = True


class TimedWaits(Waits):
    """Waits of the members of one action, which have their time for that.

    :param work: the action.
    :param patience: seconds to block at most, unless a member is late earlier.
    """

    def __init__(
        self,
        work: deliveries.Work,
        fleet: fleets.Fleet,
        polls: watcher.Watcher,
        pace: fleets.RolloutPace,
        ended: Ended,
        patience: float,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(fleet, polls, ended, clock)
        self._work = work
        self._fleet = fleet
        self._pace = pace
        self._patience = patience

    def signed_by(self, signers: abc.Collection[keys.Signer]) -> list[Wait]:
        """Return the waits with URLs that one of these signers made."""
        return [
            wait
            for wait in self.each()
            if wait.delivery.signalling.signer in signers
        ]

    def withdraw(self, reasons: abc.Mapping[watcher.Ticket, str]) -> None:
        """Withdraw pending actions from their servers; they fail.

        :raises errors.ServiceError: some could not be withdrawn.
        """
        if not reasons:
            return
        # They may have started it.
        self._fleet.request_stop(
            [each.object_name for each in reasons if each.object_name]
        )
        withdrawn = self._fleet.withdraw(
            [
                fleets.Withdrawal(
                    deployment_id=each.deployment_id,
                    server_id=self._waits[
                        each.deployment_id
                    ].task.member.server_id,
                    config_id=each.config_id,
                    reason=reason,
                )
                for each, reason in reasons.items()
            ]
        )
        for ticket, reason in reasons.items():
            if ticket.deployment_id in withdrawn:
                self._end(ticket, deliveries.Failure(reason=reason))
        # A result has come meanwhile.
        self._read(reasons)

    def collect(self, patience: float) -> None:
        for wait in self.each():
            if not _is_watched(wait):
                # What lies in its queue settles its row.
                self._note(wait.ticket, self._fleet.poll_queue(wait.delivery))
        until_late = [
            late(self._pace) - self._clock()
            for wait in self.each()
            for late in (wait.deadline, wait.report_deadline)
        ]
        super().collect(max(0.0, min(patience, self._patience, *until_late)))

    # Times

    def check_times(self) -> None:
        """Fail members that have not answered in their time.

        :raises errors.ServiceError: they may have.
        """
        now = self._clock()
        late = [w for w in self.each() if now >= w.deadline(self._pace)]
        silent = [
            wait
            for wait in self.each()
            if now >= wait.report_deadline(self._pace)
        ]
        if not late and not silent:
            return
        # What has come since the last poll counts.
        self.look_again({w.ticket: w for w in (*late, *silent)}.values())
        self._look_for_reports(self._still(silent))
        unknown_hook = self._work.unknown_hook(self._pace.known_hooks)
        reasons = {
            wait.ticket: deliveries.not_signalled(
                wait.delivery,
                self._fleet.server_name(wait.task.member),
                self._pace.timeout or 0,
                unknown_hook,
                has_begun=wait.has_started,
            )
            for wait in self._still(late)
        }
        for wait in self._still(silent):
            if not wait.has_started:
                reasons.setdefault(
                    wait.ticket,
                    deliveries.not_reported(
                        self._work,
                        self._fleet.server_name(wait.task.member),
                        self._pace.delivery_timeout or 0,
                        unknown_hook,
                    ),
                )
        self.withdraw(reasons)

    def _still(self, waits: abc.Iterable[Wait]) -> list[Wait]:
        """Return those of the waits that have not ended."""
        return [w for w in waits if w.delivery.deployment_id in self._waits]

    def _look_for_reports(self, waits: abc.Sequence[Wait]) -> None:
        """Note which servers have reported past the last listing.

        :raises errors.ServiceError: that cannot be told.
        """
        polled = [wait for wait in waits if wait.ticket.report_name]
        others = [wait for wait in waits if not wait.ticket.report_name]
        rows = self._fleet.read({wait.ticket.deployment_id for wait in others})
        for wait in others:
            row = rows.get(wait.ticket.deployment_id)
            wait.has_started = row is not None and row.has_started
        if not polled:
            return
        contents = self._fleet.fetch(
            [str(wait.ticket.report_name) for wait in polled]
        )
        for content in contents:
            if (failed := _unknown(content)) is not None:
                raise failed
        self._start(
            [
                wait
                for wait, content in zip(polled, contents, strict=True)
                if not isinstance(content, errors.NotFound)
            ]
        )


def _tickets(waits: abc.Iterable[Wait]) -> list[watcher.Ticket]:
    """Return by what signals of some waits are known."""
    return [wait.ticket for wait in waits]


def _is_watched(wait: Wait) -> bool:
    """Say whether the object store is watched for an answer."""
    return not wait.delivery.is_queued


def _unknown(
    content: bytes | errors.ServiceError,
) -> errors.ServiceError | None:
    """Return the error that hides whether an object exists, if any.

    One that is too large is there all the same.
    """
    known = (bytes, errors.NotFound, errors.BadContent)
    return None if isinstance(content, known) else content
