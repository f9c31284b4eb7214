# SPDX-License-Identifier: Apache-2.0
"""Derived configs and deployments; threads that write at a time share."""

from collections import abc
import contextlib
import dataclasses
import datetime
from typing import Any

from heat.common import context as heat_context
from oslo_db import exception as db_exception

from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
from heat_plugins.deployments import plan_tasks
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.objectstore import sharing
from heat_plugins.signals import body
from heat_plugins.signals import watcher

_PASSING = (db_exception.DBConnectionError, db_exception.DBDeadlock)

# For all stacks: what arrives while others are settled is settled together.
_settlements: sharing.Batches[watcher.Ticket, body.SignalOutcome]
_settlements = sharing.Batches(
    lambda outcomes: rows.settle(
        # Heat's database does not authenticate its callers.
        heat_context.get_admin_context(),
        outcomes,
    ),
    lambda exc: not isinstance(exc, _PASSING),
)

#: Deliveries, each with its project, by the ID of their config.
Batches = sharing.Batches[str, tuple[deliveries.Delivery, str]]


def new_batches() -> Batches:
    """Return what writes together what is delivered at the same time."""
    return sharing.Batches(
        lambda made: rows.deliver(made.values()),
        lambda exc: not isinstance(exc, _PASSING),
    )


_deliveries = new_batches()


class Rows:
    """Derived configs and deployments, and what servers know of them.

    Each may raise errors of the database; see `guarded`.

    :param rpc: an `in_process.Client`.
    :param context: with credentials for the project.
    """

    def __init__(
        self,
        rpc: Any,
        context: heat_types.Context,
        batches: Batches = _deliveries,
    ) -> None:
        self._rpc = rpc
        self._context = context
        self._batches = batches

    @contextlib.contextmanager
    def guarded(self, *, everything: bool = False) -> abc.Iterator[None]:
        """Raise failures of the database in a block as `errors.Unavailable`.

        The database may have written the change all the same.

        :param everything: also those that a repetition would meet again.
        """
        try:
            yield
        except db_exception.DBError as exc:
            if not (everything or isinstance(exc, _PASSING)):
                raise
            # The cause quotes the values of the statement.
            raise rows.unavailable(exc) from None

    def read(
        self, ids: abc.Collection[str]
    ) -> dict[str, heat_values.DeploymentRow]:
        """Read deployments by id; those that are gone are left out."""
        return rows.visible(self._context, ids)

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and deployments, all or none."""
        new = sum(each.before is None for each in made)
        in_process.check_room(self._context, new)
        project_id = self._context.project_id
        self._batches.share(
            {each.config_id: (each, project_id) for each in made}
        )

    def tell(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Tell servers what they must run."""
        servers: dict[str | None, set[str]] = {}
        for each in made:
            servers.setdefault(each.reading_project, set()).add(each.server_id)
        for reading_project, ids in servers.items():
            self.tell_servers(ids, reading_project)

    def tell_servers(
        self, ids: abc.Collection[str], reading_project: str | None
    ) -> None:
        """Tell servers what they must run, as the rows say.

        :param reading_project: whose queues they read, for Zaqar.
        """
        server_metadata.tell(self._context, ids, reading_project)

    def poll_queue(self, deployment_id: str) -> None:
        """Let Heat settle a deployment by what lies in its Zaqar queue."""
        self._rpc.show_software_deployment(self._context, deployment_id)

    def change_outputs(
        self, deployment_id: str, outputs: abc.Mapping[str, Any]
    ) -> None:
        """Write other outputs of a deployment that has ended."""
        rows.change(self._context, deployment_id, output_values=dict(outputs))

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        """End deployments that still wait for just that; return whose counts.

        Another engine, or a user, may have ended one already.
        """
        return _settlements.share(outcomes)

    def begin(
        self, tickets: abc.Collection[watcher.Ticket]
    ) -> abc.Collection[watcher.Ticket]:
        """Write that servers have started; return of which that is news."""
        return rows.begin(self._context, tickets)

    def withdraw(self, ids: abc.Collection[str]) -> None:
        """Delete deployments, and take their configs from the servers."""
        for each in ids:
            with self._rpc.ignore_error_by_name('NotFound'):
                self._rpc.delete_software_deployment(self._context, each)

    def configs(self, ids: abc.Collection[str]) -> abc.Collection[str]:
        """Return which of some configs there are."""
        return rows.configs(self._context, ids)

    def delete_configs(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, Exception]:
        """Delete configs; return those that remain, and why."""
        remaining = {}
        for each in ids:
            try:
                with self._rpc.ignore_error_by_name('NotFound'):
                    self._rpc.delete_software_config(self._context, each)
            except Exception as exc:
                remaining[each] = exc
        return remaining


@dataclasses.dataclass(frozen=True, kw_only=True)
class State:
    """What is known of a member that was given something.

    :ivar delivered_at: when the config of its last action was made, in UTC.
    :ivar changed_at: when its status was written.
    """

    member: plan_tasks.Member
    row: heat_values.DeploymentRow
    delivered_at: datetime.datetime
    changed_at: datetime.datetime


class MemberRows(Rows):
    """The rows of one group.

    What belongs together is one transaction, so that a crash leaves all of it
    or nothing. How a member's row is found says
    `deployments.plan_tasks`.

    :param group_id: if it is that of a nested stack, only `states` is there.
    """

    def __init__(self, context: heat_types.Context, group_id: str) -> None:
        super().__init__(None, context)
        self._group_id = group_id

    def all(self) -> dict[str, heat_values.DeploymentRow]:
        """Read all rows of the group, with their configs, by id."""
        dated = rows.of_group(self._context, self._group_id)
        return {row.id: row for row, *_ in dated}

    def states(self) -> list[State]:
        """Read what is shown of all members, in the order of delivery."""
        return [
            State(
                member=plan_tasks.Member.of_row(row),
                row=row,
                delivered_at=delivered_at,
                changed_at=changed_at,
            )
            for row, delivered_at, changed_at in rows.of_group(
                self._context, self._group_id
            )
        ]

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and rows; delete the configs that no row has now."""
        super().write(made)
        rows.erase(self._context, self._group_id)

    def detach(
        self, withdrawals: abc.Sequence[fleets.Withdrawal]
    ) -> abc.Collection[str]:
        """Take rows from their servers; see `rows.detach`."""
        return rows.detach(self._context, self._group_id, withdrawals)

    def erase(self, ids: abc.Collection[str]) -> None:
        """Delete rows, and the configs that no row has then."""
        rows.erase(self._context, self._group_id, ids)
