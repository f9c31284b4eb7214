# SPDX-License-Identifier: Apache-2.0
"""Run validations, several at once, until all have ended."""

import collections
from collections import abc
import contextlib
import dataclasses
import time
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins.validations import catalogue
from heat_plugins.validations import judging
from heat_plugins.validations import playbook_folder
from heat_plugins.validations import processes
from heat_plugins.validations import validation_ledger as ledgers
from heat_plugins.validations import validation_runs

# Seconds between two looks at the processes, and at who may stop them.
_INTERVAL = 0.3
_LOOK = 2.0

# Seconds without an answer of the object store or of the caller, after which
# a run stops: it is soon lost, and may be repeated elsewhere.
_ALONE = 60.0

#: The most playbooks that run at once.
MOST_AT_ONCE = 16

#: Is told how a run stands, whenever that has changed.
Tell = abc.Callable[[validation_runs.Run], None]


class Process(Protocol):
    """A playbook that runs; see `processes.Playbook`."""

    def ended(self) -> bool:
        """Say whether it is over; ends what does not end by itself."""

    def news(self) -> list[abc.Mapping[str, Any]]:
        """Return what was reported since the last call."""

    def stop(self) -> None:
        """Begin to end it, and all that it has started."""

    def close(self) -> int:
        """End it at once; return how many of its processes are left."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """What playbooks run on: this machine, or a test's.

    :ivar check: says no where they cannot be run.
    :ivar begin: begins one; an OSError says why it cannot.
    """

    check: abc.Callable[[], None] = processes.check
    begin: abc.Callable[
        [playbook_folder.Setting, playbook_folder.PlaybookJob], Process
    ] = processes.Playbook
    monotonic: abc.Callable[[], float] = time.monotonic
    sleep: abc.Callable[[float], None] = time.sleep


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOrder:
    """The validations to run, and how.

    :ivar at_once: the most playbooks at once.
    :ivar timeout: the most seconds that each may take.
    """

    validations: tuple[catalogue.Validation, ...]
    setting: playbook_folder.Setting
    at_once: int = 4
    timeout: int = 1800
    secrets: tuple[str, ...] = dataclasses.field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.at_once <= MOST_AT_ONCE:
            raise errors.Invalid(
                'The number of validations at a time must be 1 to '
                f'{MOST_AT_ONCE}, not {self.at_once}'
            )
        if self.timeout < 1:
            raise errors.Invalid(
                'The time limit of a validation must be at least 1 second, '
                f'not {self.timeout}'
            )


@dataclasses.dataclass(kw_only=True)
class _Active:
    account: judging.Account
    playbook: Process
    since: float


class Runner:
    """Runs the validations of one run; used once.

    :param run: it has been written into the ledger.
    :param abandoned: says whether the caller no longer waits; it is called
        every few seconds, and may take its time.
    :param conclude: records what follows from a run, before its own record
        says how it ended: if the process dies in between, another repeats the
        run, and records the same.
    """

    def __init__(
        self,
        ledger: ledgers.Ledger,
        machine: Machine,
        run: validation_runs.Run,
        order: ValidationOrder,
        *,
        tell: Tell,
        abandoned: abc.Callable[[], bool],
        conclude: Tell,
    ) -> None:
        self._ledger = ledger
        self._machine = machine
        self._run = run
        self._order = order
        self._tell = tell
        self._abandoned = abandoned
        self._conclude = conclude
        self._accounts = [
            judging.Account(validation) for validation in order.validations
        ]
        self._waiting = collections.deque(
            zip(order.validations, self._accounts, strict=True)
        )
        self._active: list[_Active] = []
        # Those that have ended, and whose details are on no record yet.
        self._unwritten: collections.deque[judging.Account] = (
            collections.deque()
        )
        self._stopping = False
        self._begun_at = self._now()
        self._looked_at = self._begun_at
        self._written_at = self._begun_at
        # When the object store or the caller has answered last.
        self._heard_at = self._begun_at

    def run(self) -> validation_runs.Run:
        """Run them to the end, and return how that was.

        Whatever happens, none of their processes is left.
        """
        try:
            while self._waiting or self._active:
                self._begin()
                self._machine.sleep(_INTERVAL)
                self._follow()
                # The others go on without an object store.
                with contextlib.suppress(errors.Unavailable):
                    self._write_details()
                self._look()
                self._note(self._snapshot())
        except BaseException:
            # No caller waits for them now: after an interrupt, or because
            # the object store denies access.
            self._end_all()
            self._stopping = True
            with contextlib.suppress(Exception):
                self._ledger.write(self._judged())
            raise
        self._write_details()
        run = self._judged()
        self._conclude(run)
        self._ledger.write(run)
        self._tell(run)
        return run

    def _begin(self) -> None:
        while self._waiting and len(self._active) < self._order.at_once:
            validation, account = self._waiting.popleft()
            if self._stopping:
                account.stopped()
                continue
            job = playbook_folder.PlaybookJob(
                playbook=validation.path,
                timeout=self._order.timeout,
                secrets=self._order.secrets,
            )
            try:
                playbook = self._machine.begin(self._order.setting, job)
            except OSError as exc:
                account.refused(f'It cannot start: {exc.strerror}')
                continue
            account.begun()
            self._active.append(
                _Active(account=account, playbook=playbook, since=self._now())
            )

    def _follow(self) -> None:
        for active in list(self._active):
            ended = active.playbook.ended()
            active.account.take(active.playbook.news())
            active.account.lasts(self._now() - active.since)
            if ended:
                self._active.remove(active)
                self._close(active)

    def _close(self, active: _Active) -> None:
        left = active.playbook.close()
        active.account.ended(left)
        self._unwritten.append(active.account)

    def _write_details(self) -> None:
        while self._unwritten:
            account = self._unwritten[0]
            self._ledger.write_detail(
                self._run.id, account.outcome.validation, account.detail
            )
            self._unwritten.popleft()

    def _look(self) -> None:
        now = self._now()
        if self._stopping or now - self._looked_at < _LOOK:
            return
        self._looked_at = now
        # They go on even while one of the two cannot be reached.
        answers = [
            self._asked(lambda: self._ledger.is_to_stop(self._run.id)),
            self._asked(self._abandoned),
        ]
        is_alone = self._now() - self._heard_at > _ALONE
        self._stopping = is_alone or any(answers)
        if self._stopping:
            for active in self._active:
                active.playbook.stop()

    def _asked(self, ask: abc.Callable[[], bool]) -> bool:
        now = self._now()
        with contextlib.suppress(errors.Unavailable):
            answer = ask()
            self._heard_at = now
            return answer
        return False

    def _note(self, run: validation_runs.Run) -> None:
        now = self._now()
        changed = run.outcomes != self._run.outcomes
        states = [outcome.state for outcome in run.outcomes]
        news = states != [outcome.state for outcome in self._run.outcomes]
        age = now - self._written_at
        # As it counts seconds, it changes all the time: no lease expires.
        if news or (changed and age > _LOOK):
            self._written_at = now
            with contextlib.suppress(errors.Unavailable):
                self._ledger.write(run)
        if changed:
            self._tell(run)
        self._run = run

    def _end_all(self) -> None:
        for active in self._active:
            active.playbook.stop()
        for active in self._active:
            active.account.take(active.playbook.news())
            active.account.ended(active.playbook.close())
        self._active.clear()
        for _, account in self._waiting:
            account.stopped()

    def _snapshot(self) -> validation_runs.Run:
        return dataclasses.replace(
            self._run,
            seconds=round(self._now() - self._begun_at, 1),
            outcomes=tuple(account.outcome for account in self._accounts),
        )

    def _now(self) -> float:
        return self._machine.monotonic()

    def _judged(self) -> validation_runs.Run:
        return validation_runs.judged(self._snapshot(), stopped=self._stopping)
