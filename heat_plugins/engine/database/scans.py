# SPDX-License-Identifier: Apache-2.0
"""What the scans of an engine look for in Heat's database.

*Held* resources are those that an engine has locked, and those that it had
locked when it died. Heat checks such a lock only when it needs the resource;
one statement here reads those of all stacks.

*Idle* traversals stand still. A traversal is one action of a stack: Heat keeps
a sync point for each node of its graph, and one for the stack, with the
earlier nodes that are done. No engine holds a lock between two nodes. If an
engine dies there, only the sync points show that the stack is not complete.
That of the stack is made last: without it, the traversal has not begun.

The configs that register operations are read here, too.
"""

from collections import abc
import contextlib
import dataclasses
import datetime
from typing import Any, TypeAlias

from heat.common import exception
from heat.db import api as db_api
from heat.db import models
from heat.engine import environment
from heat.engine import stack as parser
from heat.engine import sync_point
from oslo_utils import timeutils as oslo_timeutils
import sqlalchemy
from sqlalchemy import orm

from heat_plugins import tokens
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import notice_orders

Key: TypeAlias = tuple[int, int | None, bool]

#: Names a sync point: the ID of its resource or stack, and whether it is for
#: an update, not for cleaning up.
PointKey: TypeAlias = tuple[str, bool]

_Stack, _Resource, _Data = models.Stack, models.Resource, models.ResourceData
_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment
_Point = models.SyncPoint
_Restricted = exception.InvalidRestrictedAction

# The most configs that one scan deletes.
_LEFTOVERS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Held:
    """A resource that an engine is working on, or was when it died.

    :ivar id: its number in the database.
    :ivar engine_id: None if it was taken away from an engine that has died,
        or none has started with it.
    :ivar version: changes with each change of its row.
    :ivar reason: why it has failed, if it has.
    :ivar has_begun: False for a replacement of which it is unknown whether
        an engine was told to create it.
    :ivar stack_has_failed: whether the stack had, when this was read.
    """

    id: int
    name: str
    stack_id: str
    engine_id: str | None
    version: int | None
    reason: str
    has_begun: bool = True
    stack_has_failed: bool = False

    @property
    def key(self) -> Key:
        """What tells it from itself after a change."""
        return self.id, self.version, self.stack_has_failed


@dataclasses.dataclass(frozen=True, kw_only=True)
class Idle:
    """A stack in progress of which no engine holds anything.

    :ivar stamp: changes with each node that is done; before it begins, with
        each resource and sync point that is made.
    """

    stack_id: str
    traversal_id: str
    stamp: int
    has_begun: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """A sync point.

    :ivar data: what the nodes before it have sent, in Heat's form.
    """

    data: Any = dataclasses.field(repr=False)

    @property
    def nodes(self) -> abc.Set[parser.ConvergenceNode]:
        """The nodes before it that are done."""
        return {
            parser.ConvergenceNode(*each)
            for each in sync_point.deserialize_input_data(self.data)
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
    """A resource as a traversal needs it.

    :ivar id: its number.
    :ivar replaces: the number of the resource in whose place it was made.
    :ivar template_id: the template that it was last changed to.
    """

    id: int
    replaces: int | None
    template_id: int | None
    status: str
    action: str


# Locks


def held(context: heat_types.Context) -> list[Held]:
    """Return what engines are working on, or were when they died.

    This includes what was taken from them and not checked again yet, and
    replacements that no engine has started.
    """
    # Of several of a name that a traversal has made, each in the place of one
    # before.
    is_last = ~resources.has_replacement(_Stack.raw_template_id)
    in_work = sqlalchemy.and_(
        _Resource.status == 'IN_PROGRESS', _Resource.engine_id.is_not(None)
    )
    is_to_go_on = sqlalchemy.and_(
        _Stack.status == 'IN_PROGRESS',
        # Otherwise its replacement is in progress.
        (_Resource.action == 'DELETE')
        | (_Resource.replaced_by.is_(None) & is_last),
    )
    # If the stack has failed before anybody checked it.
    is_on_server = sqlalchemy.and_(
        _Stack.status == 'FAILED',
        sqlalchemy.exists().where(
            resources.is_of_resource(), _Deployment.status == 'IN_PROGRESS'
        ),
    )
    taken = sqlalchemy.and_(
        _Resource.status == 'FAILED',
        _Resource.engine_id.is_(None),
        rows.says(_Resource.status_reason, tokens.ENGINE_DIED),
        is_to_go_on | is_on_server,
    )
    # Heat commits a replacement before it asks an engine to begin it.
    unbegun = sqlalchemy.and_(
        _Stack.status == 'IN_PROGRESS',
        _Resource.action == 'INIT',
        _Resource.engine_id.is_(None),
        _Resource.replaces.is_not(None),
        _Resource.current_template_id == _Stack.raw_template_id,
        is_last,
    )
    query = (
        sqlalchemy.select(
            _Resource.id,
            _Resource.name,
            _Resource.stack_id,
            _Resource.engine_id,
            _Resource.atomic_key,
            _Resource.status_reason,
            _Resource.action,
            _Stack.status.label('stack_status'),
        )
        .join(_Stack, _Resource.stack_id == _Stack.id)
        .where(
            in_work | taken | unbegun,
            _Stack.status.in_(('IN_PROGRESS', 'FAILED')),
            _Stack.convergence.is_(True),
            _Stack.deleted_at.is_(None),
        )
    )
    return [
        Held(
            id=row.id,
            name=row.name,
            stack_id=row.stack_id,
            engine_id=row.engine_id,
            version=row.atomic_key,
            reason=(
                f'Engine {row.engine_id} has died'
                if row.engine_id
                else tokens.shown(row.status_reason or '')
            ),
            has_begun=row.action != 'INIT',
            stack_has_failed=row.stack_status == 'FAILED',
        )
        for row in rows.select(context, query)
    ]


def change(context: heat_types.Context, held: Held, **values: object) -> bool:
    """Change a resource, and its version, unless another process has."""
    changed: bool = db_api.resource_update(
        context,
        held.id,
        values,
        held.version,
        expected_engine_id=held.engine_id,
    )
    return changed


# Traversals


def idle(
    context: heat_types.Context, actions: abc.Collection[str]
) -> list[Idle]:
    """Return the stacks in progress that no engine works on now.

    A message may be on its way to an engine that continues one. Those that
    wait for a user to clear a hook are left out.

    :param actions: what the stacks may be doing.
    """
    is_held = sqlalchemy.exists().where(
        _Resource.stack_id == _Stack.id,
        _Resource.engine_id.is_not(None) | (_Resource.status == 'IN_PROGRESS'),
    )
    # Heat waits for that without a lock.
    is_hooked = sqlalchemy.exists().where(
        _Resource.stack_id == _Stack.id,
        _Data.resource_id == _Resource.id,
        _Data.key.in_(environment.HOOK_TYPES),
        _Data.value == 'True',
    )
    is_locked = sqlalchemy.exists().where(
        models.StackLock.stack_id == _Stack.id
    )
    is_own = (_Point.entity_id == _Stack.id, 1)
    count = sqlalchemy.func.count
    resource_count = (
        sqlalchemy.select(count(_Resource.id))
        .where(_Resource.stack_id == _Stack.id)
        .scalar_subquery()
    )
    query = (
        sqlalchemy.select(
            _Stack.id,
            _Stack.current_traversal,
            sqlalchemy.func.sum(_Point.atomic_key).label('stamp'),
            count(sqlalchemy.case(is_own)).label('has_begun'),
            (count(_Point.entity_id) + resource_count).label('made'),
        )
        .outerjoin(
            _Point,
            (_Point.stack_id == _Stack.id)
            & (_Point.traversal_id == _Stack.current_traversal),
        )
        .where(
            _Stack.status == 'IN_PROGRESS',
            _Stack.action.in_(actions),
            _Stack.convergence.is_(True),
            _Stack.deleted_at.is_(None),
            ~is_held,
            ~is_hooked,
            ~is_locked,
        )
        .group_by(_Stack.id, _Stack.current_traversal)
    )
    return [
        Idle(
            stack_id=row.id,
            traversal_id=row.current_traversal,
            stamp=int(row.stamp if row.has_begun else row.made),
            has_begun=bool(row.has_begun),
        )
        for row in rows.select(context, query)
    ]


def has_snapshots(context: heat_types.Context, stack_id: str) -> bool:
    """Say whether there are snapshots of a stack."""
    query = sqlalchemy.select(models.Snapshot.id).where(
        models.Snapshot.stack_id == stack_id
    )
    return rows.finds(context, query)


def points(
    context: heat_types.Context, stalled: Idle
) -> dict[PointKey, Point]:
    """Return the sync points of a traversal that are left."""
    query = sqlalchemy.select(
        _Point.entity_id, _Point.is_update, _Point.input_data
    ).where(*_is_of(stalled))
    return {
        (row.entity_id, row.is_update): Point(data=row.input_data)
        for row in rows.select(context, query)
    }


def _is_of(stalled: Idle) -> tuple[Any, Any]:
    return (
        _Point.stack_id == stalled.stack_id,
        _Point.traversal_id == stalled.traversal_id,
    )


def nodes(context: heat_types.Context, stack_id: str) -> dict[int, Node]:
    """Return the resources of a stack, by number."""
    query = sqlalchemy.select(
        _Resource.id,
        _Resource.replaces,
        _Resource.current_template_id.label('template_id'),
        _Resource.status,
        _Resource.action,
    ).where(_Resource.stack_id == stack_id)
    return {
        row.id: Node(**row._mapping) for row in rows.select(context, query)
    }


def claim(context: heat_types.Context, stalled: Idle) -> bool:
    """Change the stamp of a traversal; of several that try, one does.

    As Heat's own writers do, those that come meanwhile start over.
    """
    sums = (
        sqlalchemy.select(sqlalchemy.func.sum(_Point.atomic_key))
        .where(*_is_of(stalled))
        .scalar_subquery()
    )
    own = sqlalchemy.and_(
        *_is_of(stalled),
        _Point.entity_id == stalled.stack_id,
        _Point.is_update.is_(True),
    )
    pairs = rows.select(
        context,
        sqlalchemy.select(_Point.atomic_key).where(own, sums == stalled.stamp),
    )
    return bool(pairs) and rows.write(
        context,
        sqlalchemy.update(_Point)
        .where(own, _Point.atomic_key == pairs[0].atomic_key)
        .values(atomic_key=_Point.atomic_key + 1),
    ) == [1]


# Operations


def operations(
    context: heat_types.Context,
    operation_id: str | None,
    *,
    most: int,
    length: int,
) -> list[Any]:
    """Return the configs that register operations, of all projects.

    Each with its ``row_id``: the deployment that registers it, too; None for
    one of a former release. The first of each project come first, so that
    none hides another's.

    :param operation_id: the only one that is wanted; None for all.
    :param most: the most of a project.
    :param length: the most bytes of a config.
    """
    # A cloud may have a million other configs.
    wanted = [_Config.group.in_((binding.GROUP, binding.FORMER_GROUP))]
    if operation_id is not None:
        wanted.append(_Config.name == operation_id)
    # Who may create configs may not be permitted to create deployments.
    registering = sqlalchemy.and_(
        _Deployment.config_id == _Config.id,
        _Deployment.tenant == _Config.tenant,
        _Deployment.server_id == _Config.name,
        _Deployment.status == binding.IN_PROGRESS,
        _Config.group == binding.GROUP,
    )
    rank = sqlalchemy.func.row_number().over(
        partition_by=_Config.tenant, order_by=_Config.created_at
    )
    ranked = (
        sqlalchemy.select(
            _Config.id,
            _Config.name,
            _Config.tenant,
            _Config.config,
            _Config.created_at,
            _Deployment.id.label('row_id'),
            rank.label('rank'),
        )
        .outerjoin(_Deployment, registering)
        .where(
            *wanted,
            (_Config.group == binding.FORMER_GROUP)
            | _Deployment.id.is_not(None),
            sqlalchemy.func.length(_Config.config) <= length,
        )
        .subquery()
    )
    query = (
        sqlalchemy.select(ranked)
        .where(ranked.c.rank <= most)
        .order_by(ranked.c.rank, ranked.c.created_at)
    )
    return rows.select(context, query)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NoticeRow:
    """The notices of an operation; see `notice_orders`.

    :ivar id: of the deployment.
    :ivar order: the config, as its creator wrote it.
    :ivar reason: what is recorded.
    :ivar state: the status of the deployment that registers the operation.
    :ivar changed_at: when that was changed last.
    :ivar seen_at: the change of it that the record says all of.
    """

    id: str
    operation_id: str
    project_id: str
    order: Any = dataclasses.field(repr=False)
    reason: str
    state: str
    changed_at: Any
    seen_at: Any


def notices(context: heat_types.Context, most: int) -> list[NoticeRow]:
    """Return the notices of operations that may have something to tell.

    :param most: the most of a project, the newest.
    """
    registering, bound = orm.aliased(_Deployment), orm.aliased(_Config)
    rank = sqlalchemy.func.row_number().over(
        partition_by=_Deployment.tenant,
        order_by=_Deployment.created_at.desc(),
    )
    ranked = (
        sqlalchemy.select(
            _Deployment.id,
            _Deployment.server_id.label('operation_id'),
            _Deployment.tenant.label('project_id'),
            _Config.config.label('order'),
            _Deployment.status_reason.label('reason'),
            registering.status.label('state'),
            registering.updated_at.label('changed_at'),
            _Deployment.updated_at.label('seen_at'),
            rank.label('rank'),
        )
        .join(_Config, _Config.id == _Deployment.config_id)
        .join(
            registering,
            (registering.server_id == _Deployment.server_id)
            & (registering.tenant == _Deployment.tenant),
        )
        .join(bound, bound.id == registering.config_id)
        .where(
            _Config.group == binding.NOTICES,
            bound.group == binding.GROUP,
            # A retry of what has ended was not seen.
            (_Deployment.status == binding.IN_PROGRESS)
            | (registering.updated_at > _Deployment.updated_at),
            sqlalchemy.func.length(_Config.config) <= notice_orders.LENGTH,
        )
        .subquery()
    )
    query = sqlalchemy.select(ranked).where(ranked.c.rank <= most)
    return [
        NoticeRow(
            **{n: v for n, v in row._mapping.items() if n != 'rank'},
        )
        for row in rows.select(context, query)
    ]


def record_notices(
    context: heat_types.Context, row: NoticeRow, after: NoticeRow, status: str
) -> bool:
    """Record notices, unless another engine has done so."""
    return rows.write(
        context,
        sqlalchemy.update(_Deployment)
        .where(
            _Deployment.id == row.id,
            _Deployment.status_reason == row.reason,
        )
        .values(
            status_reason=after.reason,
            status=status,
            updated_at=after.seen_at,
        ),
    ) == [1]


def is_registered(
    context: heat_types.Context, project_id: str, operation_id: str
) -> bool:
    """Say whether Heat knows of an operation, or is about to."""
    return rows.finds(
        context,
        sqlalchemy.select(_Deployment.id).where(
            _Deployment.server_id == operation_id,
            _Deployment.tenant == project_id,
        ),
    )


def ended(
    context: heat_types.Context,
    wanted: abc.Collection[tuple[str, str]],
) -> set[tuple[str, str]]:
    """Return which operations have ended, or were deleted.

    :param wanted: each as its project and ID.
    """
    query = sqlalchemy.select(_Deployment.tenant, _Deployment.server_id).where(
        _Deployment.status == 'IN_PROGRESS'
    )
    found = rows.select_in(
        context, query, _Deployment.server_id, {each[1] for each in wanted}
    )
    return {*wanted} - {(row.tenant, row.server_id) for row in found}


def delete_unregistered(context: heat_types.Context, age: int) -> None:
    """Delete configs of operations that no deployment registers.

    The process that created one has died before it created the deployment.

    :param age: seconds, which they must have at least.
    """
    created = oslo_timeutils.utcnow() - datetime.timedelta(seconds=age)
    is_bound = sqlalchemy.exists().where(_Deployment.config_id == _Config.id)
    leftovers = (
        sqlalchemy.select(_Config.id)
        .where(
            _Config.group == binding.GROUP,
            _Config.created_at < created,
            ~is_bound,
        )
        .limit(_LEFTOVERS)
    )
    for (config_id,) in rows.select(context, leftovers):
        # Heat deletes none that has got a deployment since.
        with contextlib.suppress(exception.NotFound, _Restricted):
            db_api.software_config_delete(context, config_id)
