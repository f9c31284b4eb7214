# SPDX-License-Identifier: Apache-2.0
"""How an operation gets on, for people: one line for each batch."""

from heat_plugins.osc import progress
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet import overview

# Failures that are named one by one; `show` names all.
_NAMED = 20


class Operation:
    """Shows an operation."""

    def __init__(self, display: progress.Display) -> None:
        self._display = display
        self._phase: operations.Phase | None = None
        self._batch = 0
        self._done = 0
        self._told: set[tuple[int, int]] = set()

    def changed(self, found: operations.Operation) -> None:
        """Show how an operation stands now."""
        done, total = overview.done(found), len(found.attempts)
        control, order = found.control, found.order
        counts = overview.counts(found)
        told = ', '.join(f'{number} {name}' for name, number in counts.items())
        if self._phase is None:
            self._display.say(
                f'Operation {found.id}: {order.action} on {total} targets, '
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
        for member in found.failures:
            attempt = found.attempts[member]
            if (member, attempt.number) in self._told:
                continue
            self._told.add((member, attempt.number))
            if len(self._told) > _NAMED:
                continue
            one = found.order.members[member]
            state = (attempt.state or operations.State.FAILED).value
            took = (attempt.ended_at or 0) - (attempt.started_at or 0)
            self._display.say(
                f'{one.stack_name} {one.server_name or one.resource}: {state} '
                f'after {summary.spell(took)}: {attempt.reason}'
            )
