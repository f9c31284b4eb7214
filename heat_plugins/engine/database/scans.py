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
"""

from collections import abc
import dataclasses
from typing import Any, TypeAlias

from heat.db import api as db_api
from heat.db import models
from heat.engine import environment
import sqlalchemy

from heat_plugins import tokens
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows

Key: TypeAlias = tuple[int, int | None, bool]

#: Names a sync point: the ID of its resource or stack, and whether it is for
#: an update, not for cleaning up.
PointKey: TypeAlias = tuple[str, bool]

_Stack, _Resource, _Data = models.Stack, models.Resource, models.ResourceData
_Config, _Deployment = models.SoftwareConfig, models.SoftwareDeployment
_Point = models.SyncPoint


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
    return bool(
        db_api.resource_update(
            context,
            held.id,
            values,
            held.version,
            expected_engine_id=held.engine_id,
        )
    )


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


def points(context: heat_types.Context, stalled: Idle) -> dict[PointKey, Any]:
    """Return the sync points of a traversal that are left.

    :returns: what the nodes before each have sent, in Heat's form.
    """
    query = sqlalchemy.select(
        _Point.entity_id, _Point.is_update, _Point.input_data
    ).where(*_is_of(stalled))
    return {
        (row.entity_id, row.is_update): row.input_data
        for row in rows.select(context, query)
    }


def _is_of(stalled: Idle) -> tuple[Any, Any]:
    return (
        _Point.stack_id == stalled.stack_id,
        _Point.traversal_id == stalled.traversal_id,
    )


def nodes(context: heat_types.Context, stack_id: str) -> dict[int, Any]:
    """Return the resources of a stack, by number.

    :returns: rows with the ``id``; ``replaces``, the number of the resource in
        whose place it was made; ``template_id``, the template that it was last
        changed to; ``status`` and ``action``.
    """
    query = sqlalchemy.select(
        _Resource.id,
        _Resource.replaces,
        _Resource.current_template_id.label('template_id'),
        _Resource.status,
        _Resource.action,
    ).where(_Resource.stack_id == stack_id)
    return {row.id: row for row in rows.select(context, query)}


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
