# SPDX-License-Identifier: Apache-2.0
"""Run an action on the members of a group: in batches, to the end of each.

All that must survive the engine is in the rows. Each step may be repeated:
after a crash, another engine reads the rows, asks `members` what is left to
do, and begins another rollout with that.
"""

from collections import abc
import dataclasses
import time

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins import wording
from heat_plugins.configs import hooks
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import members
from heat_plugins.deployments import waits
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

#: Seconds for which those that wait may still answer once too many of the
#: others have failed. The next update asks for what comes later.
GRACE = 30

#: Seconds between two reports of progress.
REPORT = 5

#: The most times that changed keys have one action delivered again.
_DELIVERIES = 3


class Rollout:
    """An action on members; call `step` until it has ended.

    :param polls: what polls for the signals of the stack.
    :param report: told of progress, once in `REPORT` seconds at most.
    :param current: how many members of the group are up to date without it.
    """

    def __init__(
        self,
        work: deliveries.Work,
        tasks: abc.Sequence[members.Task],
        fleet: fleets.Fleet,
        polls: watcher.Watcher,
        pace: fleets.Pace,
        report: abc.Callable[[fleets.Progress], None] = (
            lambda progress: None
        ),
        clock: abc.Callable[[], float] = time.monotonic,
        current: int = 0,
    ) -> None:
        self._work = work
        self._action = work.action
        self._fleet = fleet
        self._watcher = polls
        self._pace = pace
        self._report = report
        self._clock = clock
        self._current = current
        self._all = len(tasks) + current
        size = pace.batch or max(1, len(tasks))
        self._batches = [
            list(tasks[start : start + size])
            for start in range(0, len(tasks), size)
        ]
        self._waits = waits.Waits(
            fleet, polls, pace, self._ended, REPORT, clock
        )
        # What signed URLs that the object store no longer takes.
        self._dead: set[keys.Signer] = set()
        self._has_warned = False
        self._next_batch = clock()
        self._next_report = clock() + REPORT
        self._reported: fleets.Progress | None = None
        self._too_many_since: float | None = None
        self.trouble: retrying.Trouble | None = None
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
                'Cannot continue %(action)s of a group; retrying: %(error)s',
                {'action': self._action, 'error': exc},
            )
        self.trouble = retrying.Trouble.of(exc, self.trouble, self._clock)
        if self.trouble.seconds > self._pace.budget:
            raise failures.Error(
                f'heat-engine could not deliver {self._action} or poll its '
                f'signals for {self.trouble.seconds:.0f} s: {exc}'
            ) from exc

    def _step(self, patience: float) -> bool:
        while True:
            if self._waits:
                self._waits.collect(patience)
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
            if not isinstance(each, members.Refusal)
        ]
        to_write = [(task, each) for task, each in made if task.delivers]
        # What they still run of an action before is of no use.
        _stop(self._fleet, (task.before for task, _ in to_write))
        self._fleet.write([each for _, each in to_write])
        # After a crash what was written may not have been told.
        self._fleet.push({each.server_id for _, each in made})
        for each, _ in derived:
            if isinstance(each, members.Refusal):
                self._refused(each)
        self._waits.add(one for one in made if one[1].is_signalled)
        for task, each in made:
            if not each.is_signalled:
                self.complete.append(task)
        if self._waits:
            self._warn()

    def _refused(self, refusal: members.Refusal) -> None:
        key = refusal.task.member.key
        if refusal.fails:
            self.failures[key] = refusal.reason
        else:
            self.skipped[key] = refusal.reason
            self.complete.append(refusal.task)

    def _warn(self) -> None:
        """Tell once that servers may lack the hook that runs it."""
        known = self._pace.known_hooks
        tool = self._work.unknown_hook(known)
        if tool is None or self._has_warned:
            return
        self._has_warned = True
        self._fleet.tell(
            self._action,
            kinds.reason(kinds.Kind.UNKNOWN_HOOK, hooks.warning(tool, known)),
        )

    def _ended(self, task: members.Task, outcome: body.Outcome) -> None:
        if outcome.status == body.COMPLETE:
            self.complete.append(task)
        else:
            self.failures[task.member.key] = outcome.reason

    # Limits

    def _check_keys(self) -> None:
        """Deliver again what servers cannot answer with their URLs."""
        dead = self._waits.dead_signers(self._dead)
        if not dead:
            return
        self._dead |= dead
        waits = self._waits.signed_by(dead)
        repeats = self._work.is_repeatable and len(self._dead) <= _DELIVERIES
        self._fleet.tell(
            self._action,
            failures.key_changed(
                self._work,
                wording.counted(len(waits), 'server'),
                repeats=repeats,
            ),
        )
        if repeats:
            self._waits.leave(waits)
            self._deliver(
                [dataclasses.replace(one.task, delivers=True) for one in waits]
            )

    def withdraw(self, reason: str) -> None:
        """Take what has not ended from its servers, such as when cancelled.

        :raises errors.ServiceError: some could not be withdrawn.
        """
        self._batches.clear()
        self._waits.withdraw(
            {wait.ticket: reason for wait in self._waits.each()}
        )

    def leave(self) -> None:
        """Stop waiting, and leave to the servers what they have."""
        self._waits.leave(self._waits.each())

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

    # Progress

    def progress(self) -> fleets.Progress:
        """Return how far it is."""
        return fleets.Progress(
            action=self._action,
            all=self._all,
            complete=len(self.complete) + self._current,
            failed=len(self.failures),
            waiting=len(self._waits),
            started=self._waits.started,
        )

    def _report_if_due(self) -> None:
        if self._clock() < self._next_report:
            return
        self._next_report = self._clock() + REPORT
        progress = self.progress()
        if progress != self._reported:
            self._reported = progress
            self._report(progress)


def remove(
    fleet: fleets.Fleet,
    group_id: str,
    rows: abc.Mapping[str, deliveries.Row],
) -> None:
    """Delete members' rows and configs; it can be repeated after a crash.

    The rows go last: they say which servers to tell.
    """
    if rows:
        take_back(fleet, group_id, rows)
        fleet.erase(rows.keys())


def take_back(
    fleet: fleets.Fleet,
    group_id: str,
    rows: abc.Mapping[str, deliveries.Row],
    reason: str | None = None,
) -> None:
    """Take from servers what members were given.

    :param reason: why they fail; None if their rows go.
    """
    _stop(fleet, rows.values())
    fleet.detach(dict.fromkeys(rows, reason))
    fleet.push(
        {members.Member.of(group_id, row).server_id for row in rows.values()}
    )


def _stop(
    fleet: fleets.Fleet,
    rows: abc.Iterable[deliveries.Row | None],
) -> None:
    """Tell servers to stop what they have not ended, if they can."""
    names = [
        signal_names.signal(row.id, row.config.id)
        for row in rows
        if row is not None and row.in_progress
    ]
    if names:
        fleet.request_stop(names)
