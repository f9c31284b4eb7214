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

# Seconds between two polls of the processes, and of requests to stop.
_INTERVAL = 2.0

#: Receives a run whenever it has changed.
Tell = abc.Callable[[ledgers.ValidationRun], None]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine that runs playbooks: this one, or a test's.

    :ivar check: raises `errors.Refused` where none can run.
    :ivar begin: starts the playbook of a path, or raises an OSError.
    """

    check: abc.Callable[[], None] = playbooks.check
    begin: abc.Callable[
        [playbooks.ValidationOrder, str], playbooks.Playbook
    ] = playbooks.Playbook
    monotonic: abc.Callable[[], float] = time.monotonic
    sleep: abc.Callable[[float], None] = time.sleep


class Runner:
    """Runs the validations of one run; used once.

    :param run: its record is in the ledger.
    :param abandoned: returns whether the caller no longer waits; it is called
        every few seconds, and may take its time.
    :param conclude: records the consequences of a run before the run's own
        record says how it ended.
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
        # Validations that have ended, and whose details are not written yet.
        self._unwritten: list[judging.Account] = []
        self._stopping = False
        self._begun_at = machine.monotonic()

    def run(self) -> ledgers.ValidationRun:
        """Run the validations to their end; return the run.

        Whatever happens, none of their processes is left.
        """
        try:
            while self._waiting or self._active:
                self._begin()
                # They continue while the object store cannot be reached.
                with contextlib.suppress(errors.Unavailable):
                    self._write_details()
                    self._ledger.write(self._snapshot())
                self._tell(self._snapshot())
                self._machine.sleep(_INTERVAL)
                self._follow()
                with contextlib.suppress(errors.Unavailable):
                    asked = self._ledger.is_to_stop(self._run.id)
                    if not self._stopping and (asked or self._abandoned()):
                        self._stop()
        except BaseException:
            # No caller waits for them now: after an interrupt, or because
            # the object store denies access.
            self._stop()
            for account, playbook in self._active.items():
                self._end(account, playbook)
            with contextlib.suppress(Exception):
                run = ledgers.judged(self._snapshot(), stopped=True)
                self._ledger.write(run)
            raise
        self._write_details()
        run = ledgers.judged(self._snapshot(), stopped=self._stopping)
        self._conclude(run)
        self._ledger.write(run)
        self._tell(run)
        return run

    def _begin(self) -> None:
        """Start as many waiting playbooks as the order permits."""
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
        """Read the events of running playbooks; judge those that ended."""
        for account, playbook in [*self._active.items()]:
            ended = playbook.ended()
            account.take(playbook.news(), self._machine.monotonic())
            if ended:
                del self._active[account]
                self._end(account, playbook)

    def _end(
        self, account: judging.Account, playbook: playbooks.Playbook
    ) -> None:
        """Note how a playbook has ended."""
        status = playbook.status()
        if not status and self._stopping:
            status = 'stopped'
        elif not status:
            account.say(playbook.complaint())
        account.ended(status, playbook.close())
        self._unwritten.append(account)

    def _write_details(self) -> None:
        """Write the results of ended validations."""
        while self._unwritten:
            account = self._unwritten[0]
            self._ledger.write_detail(
                self._run.id, account.outcome.validation, account.detail
            )
            del self._unwritten[0]

    def _stop(self) -> None:
        """Stop the playbooks, and start no other."""
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
        """Return how far the validations are."""
        return dataclasses.replace(
            self._run,
            seconds=round(self._machine.monotonic() - self._begun_at, 1),
            outcomes=tuple(account.outcome for account in self._accounts),
        )
