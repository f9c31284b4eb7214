# SPDX-License-Identifier: Apache-2.0
"""Run an action on one server or many: in batches, to the end of each.

All that must survive the engine is in the rows. Each step may be repeated:
after a crash, another engine reads the rows, asks `fleets` what is left
to do, and begins another rollout with that.
"""

from collections import abc
import dataclasses
import time

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import retrying
from heat_plugins import wording
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import waits
from heat_plugins.objectstore import keys
from heat_plugins.signals import live
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

#: Seconds for which those that wait may still answer once too many of the
#: others have failed. The next update asks for what comes later.
GRACE = 30

#: Seconds between two reports of progress.
REPORT = 5

#: The most times that changed keys have one action delivered again.
_DELIVERIES = 3

# Seconds between two checks whether servers of a DELETE still exist, and of
# how many at a time: Nova is asked for each.
_SERVERS, _ASKED = 30, 20


@dataclasses.dataclass(kw_only=True)
class _Batch:
    """Members that must be given an action, and do not wait for it yet.

    :ivar begun: when that was first tried.
    :ivar is_known: whether the tasks hold the rows as they are now; False
        after an attempt without an answer, which may have written them.
    :ivar lost_ids: of the configs that servers have, and whose result they
        cannot send.
    :ivar config_ids: of the configs that servers may have been given by
        attempts of which the database or the servers did not answer.
    """

    tasks: abc.Sequence[fleets.Task]
    begun: float
    is_known: bool = True
    lost_ids: set[str] = dataclasses.field(default_factory=set)
    config_ids: set[str] = dataclasses.field(default_factory=set)


class Rollout:
    """An action on members; call `step` until it has ended.

    :param polls: what polls for the signals of the stack.
    :param summary: sums up why members have failed.
    :param report: told of progress, once in `REPORT` seconds at most.
    :param current: how many members of the group are up to date without it.
    """

    def __init__(
        self,
        work: deliveries.Work,
        tasks: abc.Sequence[fleets.Task],
        fleet: fleets.Fleet,
        polls: watcher.Watcher,
        pace: fleets.RolloutPace,
        summary: deliveries.Summary = deliveries.of_one,
        report: abc.Callable[[fleets.Progress], None] = lambda progress: None,
        clock: abc.Callable[[], float] = lambda: time.monotonic(),
        current: int = 0,
    ) -> None:
        self.action = work.action
        self._work = work
        self._fleet = fleet
        self._watcher = polls
        self._pace = pace
        self._sum_up = summary
        self._report = report
        self._clock = clock
        self._current = current
        self._all = len(tasks) + current
        size = pace.batch or max(1, len(tasks))
        self._batches = [
            tasks[start : start + size] for start in range(0, len(tasks), size)
        ]
        self._undelivered: _Batch | None = None
        self._waits = waits.TimedWaits(
            work, fleet, polls, pace, self._ended, REPORT, clock
        )
        # What signed URLs that the object store no longer takes.
        self._dead: set[keys.Signer] = set()
        # The servers that have gone while they ran DELETE.
        self._gone: set[str] = set()
        self._has_warned = False
        self._next_batch = clock()
        self._next_report = clock() + REPORT
        self._next_server_check = clock() + _SERVERS
        # Among those that wait, the first to ask for.
        self._next_server = 0
        self._reported: fleets.Progress | None = None
        self._too_many_since: float | None = None
        #: Since when the object store or the database blocks it, if so.
        self.outage: retrying.Outage | None = None
        #: Why members failed, by key.
        self.failures: dict[str, deliveries.Failure] = {}
        #: Why members were left out, by key.
        self.skipped: dict[str, str] = {}
        self.complete: list[fleets.Task] = []

    @property
    def may_block(self) -> bool:
        """Whether `step` has something that wakes it."""
        # Nothing tells of an answer in a queue.
        is_queued = any(w.delivery.is_queued for w in self._waits.each())
        return self.may_answer and not self.outage and not is_queued

    @property
    def may_answer(self) -> bool:
        """Whether servers have the action and have not answered."""
        return bool(self._waits)

    @property
    def servers(self) -> str:
        """Which servers have not answered, for people."""
        tasks = [*self._all_undelivered, *(w.task for w in self._waits.each())]
        if len(tasks) == 1:
            return f'server {self._fleet.server_name(tasks[0].member)}'
        return wording.counted(len(tasks), 'server')

    def step(self, patience: float = 0.0) -> bool:
        """Advance the rollout; return whether all members have ended.

        :param patience: seconds for which it may block until there is
            something to do.
        :raises deliveries.ActionFailed: too many members have failed, or
            nothing could be done for longer than the budget.
        """
        try:
            done = self._step(patience)
        except errors.ServiceError as exc:
            self._note(exc)
            return False
        self.outage = None
        if not done:
            now, progress = self._clock(), self.progress()
            if now >= self._next_report:
                self._next_report = now + REPORT
                if progress != self._reported:
                    self._reported = progress
                    self._report(progress)
        return done

    def _step(self, patience: float) -> bool:
        """Do what can be done now; say whether the action continues."""
        while True:
            if self._undelivered is not None:
                self._deliver(self._undelivered)
                self._next_batch = self._clock() + self._pace.pause
                patience = 0.0
            elif self._waits:
                try:
                    self._waits.collect(patience)
                finally:
                    # A server that has gone answers no more, whatever the
                    # store does.
                    self._check_servers()
                self._waits.check_times()
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
            self._undelivered = _Batch(
                tasks=self._batches.pop(0), begun=self._clock()
            )

    def _note(self, exc: errors.ServiceError) -> None:
        """Record an outage; fail once it exceeds the limit."""
        of_all = self._watcher.outage
        # The watcher logs its own, once for all that wait.
        if self.outage is None and (of_all is None or of_all.error != exc):
            LOG.warning(
                '%(resource)s: cannot continue %(action)s; retrying: '
                '%(error)s',
                {
                    'resource': self._fleet.label,
                    'action': self.action,
                    'error': exc,
                },
            )
        self.outage = retrying.Outage.of(exc, self.outage, self._clock)
        if self.outage.seconds > self._pace.budget:
            # The next update waits for what servers have of them.
            self._batches.clear()
            kind = (
                deliveries.ActionFailed
                if self.may_answer
                else deliveries.NoAnswer
            )
            raise kind(
                f'heat-engine could not deliver {self.action} or poll its '
                f'signal for {int(self.outage.seconds)} s: {exc}'
            ) from exc
        batch, limit = self._undelivered, self._pace.timeout
        if self._all > 1 or batch is None or limit is None:
            return
        if self._clock() >= batch.begun + limit:
            raise deliveries.NoAnswer(
                f'heat-engine could not deliver {self.action} to '
                f'{self.servers} within {limit:.0f} s (property "timeout"): '
                f'{exc}'
            ) from exc

    # Delivery

    def _deliver(self, batch: _Batch) -> None:
        """Deliver a batch to its members; safe to repeat."""
        try:
            self._try_to_deliver(batch)
        except errors.ServiceError as exc:
            # Something may have been written all the same.
            batch.is_known = False
            if exc.may_pass:
                raise
            raise deliveries.ActionFailed(str(exc)) from exc

    def _try_to_deliver(self, batch: _Batch) -> None:
        """Give a batch's servers their configs, and wait for the answers."""
        tasks = self._as_stored(batch)
        derived = list(zip(self._fleet.derive(tasks), tasks, strict=True))
        made = [
            (task, each)
            for each, task in derived
            if isinstance(each, deliveries.Delivery)
        ]
        new = [each for task, each in made if task.delivers]
        # Servers stop the scripts that this delivery replaces.
        stop(
            self._fleet,
            (
                task.before
                for task, _ in made
                if task.delivers
                and task.before is not None
                and task.before.config.id not in batch.lost_ids
            ),
        )
        batch.config_ids |= {each.config_id for each in new}
        if new:
            self._fleet.write(new)
        # A dead engine may have written rows without telling the servers.
        self._fleet.push([each for _, each in made])
        for each, task in derived:
            if isinstance(each, fleets.Refusal):
                row = task.before
                if row is not None and row.config.id in batch.lost_ids:
                    # Its server can neither answer what it has, nor repeat it.
                    withdraw_rows(self._fleet, [row], each.reason)
                if each.fails:
                    self.failures[task.member.key] = deliveries.Failure(
                        reason=each.reason
                    )
                else:
                    self._skip(task, each.reason)
        self._undelivered = None
        self._await(made, batch.begun)

    def _as_stored(self, batch: _Batch) -> abc.Sequence[fleets.Task]:
        """Return the tasks of a batch with the rows as they are now.

        What a former attempt has written is only told again.
        """
        if batch.is_known:
            return batch.tasks
        rows = self._fleet.read({task.member.id for task in batch.tasks})
        tasks = []
        for task in batch.tasks:
            row = rows.get(task.member.id)
            is_written = row is not None and row.config.id in batch.config_ids
            tasks.append(
                dataclasses.replace(
                    task,
                    before=row,
                    delivers=row is None or (task.delivers and not is_written),
                )
            )
        return tasks

    def _await(
        self,
        made: abc.Sequence[tuple[fleets.Task, deliveries.Delivery]],
        begun: float,
    ) -> None:
        """Wait for the answers of servers that were given something.

        The stack is warned once if they may lack the hook that runs it.
        """
        signalled = [each for each in made if each[1].is_signalled]
        self.complete += [task for task, each in made if not each.is_signalled]
        if not signalled:
            return
        self._waits.add(signalled, begun)
        first = signalled[0][1]
        LOG.info(
            '%(resource)s waits for a signal of %(action)s from %(servers)s '
            'by %(transport)s',
            {
                'resource': self._fleet.label,
                'action': self.action,
                'servers': f'server {first.server_id}'
                if len(signalled) == 1
                else wording.counted(len(signalled), 'server'),
                'transport': first.signalling.transport,
            },
        )
        known = self._pace.known_hooks
        tool = self._work.unknown_hook(known)
        if tool is not None and not self._has_warned:
            self._has_warned = True
            text = actions.hook_warning(tool, known)
            kind = heat_values.EventKind.UNKNOWN_HOOK
            self._fleet.tell(self.action, heat_values.event_reason(kind, text))

    def _skip(self, task: fleets.Task, reason: str) -> None:
        """Count a member as done without its server, and keep the reason."""
        self.skipped[task.member.key] = reason
        self.complete.append(task)

    def _ended(
        self, task: fleets.Task, failure: deliveries.Failure | None
    ) -> None:
        """Note how the action has ended on a server."""
        if failure is None:
            self.complete.append(task)
        elif task.member.server_id in self._gone:
            self._skip(task, failure.reason)
        else:
            self.failures[task.member.key] = failure

    # Limits

    def _check_servers(self) -> None:
        """Go on without the servers of a DELETE that no longer exist."""
        now = self._clock()
        if self.action != fleets.DELETE or now < self._next_server_check:
            return
        self._next_server_check = now + _SERVERS
        waiting = self._waits.each()
        servers = sorted({wait.task.member.server_id for wait in waiting})
        start = self._next_server % max(1, len(servers))
        self._next_server = start + _ASKED
        asked = servers[start : start + _ASKED]
        self._gone |= set(self._fleet.gone(asked))
        self._waits.withdraw(
            {
                wait.ticket: deliveries.server_gone(wait.task.member.server_id)
                for wait in waiting
                if wait.task.member.server_id in self._gone
            }
        )

    def _check_keys(self) -> None:
        """Deliver actions again after the store refuses their signed URLs."""
        used = {w.delivery.signalling.signer for w in self._waits.each()}
        dead = {
            signer
            for signer in used - self._dead
            if signer is not None and not self._fleet.key_holds(signer)
        }
        if not dead:
            return
        # One that has answered already must not run it again.
        self._waits.look_again(self._waits.signed_by(dead))
        self._dead |= dead
        lost = self._waits.signed_by(dead)
        if not lost:
            return
        repeats = self._work.is_repeatable and len(self._dead) <= _DELIVERIES
        names = wording.counted(len(lost), 'server')
        if self._all == 1:
            names = f'server {lost[0].delivery.server_id}'
        then = (
            'heat-engine delivers the action again, with new URLs'
            if repeats
            else 'Set the former key as X-Account-Meta-Temp-URL-Key-2, or '
            'cancel the action and repeat it'
        )
        self._fleet.tell(
            self.action,
            f"The account's TempURL key was changed; {names} can no longer "
            f'send the result of {self.action}. {then}',
        )
        if repeats:
            self._undelivered = _Batch(
                tasks=[
                    dataclasses.replace(wait.task, delivers=True)
                    for wait in lost
                ],
                begun=min(wait.begun for wait in lost),
                is_known=False,
                lost_ids={wait.delivery.config_id for wait in lost},
            )
            self._waits.leave(lost)
            self._deliver(self._undelivered)

    @property
    def _all_undelivered(self) -> list[fleets.Task]:
        """The members whose servers have not been given anything yet."""
        batch = self._undelivered
        return [
            *(batch.tasks if batch else ()),
            *(task for tasks in self._batches for task in tasks),
        ]

    def withdraw(self, reason: str) -> None:
        """Withdraw pending actions from their servers, such as on a cancel.

        :raises errors.ServiceError: some could not be withdrawn.
        """
        tasks = self._all_undelivered
        config_ids = {
            task.before.config.id for task in tasks if task.before is not None
        }
        if self._undelivered is not None:
            config_ids |= self._undelivered.config_ids
            config_ids |= self._undelivered.lost_ids
        self._batches, self._undelivered = [], None
        self._waits.withdraw(
            {wait.ticket: reason for wait in self._waits.each()}
        )
        # What a dead engine has delivered, or an attempt of this one of which
        # it has not heard.
        if config_ids:
            rows = self._fleet.read({task.member.id for task in tasks})
            ours = [
                row
                for row in rows.values()
                if row.in_progress and row.config.id in config_ids
            ]
            withdraw_rows(self._fleet, ours, reason)

    def leave(self) -> None:
        """Stop waiting, and leave the servers their configs."""
        self._waits.leave(self._waits.each())

    def _give_up_if_due(self) -> None:
        """Fail when too many members have, after a grace for the others."""
        now = self._clock()
        if self._too_many_since is None:
            self._too_many_since = now
        if self._waits and now < self._too_many_since + GRACE:
            return
        reason = self._sum_up(self.failures, self._all, len(self._waits))
        self.leave()
        self._batches.clear()
        raise deliveries.ActionFailed(reason)

    # Progress

    def progress(self) -> fleets.Progress:
        """Return how far it is."""
        return fleets.Progress(
            action=self.action,
            all=self._all,
            complete=len(self.complete) + self._current,
            failed=len(self.failures),
            waiting=len(self._waits),
            started=sum(wait.has_started for wait in self._waits.each()),
        )


def remove(
    fleet: fleets.Fleet, rows: abc.Mapping[str, heat_values.DeploymentRow]
) -> None:
    """Delete members' rows and configs; it can be repeated after a crash.

    The rows go last: they say which servers to tell.
    """
    if rows:
        withdraw_rows(fleet, rows.values())
        fleet.erase(rows.keys())


def withdraw_rows(
    fleet: fleets.Fleet,
    rows: abc.Collection[heat_values.DeploymentRow],
    reason: str | None = None,
) -> None:
    """Withdraw the configs of these rows from their servers.

    :param reason: why they fail; None if their rows go.
    """
    if rows:
        stop(fleet, rows)
        fleet.withdraw([fleets.Withdrawal.of_row(row, reason) for row in rows])


def stop(
    fleet: fleets.Fleet, rows: abc.Iterable[heat_values.DeploymentRow]
) -> None:
    """Ask servers that can stop to stop their pending actions."""
    names = [
        signal_names.signal(row.id, row.config.id)
        for row in rows
        if row.in_progress and live.CONTROL_INPUT in row.inputs
    ]
    if names:
        fleet.request_stop(names)
