# SPDX-License-Identifier: Apache-2.0
"""Derived configs and deployments; threads that write at a time share."""

from collections import abc
import contextlib
import dataclasses
import datetime

from heat.common import context as heat_context
from heat.common import timeutils
from oslo_db import exception as db_exception

from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import fleets
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

# The same for what is delivered; each with its project, by its config's ID.
_deliveries: sharing.Batches[str, tuple[deliveries.Delivery, str]]
_deliveries = sharing.Batches(
    lambda made: rows.deliver(made.values()),
    lambda exc: not isinstance(exc, _PASSING),
)


@contextlib.contextmanager
def guarded(*, everything: bool = False) -> abc.Iterator[None]:
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


def write(
    context: heat_types.Context, made: abc.Sequence[deliveries.Delivery]
) -> None:
    """Write configs and deployments, all or none."""
    in_process.check_room(context, sum(each.before is None for each in made))
    _deliveries.share(
        {each.config_id: (each, context.project_id) for each in made}
    )


def tell(
    context: heat_types.Context, made: abc.Sequence[deliveries.Delivery]
) -> None:
    """Write to servers' metadata the configs that they must run."""
    servers: dict[str | None, set[str]] = {}
    for each in made:
        servers.setdefault(each.reading_project, set()).add(each.server_id)
    for reading_project, ids in servers.items():
        server_metadata.tell(context, ids, reading_project)


def settle(
    outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome],
) -> abc.Collection[watcher.Ticket]:
    """End deployments that still wait for these answers.

    Another engine, or a user, may have ended one already.

    :returns: those whose outcome counts.
    """
    return _settlements.share(outcomes)


#: Keys of what is shown of a member.
SHOWN = (
    'server',
    'deployment',
    'config',
    'action',
    'status',
    'status_reason',
    'delivered_at',
    'ended_at',
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class MemberState:
    """The state of a member that was given a config.

    :ivar delivered_at: when the config of its last action was made, in UTC.
    :ivar changed_at: when its status was written.
    """

    member: fleets.Member
    row: heat_values.DeploymentRow
    delivered_at: datetime.datetime
    changed_at: datetime.datetime

    def shown(self) -> dict[str, object]:
        """Return the values of `SHOWN` for the group's attribute."""
        row = self.row
        # What was withdrawn from its server is not the member's.
        is_given = not row.is_withdrawn
        ended_at = None
        if not row.in_progress:
            ended_at = timeutils.isotime(self.changed_at)
        return {
            'server': self.member.server_id,
            'deployment': row.id,
            'config': row.config.id if is_given else None,
            'action': row.action,
            'status': row.status,
            'status_reason': row.reason and tokens.shown(row.reason),
            'delivered_at': timeutils.isotime(self.delivered_at),
            'ended_at': ended_at,
        }


def states(context: heat_types.Context, group_id: str) -> list[MemberState]:
    """Read the states of a group's members, in the order of delivery.

    :param group_id: may be that of a nested stack.
    """
    return [
        MemberState(
            member=fleets.Member.of_row(row),
            row=row,
            delivered_at=delivered_at,
            changed_at=changed_at,
        )
        for row, delivered_at, changed_at in rows.of_group(context, group_id)
    ]
