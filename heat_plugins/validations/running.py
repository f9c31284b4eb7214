# SPDX-License-Identifier: Apache-2.0
"""Run validations, several at once, until all have ended."""

import collections
from collections import abc
import contextlib
import dataclasses
import time

from heat_plugins import errors
from heat_plugins.validations import judging
from heat_plugins.validations import playbooks
from heat_plugins.validations import validation_ledger as ledgers

# Seconds between two polls of the processes, and of who may stop them.
_INTERVAL = 2.0

#: Is told how a run stands, whenever that has changed.
Tell = abc.Callable[[ledgers.ValidationRun], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """What playbooks run on: this machine, or a test's.

    :ivar check: says no where they cannot be run.
    :ivar begin: begins the one of a path; an OSError says why it cannot.
    """

    check: abc.Callable[[], None] = playbooks.check
    begin: abc.Callable[
        [playbooks.ValidationOrder, str], playbooks.Playbook
    ] = playbooks.Playbook
    monotonic: abc.Callable[[], float] = time.monotonic
    sleep: abc.Callable[[float], None] = time.sleep


class Runner:
    """Runs the validations of one run; used once.

    :param run: it has been written into the ledger.
    :param abandoned: says whether the caller no longer waits; it is called
        every few seconds, and may take its time.
    :param conclude: records what follows from a run, before its own record
        says how it ended.
    """

    def __init__(
        self,
        ledger: ledgers.Ledger,
        machine: Machine,
        run: ledgers.ValidationRun,
        order: playbooks.ValidationOrder,
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
            judging.Account(validation, order.secrets)
            for validation in order.validations
        ]
        self._waiting = collections.deque(
            zip(order.validations, self._accounts, strict=True)
        )
        self._active: dict[judging.Account, playbooks.Playbook] = {}
        # Those that have ended, and whose details are on no record yet.
        self._unwritten: list[judging.Account] = []
        self._stopping = False
        self._begun_at = machine.monotonic()

    def run(self) -> ledgers.ValidationRun:
        """Run them to the end, and return how that was.

        Whatever happens, none of their processes is left.
        """
        try:
            while self._waiting or self._active:
                self._begin()
                # They go on while the object store cannot be reached.
                with contextlib.suppress(errors.Unavailable):
                    self._write_details()
                    self._ledger.write(self._snapshot())
                self._tell(self._snapshot())
                self._machine.sleep(_INTERVAL)
                self._follow()
                self._look()
        except BaseException:
            # No caller waits for them now: after an interrupt, or because
            # the object store denies access.
            self._stop()
            for account, playbook in self._active.items():
                self._end(account, playbook)
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
            try:
                playbook = self._machine.begin(self._order, validation.path)
            except OSError as exc:
                account.change(
                    state=ledgers.ValidationState.FAILED,
                    reason=f'It cannot start: {exc.strerror}',
                )
                continue
            account.begun(self._machine.monotonic())
            self._active[account] = playbook

    def _follow(self) -> None:
        for account, playbook in [*self._active.items()]:
            ended = playbook.ended()
            account.take(playbook.news())
            account.lasts(self._machine.monotonic())
            if ended:
                del self._active[account]
                self._end(account, playbook)
            elif playbook.overflown:
                playbook.stop()

    def _end(
        self, account: judging.Account, playbook: playbooks.Playbook
    ) -> None:
        status = playbook.status()
        if playbook.overflown:
            status = 'overflow'
        elif not status and self._stopping:
            status = 'stopped'
        elif not status:
            account.say(playbook.complaint())
        account.ended(status, playbook.close())
        self._unwritten.append(account)

    def _write_details(self) -> None:
        while self._unwritten:
            account = self._unwritten[0]
            self._ledger.write_detail(
                self._run.id, account.outcome.validation, account.detail
            )
            del self._unwritten[0]

    def _look(self) -> None:
        """Stop them if that was asked for, or if the caller has gone."""
        with contextlib.suppress(errors.Unavailable):
            asked = self._ledger.is_to_stop(self._run.id)
            if not self._stopping and (asked or self._abandoned()):
                self._stop()

    def _stop(self) -> None:
        self._stopping = True
        for playbook in self._active.values():
            playbook.stop()
        for _, account in self._waiting:
            account.change(
                state=ledgers.ValidationState.STOPPED,
                reason='It did not start',
            )
        self._waiting.clear()

    def _snapshot(self) -> ledgers.ValidationRun:
        return dataclasses.replace(
            self._run,
            seconds=round(self._machine.monotonic() - self._begun_at, 1),
            outcomes=tuple(account.outcome for account in self._accounts),
        )

    def _judged(self) -> ledgers.ValidationRun:
        return ledgers.judged(self._snapshot(), stopped=self._stopping)
