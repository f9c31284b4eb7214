# SPDX-License-Identifier: Apache-2.0
"""Run an action on the members of a group: in batches, to the end of each.

All that must survive the engine is in the rows. Each step may be repeated:
whoever comes after a crash reads the rows, asks `members` what is left to
do, and begins another rollout with that.
"""

from collections import abc
import dataclasses
import time

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import members
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

#: Seconds for which those that wait may still answer once too many of the
#: others have failed. The next update asks for what comes later.
GRACE = 30

#: Seconds between two reports of progress.
REPORT = 5

#: How often one action is delivered anew because of changed keys, at most.
_DELIVERIES = 3


@dataclasses.dataclass(kw_only=True)
class _Wait:
    """A member whose server has a config, and has not answered."""

    task: members.Task
    delivery: deliveries.Delivery
    ticket: watcher.Ticket
    since: float
    has_begun: bool = False

    @classmethod
    def of(
        cls, task: members.Task, delivery: deliveries.Delivery, now: float
    ) -> '_Wait':
        """Return the wait for what was delivered."""
        return cls(
            task=task,
            delivery=delivery,
            ticket=watcher.Ticket(
                deployment_id=delivery.deployment_id,
                config_id=delivery.config_id,
                object_name=delivery.signalling.object_name,
                report_name=delivery.signalling.report_name,
            ),
            since=now,
        )


class Rollout:
    """An action on members; call `step` until it has ended.

    :param polls: what polls for the signals of the stack.
    :param report: told of progress, once in `REPORT` seconds at most.
    """

    def __init__(
        self,
        action: str,
        tasks: abc.Sequence[members.Task],
        fleet: fleets.Fleet,
        polls: watcher.Watcher,
        pace: fleets.Pace,
        report: abc.Callable[[fleets.Progress], None] = lambda progress: None,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._action = action
        self._fleet = fleet
        self._watcher = polls
        self._pace = pace
        self._report = report
        self._clock = clock
        self._all = len(tasks)
        size = pace.batch or max(1, len(tasks))
        self._batches = [
            list(tasks[start : start + size])
            for start in range(0, len(tasks), size)
        ]
        self._waits: dict[str, _Wait] = {}
        # What signed URLs that the object store no longer takes.
        self._dead: set[keys.Signer | None] = set()
        self._next_batch = clock()
        self._next_report = clock() + REPORT
        self._reported: fleets.Progress | None = None
        self._too_many_since: float | None = None
        self.trouble: watcher.Trouble | None = None
        #: Why members failed, by key.
        self.failures: dict[str, str] = {}
        #: What had to be left out, by key.
        self.skipped: dict[str, str] = {}
        self.complete: list[members.Task] = []

    @property
    def may_block(self) -> bool:
        """Whether `step` has something that wakes it."""
        return bool(self._waits) and self.trouble is None

    @property
    def may_answer(self) -> bool:
        """Whether servers have the action and have not answered."""
        return bool(self._waits)

    def step(self, patience: float = 0.0) -> bool:
        """Do what can be done now; say whether all has ended.

        :param patience: seconds for which it may block until there is
            something to do.
        :raises failures.Error: too many members have failed, or nothing
            could be done for longer than the budget.
        """
        try:
            done = self._step(patience)
        except errors.ServiceError as exc:
            self._note(exc)
            return False
        self.trouble = None
        if not done:
            self._report_if_due()
        return done

    def _note(self, exc: errors.ServiceError) -> None:
        if self.trouble is None:
            LOG.warning(
                '%(action)s of a group is interrupted; retrying: %(error)s',
                {'action': self._action, 'error': exc},
            )
        self.trouble = watcher.Trouble.of(exc, self.trouble, self._clock)
        if self.trouble.seconds > self._pace.budget:
            raise failures.Error(
                f'{self._action} could not be delivered, or its signals not '
                f'be polled, in the last {self.trouble.seconds:.0f} s: {exc}'
            ) from exc

    def _step(self, patience: float) -> bool:
        while True:
            if self._waits:
                self._collect(patience)
                self._check_times()
                self._check_keys()
                patience = 0.0
                if not self._waits:
                    self._next_batch = self._clock() + self._pace.pause
            if len(self.failures) > self._pace.allowed:
                self._give_up_if_due()
                return False
            if self._waits:
                return False
            if not self._batches:
                return True
            if self._clock() < self._next_batch:
                return False
            self._begin(self._batches[0])
            self._batches.pop(0)
            self._next_batch = self._clock() + self._pace.pause
            if self._waits:
                return False

    def _begin(self, tasks: abc.Sequence[members.Task]) -> None:
        try:
            self._deliver(tasks)
        except errors.ServiceError as exc:
            if exc.may_pass:
                raise
            raise failures.Error(str(exc)) from exc

    # Delivery

    def _deliver(self, tasks: abc.Sequence[members.Task]) -> None:
        """Give members what they must run; it can be repeated."""
        derived = list(zip(self._fleet.derive(tasks), tasks, strict=True))
        made = [
            (task, each)
            for each, task in derived
            if not isinstance(each, fleets.Refusal)
        ]
        self._fleet.write([each for task, each in made if task.delivers])
        # After a crash what was written may not have been told.
        self._fleet.tell({each.server_id for _, each in made})
        for each, _ in derived:
            if isinstance(each, fleets.Refusal):
                self._refused(each)
        waits = []
        for task, delivery in made:
            if delivery.is_signalled:
                waits.append(_Wait.of(task, delivery, self._clock()))
            else:
                self._completed(task)
        self._waits |= {one.delivery.deployment_id: one for one in waits}
        self._watcher.join(*(one.ticket for one in waits))

    def _refused(self, refusal: fleets.Refusal) -> None:
        key = refusal.task.member.key
        if refusal.fails:
            self.failures[key] = refusal.reason
        else:
            self.skipped[key] = refusal.reason
            self._completed(refusal.task)

    # Results

    def _collect(self, patience: float) -> None:
        """Take the results that have come."""
        sights = self._watcher.wait(
            [one.ticket for one in self._each()],
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

        :returns: those that somebody else has ended, and what kept signals
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
        """See how somebody else has ended what is waited for."""
        rows = self._fleet.read({each.deployment_id for each in tickets})
        for ticket in tickets:
            row = rows.get(ticket.deployment_id)
            if row is None or row.config.id != ticket.config_id:
                outcome = body.failure('its deployment was withdrawn')
            elif row.in_progress:
                # The watcher has forgotten it, and nobody has settled it.
                self._watcher.join(ticket)
                continue
            else:
                outcome = body.Outcome(
                    status=row.status,
                    reason=row.reason or '',
                    outputs=row.outputs,
                )
            self._ended(ticket, outcome)

    def _ended(self, ticket: watcher.Ticket, outcome: body.Outcome) -> None:
        wait = self._waits.pop(ticket.deployment_id)
        self._fleet.leave([ticket])
        if outcome.status == body.COMPLETE:
            self._completed(wait.task)
        else:
            self.failures[wait.task.member.key] = outcome.reason

    def _completed(self, task: members.Task) -> None:
        self.complete.append(task)

    def _note_starts(self) -> None:
        begun = [
            wait
            for wait in self._each()
            if not wait.has_begun and self._watcher.has_begun(wait.ticket)
        ]
        if begun:
            self._fleet.begin([wait.ticket for wait in begun])
        for wait in begun:
            wait.has_begun = True

    # Limits

    def _until_late(self) -> float:
        """Return the seconds until a member may have missed its time."""
        now = self._clock()
        until = [
            one.since + limit
            for one in self._each()
            for limit, counts in (
                (self._pace.timeout, True),
                (self._pace.delivery_timeout, not one.has_begun),
            )
            if limit is not None and counts
        ]
        return max(0.0, min(until, default=REPORT + now) - now)

    def _check_times(self) -> None:
        """Fail members that have not answered in their time."""
        now = self._clock()
        late = {}
        for wait in self._each():
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
                    f'"delivery_timeout") that it has begun '
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
            self._withdraw(
                {
                    ticket: reason
                    for ticket, reason in late.items()
                    if ticket.deployment_id in self._waits
                }
            )

    def _check_keys(self) -> None:
        """Deliver anew what servers cannot answer with their URLs."""
        signers = {one.delivery.signalling.signer for one in self._each()}
        dead = {
            signer
            for signer in signers - self._dead
            if signer is not None and not self._fleet.key_holds(signer)
        }
        if not dead:
            return
        self._dead |= dead
        waits = [
            one
            for one in self._each()
            if one.delivery.signalling.signer in dead
        ]
        repeats = self._fleet.key_changed(self._action, len(waits))
        if repeats and len(self._dead) <= _DELIVERIES:
            self._fleet.leave([one.ticket for one in waits])
            self._deliver(
                [dataclasses.replace(one.task, delivers=True) for one in waits]
            )

    def withdraw(self, reason: str) -> None:
        """Take what has not ended from its servers, such as when cancelled.

        :raises errors.ServiceError: not all could be taken back.
        """
        self._batches.clear()
        self._withdraw({wait.ticket: reason for wait in self._each()})

    def leave(self) -> None:
        """Stop waiting, and leave to the servers what they have."""
        self._fleet.leave([wait.ticket for wait in self._each()])
        self._waits.clear()

    def _withdraw(self, reasons: abc.Mapping[watcher.Ticket, str]) -> None:
        if not reasons:
            return
        waits = [self._waits[each.deployment_id] for each in reasons]
        # They may have begun it.
        self._fleet.request_stop([str(each.object_name) for each in reasons])
        self._fleet.detach(
            {each.deployment_id: why for each, why in reasons.items()}
        )
        self._fleet.tell({wait.delivery.server_id for wait in waits})
        for ticket, reason in reasons.items():
            outcome = body.Outcome(
                status=body.FAILED, reason=reason, outputs={}
            )
            self._ended(ticket, outcome)

    def _give_up_if_due(self) -> None:
        now = self._clock()
        if self._too_many_since is None:
            self._too_many_since = now
        if self._waits and now < self._too_many_since + GRACE:
            return
        told = self._told()
        self.leave()
        raise failures.Error(told)

    def _told(self) -> str:
        return fleets.failure(self.failures, self._all, len(self._waits))

    # fleets.Progress

    def progress(self) -> fleets.Progress:
        """Return how far it is."""
        return fleets.Progress(
            action=self._action,
            all=self._all,
            complete=len(self.complete),
            failed=len(self.failures),
            waiting=len(self._waits),
            started=sum(wait.has_begun for wait in self._each()),
        )

    def _report_if_due(self) -> None:
        if self._clock() < self._next_report:
            return
        self._next_report = self._clock() + REPORT
        progress = self.progress()
        if progress != self._reported:
            self._reported = progress
            self._report(progress)

    def _each(self) -> list[_Wait]:
        return list(self._waits.values())


def _outcome(wait: _Wait, found: bytes | errors.ServiceError) -> body.Outcome:
    """Return what a signal, or one that cannot be used, means."""
    if isinstance(found, errors.ServiceError):
        return body.failure(str(found))
    delivery = wait.delivery
    try:
        return body.outcome(
            body.parse(found), delivery.draft.outputs, delivery.mask
        )
    except errors.BadSignal as exc:
        return body.failure(str(exc))


def remove(
    fleet: fleets.Fleet, group_id: str, rows: abc.Mapping[str, deliveries.Row]
) -> None:
    """Delete members' rows and configs; it can be repeated after a crash.

    The rows go last: without them nobody would know which servers to tell.
    """
    if not rows:
        return
    fleet.detach(dict.fromkeys(rows))
    fleet.tell(
        {members.Member.of(group_id, row).server_id for row in rows.values()}
    )
    fleet.erase(rows.keys())
