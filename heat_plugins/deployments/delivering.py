# SPDX-License-Identifier: Apache-2.0
"""How an action is delivered to a server."""

from collections import abc

from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import histories
from heat_plugins.deployments import outside

LOG = foreign.logger(__name__)


class Deliverer:
    """Delivers the actions of one deployment."""

    def __init__(
        self,
        resource: outside.Resource,
        *,
        template: outside.Template,
        history: histories.History,
        rows: outside.Rows,
    ) -> None:
        self._resource = resource
        self._template = template
        self._history = history
        self._rows = rows

    def deliver(
        self,
        order: deliveries.Order,
        config_id: str,
        before: deliveries.Row | None,
    ) -> deliveries.Delivery:
        """Make the derived config, and give it to the server.

        :param config_id: the id that the config gets.
        :param before: what the server was given before, or None.
        :raises failures.NoAnswer: no transport can be used.
        :raises errors.Unavailable: the same, but one may be usable later.
        """
        signalling = self._template.choose(config_id)
        former = self._history.configs(before)
        # Before anything is made, so that whatever happens now is found and
        # cleaned up when the resource is deleted.
        self._history.note_configs([*former, config_id])
        try:
            delivery = self._write(order, config_id, before, signalling)
        except Exception:
            self._undo(config_id, former)
            raise
        if former:
            self._forget(former, config_id)
        return delivery

    def resume(
        self, order: deliveries.Order, row: deliveries.Row
    ) -> deliveries.Delivery:
        """Return what a server was given by an engine that has died.

        That engine may have died before it told the server.

        :raises failures.NoAnswer: see `deliver`.
        :raises errors.Unavailable: see `deliver`.
        """
        config = row.config
        delivery = deliveries.Delivery(
            deployment_id=row.id,
            server_id=row.server_id,
            config_id=config.id,
            action=order.action,
            draft=config,
            input_values=row.input_values,
            signalling=self._template.choose_again(row),
            reading_project=row.reading_project,
            before=row,
        )
        self._rows.tell([delivery])
        self._note_taken_over(order)
        return delivery

    def _write(
        self,
        order: deliveries.Order,
        config_id: str,
        before: deliveries.Row | None,
        signalling: deliveries.Signalling,
    ) -> deliveries.Delivery:
        if before is None:
            self._resource.keep_id()
        delivery = deliveries.Delivery(
            deployment_id=self._resource.resource_id or '',
            server_id=order.server.id,
            config_id=config_id,
            action=order.action,
            draft=self._template.derive(
                order.action, order.source, signalling
            ),
            input_values=self._template.input_values,
            signalling=signalling,
            reading_project=deliveries.reading_project(
                order.server,
                signalling.transport,
                self._template.users_project,
            ),
            before=before,
        )
        self._rows.deliver([delivery])
        self._note_taken_over(order)
        return delivery

    def _note_taken_over(self, order: deliveries.Order) -> None:
        """Let what this one replaces leave the server alone."""
        if order.action == 'CREATE' and self._resource.replaces is not None:
            self._resource.data_set(histories.TAKEN_OVER_KEY, order.server.id)

    def _undo(self, config_id: str, former: abc.Sequence[str]) -> None:
        """Withdraw a config that was made but perhaps not delivered."""
        try:
            row = self._history.row()
            if row is not None and row.config.id == config_id:
                self._rows.withdraw([row.id])
            for error in self._rows.delete_configs([config_id]).values():
                raise error
            self._history.note_configs(former)
        except Exception as exc:
            # Without the cause: that quotes the values of the statement.
            LOG.error(
                'Cannot deliver %(deployment)s to its server, and cannot '
                'withdraw all of it: %(error)s',
                {
                    'deployment': self._resource.label,
                    'error': type(exc).__name__,
                },
            )

    def _forget(self, former: abc.Sequence[str], config_id: str) -> None:
        """Delete what a server had before it was given a config."""
        try:
            with self._rows.guarded(everything=True):
                remaining = self._history.delete_configs(former)
                self._history.note_configs([*remaining, config_id])
        except outside.Unanswered as exc:
            # All are noted still, and go with the next.
            LOG.warning(
                '%(deployment)s: cannot delete its former configs now; '
                'retrying with the next action: %(error)s',
                {'deployment': self._resource.label, 'error': exc},
            )
