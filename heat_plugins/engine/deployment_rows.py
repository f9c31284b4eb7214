# SPDX-License-Identifier: Apache-2.0
"""Derived configs and deployments, written to Heat's database.

Servers are told by Heat's service, in this process (``in_process``).
"""

from collections import abc
import contextlib
from typing import Any

from heat.common import context as heat_context
from heat.common.i18n import _
from heat.db import api as db_api
from heat.db import models
from heat.objects import software_config as config_objects
from heat.rpc import api as rpc_api
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins.deployments import deliveries
from heat_plugins.deployments import outside
from heat_plugins.engine import heat_types
from heat_plugins.engine import own_heat
from heat_plugins.engine import rows
from heat_plugins.objectstore import sharing
from heat_plugins.signals import body
from heat_plugins.signals import watcher

_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment

_PASSING = (db_exception.DBConnectionError, db_exception.DBDeadlock)

# For all stacks: what arrives while others are settled is settled together.
_settlements: sharing.Batches[watcher.Ticket, body.Outcome]
_settlements = sharing.Batches(
    lambda outcomes: rows.settle(
        # Heat's database asks nobody who they are.
        heat_context.get_admin_context(),
        outcomes,
    ),
    lambda exc: not isinstance(exc, _PASSING),
)


class Rows:
    """Heat's database, as `outside.Rows` has it.

    :param rpc: an `in_process.Client`.
    :param context: with credentials for the project.
    """

    def __init__(self, rpc: Any, context: heat_types.Context) -> None:
        self._rpc = rpc
        self._context = context

    @contextlib.contextmanager
    def guarded(self, *, everything: bool = False) -> abc.Iterator[None]:
        try:
            yield
        except db_exception.DBError as exc:
            if not (everything or isinstance(exc, _PASSING)):
                raise
            # What led to it quotes what was to be written.
            raise outside.Unanswered(str(rows.unavailable(exc))) from None

    def read(self, ids: abc.Collection[str]) -> dict[str, deliveries.Row]:
        found: dict[str, deliveries.Row] = {}
        for some in rows.batches(ids):
            found |= self._read(_Deployment.id.in_(some), *self._visible())
        return found

    def _visible(self) -> list[Any]:
        """Return the conditions for rows that Heat lets the project see."""
        if self._context.is_admin:
            return []
        columns = (_Deployment.tenant, _Deployment.stack_user_project_id)
        project_id = self._context.project_id
        return [sqlalchemy.or_(*(each == project_id for each in columns))]

    def _read(self, *conditions: Any) -> dict[str, deliveries.Row]:
        query = (
            sqlalchemy.select(_Deployment, _Config)
            .join(_Config, _Config.id == _Deployment.config_id)
            .where(*conditions)
        )
        with db_api.context_manager.reader.using(self._context) as session:
            return {
                found.id: row(found, config)
                for found, config in session.execute(query)
            }

    def deliver(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        if any(each.before is None for each in made):
            self._rpc.check_room_for_config(self._context)
        for each in made:
            config_objects.SoftwareConfig.create(
                self._context, self._config(each)
            )
            if each.before is None:
                self._create(each)
            else:
                self._update(each, each.before)

    def _config(self, made: deliveries.Delivery) -> dict[str, Any]:
        draft = made.draft
        return {
            'id': made.config_id,
            'group': draft.group,
            'name': draft.name,
            'config': {
                rpc_api.SOFTWARE_CONFIG_INPUTS: list(draft.inputs),
                rpc_api.SOFTWARE_CONFIG_OUTPUTS: list(draft.outputs),
                rpc_api.SOFTWARE_CONFIG_OPTIONS: dict(draft.options),
                rpc_api.SOFTWARE_CONFIG_CONFIG: draft.config,
            },
            'tenant': self._context.project_id,
        }

    def _create(self, made: deliveries.Delivery) -> None:
        self._rpc.create_software_deployment(
            self._context,
            deployment_id=made.deployment_id,
            server_id=made.server_id,
            stack_user_project_id=made.reading_project,
            **state(made),
        )

    def _update(
        self, made: deliveries.Delivery, before: deliveries.Row
    ) -> None:
        left: dict[str, object] = {}
        # Heat's own update would leave these as they were.
        if before.reading_project != made.reading_project:
            # Heat's own class made it, or another transport was used.
            left['stack_user_project_id'] = made.reading_project
        if before.input_values and not made.input_values:
            left['input_values'] = None
        if left:
            rows.change(self._context, made.deployment_id, **left)
        self._rpc.update_software_deployment(
            self._context,
            deployment_id=made.deployment_id,
            # An empty map would leave those of the former action.
            output_values=dict.fromkeys(body.STANDARD_OUTPUTS),
            **state(made),
        )

    def poll_queue(self, deployment_id: str) -> None:
        self._rpc.show_software_deployment(self._context, deployment_id)

    def change_outputs(
        self, deployment_id: str, outputs: abc.Mapping[str, Any]
    ) -> None:
        rows.change(self._context, deployment_id, output_values=dict(outputs))

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.Outcome]
    ) -> abc.Collection[watcher.Ticket]:
        return _settlements.share(outcomes)

    def begin(
        self, tickets: abc.Collection[watcher.Ticket]
    ) -> abc.Collection[watcher.Ticket]:
        return rows.begin(self._context, tickets)

    def withdraw(self, ids: abc.Collection[str]) -> None:
        for each in ids:
            with self._rpc.ignore_error_by_name('NotFound'):
                self._rpc.delete_software_deployment(self._context, each)

    def delete_configs(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, Exception]:
        remaining = {}
        for each in ids:
            try:
                with self._rpc.ignore_error_by_name('NotFound'):
                    self._rpc.delete_software_config(self._context, each)
            except Exception as exc:
                remaining[each] = exc
        return remaining


def row(found: Any, config: Any) -> deliveries.Row:
    """Return a row of Heat's database, with that of its config."""
    return deliveries.Row(
        id=found.id,
        server_id=found.server_id,
        config=own_heat.config(config),
        action=found.action,
        status=found.status,
        reason=found.status_reason,
        outputs=found.output_values or {},
        input_values=found.input_values or {},
        reading_project=found.stack_user_project_id,
    )


def state(made: deliveries.Delivery) -> dict[str, Any]:
    """Return the state of an action that begins, as Heat's own class does."""
    status, reason = deliveries.COMPLETE, _('Not waiting for outputs signal')
    if made.is_signalled:
        status, reason = deliveries.IN_PROGRESS, _('Deploy data available')
    return {
        'config_id': made.config_id,
        'action': made.action,
        'input_values': made.input_values,
        'status': status,
        'status_reason': reason,
    }
