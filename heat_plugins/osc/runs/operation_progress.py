# SPDX-License-Identifier: Apache-2.0
"""How an operation gets on, for people: one line for each batch."""

from heat_plugins import wording
from heat_plugins.osc import progress
from heat_plugins.osc.runs import operation_columns
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview


class Operation:
    """Shows an operation."""

    def __init__(self, display: progress.Display) -> None:
        self._display = display
        self._phase: operations.Phase | None = None
        self._batch = 0
        self._done = 0
        #: Members and attempts that have failed, and the reasons shown.
        self._failed: set[tuple[int, int]] = set()
        self._reasons: set[str] = set()

    def changed(self, found: operations.Operation) -> None:
        """Show how an operation stands now."""
        done, total = overview.done(found), len(found.attempts)
        control, order = found.control, found.order
        counts = overview.counts(found)
        told = ', '.join(f'{number} {name}' for name, number in counts.items())
        if self._phase is None:
            self._display.say(
                f'Operation {found.id}: {order.action} on '
                f'{wording.counted(total, "target")}, '
                f'at most {order.limits.concurrent(total)} at a time'
            )
        self._name_failures(found)
        if control.phase is not self._phase:
            self._phase = control.phase
            if control.reason:
                self._display.say(f'{control.phase.value}: {control.reason}')
        size = order.limits.concurrent(total)
        if done - self._done >= size or (found.ended and done > self._done):
            self._batch += 1
            self._done = done
            self._display.say(
                f'Batch {self._batch}: {done} of {total} done: {told}'
            )
        self._done = min(self._done, done)
        self._display.show(
            f'{order.action}: {told}', done, total, since=control.began_at
        )

    def _name_failures(self, found: operations.Operation) -> None:
        """Say why targets fail, each reason once; the result counts them."""
        new = {
            (member, found.attempts[member].number)
            for member in found.failures
        } - self._failed
        self._failed |= new
        members = sorted(member for member, _ in new)
        for group in wording.grouped(overview.failures(found, members)):
            # The last line says where all of them are.
            room = wording.LINES - len(self._reasons)
            if group.pattern in self._reasons or room < 1:
                continue
            self._reasons.add(group.pattern)
            rest = f'Further failures: {operation_columns.rest(found)}'
            self._display.say(group.line() if room > 1 else rest)
