# SPDX-License-Identifier: Apache-2.0
"""How the result of a delivered action is received, and settles its row."""

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import histories
from heat_plugins.deployments import outside
from heat_plugins.signals import body

# The most bytes to fetch of a report, of which nothing is used.
_REPORT_LIMIT = 16 * 1024


class Reception:
    """Receives the report and the result of one delivery.

    :ivar signalling: how they come.
    :ivar ticket: what the watcher polls for.
    """

    def __init__(
        self,
        delivery: deliveries.Delivery,
        order: deliveries.Order,
        *,
        history: histories.History,
        engine: outside.Engine,
    ) -> None:
        self.signalling = delivery.signalling
        self.ticket = delivery.ticket
        self._mask = delivery.mask
        self._order = order
        self._history = history
        self._rows = engine.rows
        self._signals = engine.signals
        self._watcher = engine.watcher
        self._limit = engine.settings.body_limit

    def settled(self) -> body.Outcome:
        """Return the outcome that another process has written to the row.

        :raises failures.Error: the deployment was withdrawn.
        """
        row = self._history.row()
        if row is None or row.config.id != self.ticket.config_id:
            raise failures.Error(
                'Another process withdrew the deployment while it waited for '
                f'the signal of {self._order.action}'
            )
        return row.outcome

    def take(self) -> body.Outcome | None:
        """Fetch a signal and settle the row by it.

        :returns: how the action has ended; None if there is no signal.
        :raises errors.ServiceError: it cannot be fetched.
        """
        name = self.ticket.object_name
        if name is None:
            return None
        try:
            content = self._signals.fetch(name, self._limit)
            outcome = body.outcome(
                body.parse(content), self._order.source.outputs, self._mask
            )
        except errors.BadSignal as exc:
            outcome = body.failure(str(exc))
        except errors.NoObject:
            return None
        counts = self._rows.settle({self.ticket: outcome})
        # It may hold secrets, and no engine reads it again.
        self._signals.discard(name)
        if self.ticket.report_name and self._watcher.has_begun(self.ticket):
            self._signals.discard(self.ticket.report_name)
        return outcome if counts else self.settled()

    def from_queue(self) -> body.Outcome:
        """Let Heat settle the row by what lies in a queue; mask that."""
        self._rows.poll_queue(self.ticket.deployment_id)
        outcome = self.settled()
        if outcome.status != deliveries.IN_PROGRESS:
            declared = {each['name'] for each in self._order.source.outputs}
            masked = {
                name: value if name in declared else self._mask.output(value)
                for name, value in outcome.outputs.items()
            }
            if masked != outcome.outputs:
                self._rows.change_outputs(self.ticket.deployment_id, masked)
        return outcome

    def has_report(self) -> bool:
        """Poll for a report past the listing, or the rows, seen last.

        :raises errors.ServiceError: that cannot be told.
        """
        if self.ticket.report_name is None:
            deployment_id = self.ticket.deployment_id
            row = self._signals.rows([deployment_id]).get(deployment_id)
            return row is not None and row.begun
        try:
            self._signals.fetch(self.ticket.report_name, _REPORT_LIMIT)
        except errors.NoObject:
            return False
        except errors.BadSignal:
            # It is too large, and there.
            pass
        return True
