# SPDX-License-Identifier: Apache-2.0
"""Derived configs and deployments, written to Heat's database."""

from collections import abc
import contextlib
from typing import Any

from heat.common import context as heat_context
from heat.common.i18n import _
from heat.db import api as db_api
from heat.db import models
from heat.rpc import api as rpc_api
from oslo_db import exception as db_exception
from oslo_utils import timeutils
import sqlalchemy

from heat_plugins.deployments import deliveries
from heat_plugins.deployments import outside
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.objectstore import sharing
from heat_plugins.signals import body
from heat_plugins.signals import watcher

_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment

_PASSING = (db_exception.DBConnectionError, db_exception.DBDeadlock)

# For all stacks: what arrives while others are settled is settled together.
_settlements: sharing.Batches[watcher.Ticket, body.Outcome]
_settlements = sharing.Batches(
    lambda outcomes: rows.settle(
        # Heat's database does not authenticate its callers.
        heat_context.get_admin_context(),
        outcomes,
    ),
    lambda exc: not isinstance(exc, _PASSING),
)

# What is delivered while others are written is written together with others.
_deliveries: sharing.Batches[str, tuple[deliveries.Delivery, str]]
_deliveries = sharing.Batches(
    lambda made: write(made.values()),
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
            # The cause quotes the values of the statement.
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
        self.write(made)
        self.tell(made)

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and deployments, all or none."""
        new = sum(each.before is None for each in made)
        in_process.check_room(self._context, new)
        project_id = self._context.project_id
        _deliveries.share(
            {each.config_id: (each, project_id) for each in made}
        )

    def tell(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Tell servers what they must run."""
        servers: dict[str | None, set[str]] = {}
        for each in made:
            servers.setdefault(each.reading_project, set()).add(each.server_id)
        for reading_project, ids in servers.items():
            server_metadata.tell(self._context, ids, reading_project)

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


def write(
    made: abc.Collection[tuple[deliveries.Delivery, str]],
) -> abc.Collection[str]:
    """Write configs and deployments as one transaction.

    What is written already, by an attempt before, is written over.

    :param made: with the ids of their projects.
    :returns: nothing that anybody waits for.
    """
    now = timeutils.utcnow()
    numbers = {each.deployment_id for each, _ in made}
    # Heat's database checks no permissions.
    context = heat_context.get_admin_context()
    with db_api.context_manager.writer.using(context) as session:
        there = {
            number
            for some in rows.batches(numbers)
            for number in session.execute(
                sqlalchemy.select(_Deployment.id).where(
                    _Deployment.id.in_(some)
                )
            ).scalars()
        }
        session.execute(
            sqlalchemy.insert(_Config),
            [
                {'created_at': now, 'tenant': project_id} | _config(each)
                for each, project_id in made
            ],
        )
        values = [
            {'id': each.deployment_id, 'tenant': project_id} | _values(each)
            for each, project_id in made
        ]
        new = [
            {'created_at': now} | each
            for each in values
            if each['id'] not in there
        ]
        if new:
            session.execute(sqlalchemy.insert(_Deployment), new)
        for each in values:
            if each['id'] in there:
                session.execute(
                    sqlalchemy.update(_Deployment)
                    .where(_Deployment.id == each['id'])
                    .values(updated_at=now, **each)
                )
    return ()


def _config(made: deliveries.Delivery) -> dict[str, Any]:
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
    }


def _values(made: deliveries.Delivery) -> dict[str, Any]:
    """Return the state of an action that begins, as Heat's own class does."""
    status, reason = deliveries.COMPLETE, _('Not waiting for outputs signal')
    if made.is_signalled:
        status, reason = deliveries.IN_PROGRESS, _('Deploy data available')
    return {
        'config_id': made.config_id,
        'server_id': made.server_id,
        'action': made.action,
        'input_values': made.input_values or {},
        'output_values': dict.fromkeys(body.STANDARD_OUTPUTS),
        'status': status,
        'status_reason': reason,
        'stack_user_project_id': made.reading_project,
    }


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
