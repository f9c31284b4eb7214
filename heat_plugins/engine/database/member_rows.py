# SPDX-License-Identifier: Apache-2.0
"""The rows of a group's members in Heat's database, many at a time.

What belongs together is one transaction, so that a crash leaves all of it or
nothing. How a member's row is found says `deployments.groups.members`.
"""

import collections
from collections import abc
import dataclasses
import datetime
from typing import Any

from heat.db import api as db_api
from heat.db import models
from oslo_utils import timeutils
import sqlalchemy

from heat_plugins.deployments import deliveries
from heat_plugins.deployments.groups import members
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import rows
from heat_plugins.signals import group_ids

_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """What is known of a member that was given something.

    :ivar delivered_at: when the config of its last action was made, in UTC.
    :ivar changed_at: when its status was written.
    """

    member: members.Member
    row: deliveries.Row
    delivered_at: datetime.datetime
    changed_at: datetime.datetime


class MemberRows(deployment_rows.Rows):
    """The rows of one group; see `outside.Rows`.

    :param group_id: if it is that of a nested stack, only `states` is there.
    """

    def __init__(self, context: heat_types.Context, group_id: str) -> None:
        super().__init__(None, context)
        self._group_id = group_id

    def all(self) -> dict[str, deliveries.Row]:
        """Read all rows of the group, with their configs, by id."""
        return self._read(self._is_ours(_Deployment.id))

    def states(self) -> list[State]:
        """Read what is shown of all members, in the order of delivery."""
        query = (
            sqlalchemy.select(_Deployment, _Config)
            .join(_Config, _Config.id == _Deployment.config_id)
            .where(self._is_shown())
            .order_by(_Config.created_at)
        )
        with db_api.context_manager.reader.using(self._context) as session:
            found = [
                (deployment_rows.row(row, config), config.created_at, row)
                for row, config in session.execute(query)
            ]
        return [
            State(
                member=members.Member.of(self._group_id, row),
                row=row,
                delivered_at=delivered_at,
                changed_at=stored.updated_at or stored.created_at,
            )
            for row, delivered_at, stored in found
        ]

    def _is_shown(self) -> Any:
        if group_ids.is_one(self._group_id):
            return self._is_ours(_Deployment.id)
        resource = models.Resource
        return _Deployment.id.in_(
            sqlalchemy.select(resource.physical_resource_id).where(
                resource.stack_id == self._group_id
            )
        )

    def _is_ours(self, column: Any) -> Any:
        return column.like(f'{group_ids.prefix(self._group_id)}%')

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and rows; delete the configs that no row has now."""
        super().write(made)
        with db_api.context_manager.writer.using(self._context) as session:
            self._sweep(session)

    def _sweep(self, session: Any) -> None:
        used = sqlalchemy.select(_Deployment.config_id).where(
            self._is_ours(_Deployment.id)
        )
        session.execute(
            sqlalchemy.delete(_Config)
            .where(self._is_ours(_Config.id), _Config.id.not_in(used))
            .execution_options(synchronize_session=False)
        )

    def detach(self, reasons: abc.Mapping[str, str | None]) -> None:
        """Take rows from their servers; fail those that come with a reason.

        Such a row is kept by the group itself: Heat writes to a server's
        metadata what the rows with its id name.
        """
        now = timeutils.utcnow()
        ids = collections.defaultdict(list)
        for number, reason in reasons.items():
            ids[reason].append(number)
        statements = {}
        for reason, numbers in ids.items():
            values: dict[str, Any] = {'server_id': self._group_id}
            if reason is not None:
                values |= {
                    'status': deliveries.FAILED,
                    'status_reason': reason,
                    'updated_at': now,
                }
            for some in rows.batches(numbers):
                statements[some[0]] = (
                    sqlalchemy.update(_Deployment)
                    .where(_Deployment.id.in_(some))
                    .values(**values)
                )
        rows.change_each(self._context, statements)

    def erase(self, ids: abc.Collection[str]) -> None:
        """Delete rows, and the configs that no row has then."""
        with db_api.context_manager.writer.using(self._context) as session:
            for some in rows.batches(ids):
                session.execute(
                    sqlalchemy.delete(_Deployment)
                    .where(_Deployment.id.in_(some))
                    .execution_options(synchronize_session=False)
                )
            self._sweep(session)
