# SPDX-License-Identifier: Apache-2.0
"""Wait until each member that runs an action has answered or is late.

Where an answer comes from is a value of the delivery: an object in the object
store, for which the shared watcher looks; the row itself, which Heat's APIs
settle; or a Zaqar queue, which Heat reads for the row.
"""

from collections import abc
import dataclasses
import time

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import metrics
from heat_plugins import retrying
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import plan_tasks
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher

# A signal may lie in the object store.
_MAY_LIE_THERE = (watcher.Observation.ARRIVED, watcher.Observation.PEEK)


@dataclasses.dataclass(kw_only=True)
class Wait:
    """A member whose server has a config, and has not answered.

    :ivar begun: when its action was first tried to be delivered.
    :ivar delivered: when its server was given what it has now.
    :ivar has_started: whether the server has reported that it runs it.
    """

    task: plan_tasks.Task
    delivery: deliveries.Delivery
    begun: float
    delivered: float
    has_started: bool = False

    @property
    def ticket(self) -> watcher.Ticket:
        """What the watcher polls for."""
        return self.delivery.ticket

    def deadline(self, pace: fleets.RolloutPace) -> float | None:
        """Return when it must have answered; None: as the stack has."""
        return self.begun + pace.timeout if pace.timeout else None

    def report_deadline(self, pace: fleets.RolloutPace) -> float | None:
        """Return when it must have reported the start; None: it need not."""
        if self.has_started or not self.delivery.signalling.brings_reports:
            return None
        limit = pace.delivery_timeout
        return self.delivered + limit if limit else None


#: Called with how a member has ended, once that is stored; None: it has not
#: failed.
Ended = abc.Callable[[plan_tasks.Task, failures.Failure | None], None]


class Waits:
    """Polls for the answers of members, and settles their rows.

    :param work: the action.
    :param polls: what polls for the signals of the stack.
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
        self._work = work
        self._fleet = fleet
        self._watcher = polls
        self._pace = pace
        self._note_end = ended
        self._patience = patience
        self._clock = clock
        self._waits: dict[str, Wait] = {}

    def __len__(self) -> int:
        """Return how many have not answered."""
        return len(self._waits)

    @property
    def started(self) -> int:
        """How many of these have reported that they run it."""
        return sum(wait.has_started for wait in self.each())

    @property
    def are_watched(self) -> bool:
        """Whether the watcher sees the answers of all."""
        return all(wait.delivery.signalling.watched for wait in self.each())

    def each(self) -> list[Wait]:
        """Return those that have not answered."""
        return list(self._waits.values())

    def add(
        self,
        made: abc.Iterable[tuple[plan_tasks.Task, deliveries.Delivery]],
        begun: float,
    ) -> None:
        """Wait for what was delivered.

        :param begun: when that was first tried.
        """
        now = self._clock()
        waits = [
            Wait(task=task, delivery=delivery, begun=begun, delivered=now)
            for task, delivery in made
        ]
        self._waits |= {wait.delivery.deployment_id: wait for wait in waits}
        self._watcher.join(*_tickets(filter(_is_watched, waits)))

    def signed_by(self, signers: abc.Collection[keys.Signer]) -> list[Wait]:
        """Return those whose URLs are signed by one of these."""
        return [
            wait
            for wait in self.each()
            if wait.delivery.signalling.signer in signers
        ]

    def dead_signers(
        self, known: abc.Collection[keys.Signer]
    ) -> set[keys.Signer]:
        """Return what has signed URLs that no longer work.

        :param known: those that need no check.
        """
        signers = {wait.delivery.signalling.signer for wait in self.each()}
        return {
            signer
            for signer in signers.difference(known)
            if signer is not None and not self._fleet.key_holds(signer)
        }

    def leave(self, waits: abc.Iterable[Wait]) -> None:
        """Stop polling for some, and leave to the servers what they have."""
        for wait in waits:
            self._watcher.leave(wait.ticket)
            self._waits.pop(wait.delivery.deployment_id, None)

    def withdraw(self, reasons: abc.Mapping[watcher.Ticket, str]) -> None:
        """Take from servers what they have not ended; it fails.

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
                self._end(ticket, failures.Failure(reason=reason))
        # A result has come meanwhile.
        self._read([each for each in reasons if self._waits_for(each)])

    # Answers

    def collect(self, patience: float) -> None:
        """Take the results that have come.

        :raises errors.ServiceError: what keeps it from that.
        """
        self._read_queues()
        tickets = _tickets(filter(_is_watched, self.each()))
        seen = (
            self._watcher.wait(tickets, min(patience, self._until_late()))
            if tickets
            else {}
        )
        arrived = {
            ticket: observation
            for ticket, observation in seen.items()
            if observation in _MAY_LIE_THERE
        }
        outage = self._take(arrived)
        self._read(set(seen).difference(arrived), rejoins=True)
        self._note_starts()
        if any(ticket.object_name for ticket in _tickets(self.each())):
            # What the object store does is nothing to other transports.
            outage = outage or _error(self._watcher.outage)
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
        self._read([each for each in tickets if self._waits_for(each)])

    def _take(
        self, seen: abc.Mapping[watcher.Ticket, watcher.Observation]
    ) -> errors.ServiceError | None:
        """Fetch signals and settle by them.

        :returns: what kept signals from being fetched.
        """
        if not seen:
            return None
        contents = self._fleet.fetch([str(each.object_name) for each in seen])
        outage, outcomes = None, {}
        for (ticket, observation), content in zip(
            seen.items(), contents, strict=True
        ):
            if isinstance(content, errors.NotFound):
                if observation is watcher.Observation.ARRIVED:
                    self._watcher.absent(ticket)
            elif (failed := _unknown(content)) is not None:
                outage = failed
            else:
                wait = self._waits[ticket.deployment_id]
                outcomes[ticket] = _outcome(wait.delivery, content)
        self._settle(outcomes)
        return outage

    def _settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> None:
        if not outcomes:
            return
        counted = self._fleet.settle(outcomes)
        # They may hold secrets, and no engine reads them again.
        self._fleet.discard(
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
            self._end(ticket, failures.Failure.of(outcomes[ticket]))
        self._read(set(outcomes).difference(counted), rejoins=True)

    def _read_queues(self) -> None:
        """Let Heat settle rows by what lies in their queues."""
        for wait in self.each():
            if not _is_watched(wait):
                self._note(wait.ticket, self._fleet.poll_queue(wait.delivery))

    def _read(
        self,
        tickets: abc.Collection[watcher.Ticket],
        *,
        rejoins: bool = False,
    ) -> None:
        """Read the outcomes that another process has written.

        :param rejoins: whether the watcher may have forgotten those that are
            still in progress.
        """
        if not tickets:
            return
        rows = self._fleet.read({each.deployment_id for each in tickets})
        for ticket in tickets:
            is_waiting = self._note(ticket, rows.get(ticket.deployment_id))
            if is_waiting and rejoins:
                self._watcher.join(ticket)

    def _note(
        self, ticket: watcher.Ticket, row: heat_values.DeploymentRow | None
    ) -> bool:
        """Take the outcome that a row has; say whether it has none yet."""
        if row is None or row.config.id != ticket.config_id:
            self._end(ticket, failures.withdrawn(self._work.action))
        elif not row.in_progress:
            self._end(ticket, failures.Failure.of(row.outcome))
        else:
            return True
        return False

    def _end(
        self, ticket: watcher.Ticket, failure: failures.Failure | None
    ) -> None:
        wait = self._waits.pop(ticket.deployment_id)
        self._watcher.leave(ticket)
        metrics.count(metrics.RESULTS, _result(failure))
        self._note_end(wait.task, failure)

    def _waits_for(self, ticket: watcher.Ticket) -> bool:
        return ticket.deployment_id in self._waits

    # Reports, and times

    def _note_starts(self) -> None:
        self._start(
            [
                wait
                for wait in self.each()
                if not wait.has_started
                and _is_watched(wait)
                and self._watcher.has_begun(wait.ticket)
            ]
        )

    def _start(self, waits: abc.Sequence[Wait]) -> None:
        if waits:
            self._fleet.begin([wait.delivery for wait in waits])
        for wait in waits:
            wait.has_started = True

    def _until_late(self) -> float:
        """Return the seconds until a member may have missed its time."""
        now = self._clock()
        deadlines = [
            deadline
            for wait in self.each()
            for deadline in (
                wait.deadline(self._pace),
                wait.report_deadline(self._pace),
            )
            if deadline is not None
        ]
        earliest = min(deadlines, default=now + self._patience)
        return max(0.0, earliest - now)

    def check_times(self) -> None:
        """Fail members that have not answered in their time.

        :raises errors.ServiceError: they may have.
        """
        now = self._clock()
        late = [
            wait
            for wait in self.each()
            if _is_over(wait.deadline(self._pace), now)
        ]
        silent = [
            wait
            for wait in self.each()
            if _is_over(wait.report_deadline(self._pace), now)
        ]
        if not late and not silent:
            return
        # What has come since the last poll counts.
        self.look_again({w.ticket: w for w in (*late, *silent)}.values())
        self._look_for_reports(self._still(silent))
        reasons = {
            wait.ticket: self._not_signalled(wait)
            for wait in self._still(late)
        }
        for wait in self._still(silent):
            if not wait.has_started:
                reasons.setdefault(wait.ticket, self._not_reported(wait))
        self.withdraw(reasons)

    def _still(self, waits: abc.Iterable[Wait]) -> list[Wait]:
        return [wait for wait in waits if self._waits_for(wait.ticket)]

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
        self._start(
            [
                wait
                for wait, content in zip(polled, contents, strict=True)
                if _is_there(content)
            ]
        )

    def _not_signalled(self, wait: Wait) -> str:
        return failures.not_signalled(
            wait.delivery,
            self._fleet.server_name(wait.task.member),
            self._pace.timeout or 0,
            self._unknown_hook,
            has_begun=wait.has_started,
        )

    def _not_reported(self, wait: Wait) -> str:
        return failures.not_reported(
            self._work,
            self._fleet.server_name(wait.task.member),
            self._pace.delivery_timeout or 0,
            self._unknown_hook,
        )

    @property
    def _unknown_hook(self) -> str | None:
        return self._work.unknown_hook(self._pace.known_hooks)


def _result(failure: failures.Failure | None) -> str:
    """Return how a deployment has ended, as `metrics.RESULTS` has it."""
    if failure is None:
        return 'complete'
    return 'failed' if failure.is_result else 'unanswered'


def _tickets(waits: abc.Iterable[Wait]) -> list[watcher.Ticket]:
    return [wait.ticket for wait in waits]


def _is_watched(wait: Wait) -> bool:
    return wait.delivery.signalling.watched


def _is_over(deadline: float | None, now: float) -> bool:
    return deadline is not None and now >= deadline


def _error(outage: retrying.Outage | None) -> errors.ServiceError | None:
    return None if outage is None else outage.error


def _is_there(content: bytes | errors.ServiceError) -> bool:
    """Say whether there is an object.

    :raises errors.ServiceError: that cannot be told.
    """
    if (failed := _unknown(content)) is not None:
        raise failed
    return not isinstance(content, errors.NotFound)


def _unknown(
    content: bytes | errors.ServiceError,
) -> errors.ServiceError | None:
    """Return what leaves open whether there is an object, if anything does.

    One that is too large is there all the same.
    """
    if not isinstance(content, errors.ServiceError):
        return None
    if isinstance(content, (errors.NotFound, errors.BadContent)):
        return None
    return content


def _outcome(
    delivery: deliveries.Delivery, content: bytes | errors.ServiceError
) -> body.SignalOutcome:
    """Return what a signal, or one that cannot be used, means."""
    if isinstance(content, errors.ServiceError):
        return body.failure(str(content))
    return body.read(content, delivery.draft.outputs, delivery.mask)
