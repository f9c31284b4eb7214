# SPDX-License-Identifier: Apache-2.0
"""Stacks and resources as Heat's database has them, and servers by those.

A server has no row of its own there: resources stand for it.
"""

from collections import abc
from typing import Any

from heat.common import context as heat_context
from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api
from heat.db import models
from heat.engine import stack as parser
from heat.engine.resources import server_base
from heat.objects import resource as resource_objects
import sqlalchemy
from sqlalchemy import orm

from heat_plugins import heat_values
from heat_plugins import tokens
from heat_plugins.configs import actions
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows
from heat_plugins.signals import signal_names

# What Heat stores with a server whose metadata it sends by a request.
_PUT_URL, _QUEUE = 'metadata_put_url', 'metadata_queue_id'

#: The key in the data of a group that gets a nested stack: its id before that.
FORMER_GROUP = 'heat_plugins_former_group'

# What Heat stores with a resource for which it has made a user.
_USER = 'user_id'

_Stack, _Resource, _Data = models.Stack, models.Resource, models.ResourceData
_Deployment = models.SoftwareDeployment

# An engine that was killed leaves such resources in stacks that no engine
# works on.
_IS_BUSY = (_Resource.status == 'IN_PROGRESS', _Stack.status == 'IN_PROGRESS')

# What neither a resource nor its stack does while what it keeps is in force.
_OFF = ('SUSPEND', 'DELETE')


# One resource, and what it keeps


def note_physical_id(
    context: heat_types.Context, number: int, physical_id: str | None
) -> None:
    """Write the physical id of a resource, whatever else changes there.

    :param number: of the resource, in the database.
    """
    rows.write(
        context,
        sqlalchemy.update(_Resource)
        .where(_Resource.id == number)
        .values(physical_resource_id=physical_id),
    )


def is_physical_id(context: heat_types.Context, physical_id: str) -> bool:
    """Say whether a resource has a physical id."""
    return rows.finds(
        context,
        sqlalchemy.select(_Resource.id).where(
            _Resource.physical_resource_id == physical_id
        ),
    )


def exists(resource: heat_types.Resource) -> bool:
    """Say whether a resource that Heat validates for an update exists.

    Heat validates an update with a stack that has no ID yet. It has the same
    credentials as the stack that it updates, and as the stacks in that.
    """
    stack = resource.stack
    if stack.user_creds_id is None:
        return False
    return rows.finds(
        stack.context,
        sqlalchemy.select(_Resource.id).where(
            _Resource.name == resource.name,
            _Resource.stack_id == _Stack.id,
            _Stack.user_creds_id == stack.user_creds_id,
        ),
    )


def datum(context: heat_types.Context, number: int, key: str) -> str | None:
    """Return what a resource keeps by a key; None if it keeps nothing."""
    query = sqlalchemy.select(_Data.value).where(
        _Data.resource_id == number, _Data.key == key
    )
    for row in rows.select(context, query):
        return str(row.value)
    return None


def secrets(context: heat_types.Context, number: int) -> dict[str, str]:
    """Return all that a resource keeps, secrets decrypted."""
    try:
        kept: dict[str, str] = db_api.resource_data_get_all(context, number)
    except exception.NotFound:
        return {}
    return kept


def keep_secret(
    context: heat_types.Context, number: int, key: str, value: str
) -> None:
    """Let a resource keep a secret."""
    db_api.resource_data_set(context, number, key, value, redact=True)


def replace_datum(
    context: heat_types.Context,
    number: int,
    key: str,
    before: str,
    after: str,
) -> bool:
    """Write what a resource keeps unless another process has changed it."""
    statement = replacing_datum(number, key, before, after)
    return rows.write(context, statement) == [1]


def replacing_datum(
    number: int, key: str, before: str, after: str
) -> sqlalchemy.Update:
    """Return the statement of `replace_datum`."""
    return (
        sqlalchemy.update(_Data)
        .where(
            _Data.resource_id == number,
            _Data.key == key,
            _Data.value == before,
        )
        .values(value=after)
    )


def active_data(
    context: heat_types.Context,
    key: str,
    numbers: abc.Collection[int] | None,
) -> abc.Iterable[Any]:
    """Return what resources of all projects keep by a key.

    Not of those that are suspended or deleted, or that others replace. Each
    with the ``number``, ``id`` and ``name`` of the resource, ``stack_id``,
    ``stack_name`` and ``project_id``, and what it keeps as ``text``.

    :param numbers: those that are wanted; None for all, which reads the data
        of all resources.
    """
    query = (
        sqlalchemy.select(
            _Resource.id.label('number'),
            _Resource.uuid.label('id'),
            _Resource.name,
            _Resource.stack_id,
            _Stack.name.label('stack_name'),
            _Stack.tenant.label('project_id'),
            _Data.value.label('text'),
        )
        .join(_Resource, _Resource.id == _Data.resource_id)
        .join(_Stack, _Stack.id == _Resource.stack_id)
        .where(
            _Data.key == key,
            _Resource.action.not_in(_OFF),
            # Until that ends, it has what was due before.
            ~sqlalchemy.and_(
                _Resource.action == 'RESUME',
                _Resource.status == 'IN_PROGRESS',
            ),
            _Resource.replaced_by.is_(None),
            # What an update that is not in convergence replaces.
            _Stack.backup.is_not(True),
            _Stack.action.not_in(_OFF),
            _Stack.deleted_at.is_(None),
        )
    )
    if numbers is None:
        return rows.select(context, query)
    return rows.select_in(context, query, _Data.resource_id, numbers)


def container_in_use(
    context: heat_types.Context, root_stack_id: str, container: str
) -> bool:
    """Say whether a deployment of a root stack has a URL to a container.

    One of a root stack that is gone has none: Heat keeps the nested stacks
    of a stack that it has abandoned.
    """
    query = (
        sqlalchemy.select(_Data.id)
        .join(_Resource, _Resource.id == _Data.resource_id)
        .join(_Stack, _Stack.id == _Resource.root_stack_id)
        .where(
            _Resource.root_stack_id == root_stack_id,
            _Stack.deleted_at.is_(None),
            # What Heat calls complete is deleted a moment later.
            (_Stack.action != 'DELETE') | (_Stack.status != 'COMPLETE'),
            _Data.key == rows.CONTAINER_KEY,
            _Data.value == container,
        )
    )
    return rows.finds(context, query)


def has_deployments(context: heat_types.Context, root_stack_id: str) -> bool:
    """Say whether a root stack has deployments that servers were given."""
    query = (
        sqlalchemy.select(_Deployment.id)
        .join(_Resource, is_of_resource())
        .where(_Resource.root_stack_id == root_stack_id)
    )
    return rows.finds(context, query)


def is_of_resource() -> Any:
    """Return the condition that a deployment is a resource's.

    The resource's own, or that of a member if it is a group.
    """
    kept = sqlalchemy.func.substr(
        _Deployment.id, 1, signal_names.PREFIX_LENGTH
    )
    physical_id = _Resource.physical_resource_id
    return (physical_id == _Deployment.id) | (
        physical_id == kept + signal_names.GROUP_TAIL
    )


def data_of_later(
    context: heat_types.Context,
    stack_id: str,
    name: str,
    number: int,
    key: str,
) -> set[str]:
    """Return the data of resources that were created after one.

    These are the resources of its name, also those that are deleted.

    :param number: of the one, in the database.
    :param key: of the data; not secret.
    """
    query = (
        sqlalchemy.select(_Data.value)
        .join(_Resource, _Data.resource_id == _Resource.id)
        .where(
            _Resource.stack_id == stack_id,
            _Resource.name == name,
            _Resource.id > number,
            _Data.key == key,
        )
    )
    return {row.value for row in rows.select(context, query)}


def servers_of_later(
    context: heat_types.Context, stack_id: str, name: str, number: int
) -> set[str]:
    """Return the servers of the deployments that were created after one.

    :param number: of the resource of the one, in the database.
    """
    query = (
        sqlalchemy.select(_Deployment.server_id)
        .join(_Resource, _Resource.physical_resource_id == _Deployment.id)
        .where(
            _Deployment.tenant == context.project_id,
            _Resource.stack_id == stack_id,
            _Resource.name == name,
            _Resource.id > number,
        )
    )
    return {row.server_id for row in rows.select(context, query)}


def mark_replaced(
    context: heat_types.Context,
    stack_id: str,
    name: str,
    number: int,
    server_id: str,
) -> None:
    """Mark the deployments whose failed CREATE one repeats on its server.

    Their configs are withdrawn from it.

    :param number: of the resource of the one, in the database.
    """
    former = sqlalchemy.select(_Resource.physical_resource_id).where(
        _Resource.stack_id == stack_id,
        _Resource.name == name,
        _Resource.id < number,
        _Resource.status == 'FAILED',
        _Resource.action.in_(('CREATE', 'DELETE')),
    )
    are_replaced = (
        _Deployment.id.in_(former),
        _Deployment.tenant == context.project_id,
        _Deployment.server_id == server_id,
    )
    theirs = sqlalchemy.select(_Deployment.config_id).where(*are_replaced)
    reason = _('Another deployment has replaced it on its server')
    rows.write(
        context,
        sqlalchemy.update(_Deployment)
        .where(*are_replaced)
        .values(status_reason=tokens.REPLACED.after(reason)),
        sqlalchemy.update(models.SoftwareConfig)
        .where(models.SoftwareConfig.id.in_(theirs))
        .values(group=actions.WITHDRAWN),
    )


def replaced_users(
    context: heat_types.Context, stack_id: str, name: str, number: int
) -> dict[str, str | None]:
    """Return the users of what a resource replaces, until it is gone.

    :param number: of the resource, in the database.
    :returns: by physical ID, the user that Heat has made for each; None if it
        has made none.
    """
    is_user = (_Data.resource_id == _Resource.id) & (_Data.key == _USER)
    query = (
        sqlalchemy.select(_Resource.physical_resource_id, _Data.value)
        .outerjoin(_Data, is_user)
        .where(
            _Resource.stack_id == stack_id,
            _Resource.name == name,
            _Resource.id < number,
            _Resource.physical_resource_id.is_not(None),
        )
    )
    found = rows.select(context, query)
    return {row.physical_resource_id: row.value for row in found}


def group_ids(
    context: heat_types.Context, stack_id: str, name: str
) -> set[str]:
    """Return the groups without nested stack of a resource's name.

    Also what it replaces, until that is gone, and what it was before it got a
    nested stack, until its members have taken over their rows.
    """
    is_former = (_Data.resource_id == _Resource.id) & (
        _Data.key == FORMER_GROUP
    )
    query = (
        sqlalchemy.select(_Resource.physical_resource_id, _Data.value)
        .outerjoin(_Data, is_former)
        .where(_Resource.stack_id == stack_id, _Resource.name == name)
    )
    found = {each for row in rows.select(context, query) for each in row}
    return set(filter(signal_names.is_group, found))


def show_replaced(stack: parser.Stack, name: str, user_id: str) -> bool:
    """Let a stack show the server of a user in place of what replaces it.

    :param stack: is used for one answer to that user, no longer.
    :param name: of both resources.
    :returns: whether the user is that of such a server, as Heat made it.
    """
    shown = stack.resource_get(name)
    if shown is None or not isinstance(shown, server_base.BaseServer):
        return False
    query = (
        sqlalchemy.select(_Resource.id)
        .join(_Data, _Data.resource_id == _Resource.id)
        .where(
            _Resource.stack_id == stack.id,
            _Resource.name == name,
            _Resource.id < shown.id,
            _Data.key == _USER,
            _Data.value == user_id,
        )
    )
    for row in rows.select(stack.context, query):
        shown._load_data(
            resource_objects.Resource.get_obj(stack.context, row.id)
        )
        # Of a name that the template no longer has, as when the stack is
        # deleted, the stack would show another object each time.
        stack.resources[name] = shown
        return True
    return False


def has_replacement(template_id: object, *conditions: Any) -> Any:
    """Return the condition that a template replaces a resource.

    The resource is the one that a statement asks for. Heat's own columns do
    not tell: a check clears *replaced_by* when it begins, and *replaces* is
    cleared once the former resource is deleted.

    :param template_id: a number, or the column that has it.
    """
    newer = orm.aliased(_Resource)
    return sqlalchemy.exists().where(
        newer.stack_id == _Resource.stack_id,
        newer.name == _Resource.name,
        newer.id > _Resource.id,
        newer.current_template_id == template_id,
        newer.action != 'DELETE',
        *(condition(newer) for condition in conditions),
    )


def may_be_replaced(
    context: heat_types.Context, number: int, template_id: int
) -> bool:
    """Say whether a resource may be replaced for a template.

    It may not if an engine works on it, or if a replacement for that template
    exists already and has not failed.

    :param number: of the resource, in the database.
    """
    query = sqlalchemy.select(_Resource.id).where(
        _Resource.id == number,
        _Resource.engine_id.is_(None),
        ~has_replacement(template_id, lambda newer: newer.status != 'FAILED'),
    )
    return rows.finds(context, query)


# Stacks


def load_stack(stack_id: str) -> parser.Stack:
    """Return a stack, to act on with its owner's stored credentials."""
    stack = parser.Stack.load(
        heat_context.get_admin_context(),
        stack_id=stack_id,
        use_stored_context=True,
    )
    # Else Heat deletes the trust of a stack by one Keystone client, and fails
    # to log in by another one for what it deletes after that.
    stack.context.user_id = stack.context.trustor_user_id
    return stack


def traversals(
    context: heat_types.Context, stack_ids: abc.Collection[str]
) -> dict[str, Any]:
    """Read what stacks do now; those that are gone are left out.

    :returns: rows by ID, with ``action``, ``status`` and
        ``current_traversal``: another one for each thing that a stack does.
    """
    query = sqlalchemy.select(
        _Stack.id, _Stack.current_traversal, _Stack.action, _Stack.status
    )
    return {
        row.id: row
        for row in rows.select_in(context, query, _Stack.id, stack_ids)
    }


def with_groups(
    context: heat_types.Context, most: int
) -> list[tuple[str, str]]:
    """Return projects and names of root stacks with groups as one resource."""
    return _root_stacks(context, most, _is_group())


def with_waiting(
    context: heat_types.Context, most: int
) -> list[tuple[str, str]]:
    """Return projects and names of root stacks with deployments that wait."""
    waits = sqlalchemy.exists().where(
        _Deployment.id == _Resource.physical_resource_id,
        _Deployment.status == 'IN_PROGRESS',
    )
    return _root_stacks(context, most, *_IS_BUSY, _is_group() | waits)


def _is_group() -> Any:
    return _Resource.physical_resource_id.endswith(
        f'-{signal_names.GROUP_TAIL}'
    )


def _root_stacks(
    context: heat_types.Context, most: int, *conditions: Any
) -> list[tuple[str, str]]:
    """Return projects and names of root stacks with some resources.

    :param conditions: of a resource and its stack.
    """
    root = orm.aliased(_Stack)
    query = (
        sqlalchemy.select(root.tenant, root.name)
        .select_from(_Resource)
        .join(_Stack, _Stack.id == _Resource.stack_id)
        .join(root, root.id == _Resource.root_stack_id)
        .where(
            *conditions,
            _Stack.deleted_at.is_(None),
            root.deleted_at.is_(None),
        )
        .distinct()
        .order_by(root.tenant, root.name)
        .limit(most)
    )
    return [(row.tenant, row.name) for row in rows.select(context, query)]


def count_busy(context: heat_types.Context) -> int:
    """Return how many resources of all stacks are in progress."""
    query = (
        sqlalchemy.select(sqlalchemy.func.count())
        .select_from(_Resource)
        .join(_Stack, _Resource.stack_id == _Stack.id)
        .where(*_IS_BUSY, _Stack.deleted_at.is_(None))
    )
    return int(rows.select(context, query)[0][0])


# Servers


def find_all(
    context: heat_types.Context, server_ids: abc.Collection[str]
) -> dict[str, heat_values.Server]:
    """Look for servers, by id; one that no stack has is without resources."""
    is_kept = (_Data.resource_id == _Resource.id) & _Data.key.in_(
        (_PUT_URL, _QUEUE)
    )
    query = (
        sqlalchemy.select(
            _Resource.id,
            _Resource.physical_resource_id,
            _Resource.uuid,
            _Resource.action,
            _Resource.name,
            _Resource.stack_id,
            _Stack.name.label('stack_name'),
            _Resource.root_stack_id,
            _Resource.rsrc_metadata,
            _Resource.atomic_key,
            _Data.key,
            _Data.value,
        )
        .join(_Stack, _Stack.id == _Resource.stack_id)
        .outerjoin(_Data, is_kept)
        .where(_Stack.tenant == context.project_id)
        .order_by(_Resource.id)
    )
    ids = dict.fromkeys(server_ids)
    column = _Resource.physical_resource_id
    stacks: dict[int, Any] = {}
    kept: dict[tuple[int, str | None], str | None] = {}
    for row in rows.select_in(context, query, column, ids.keys()):
        stacks[row.id] = row
        kept[row.id, row.key] = row.value
    resources: dict[str, list[heat_values.ServerResource]] = {
        each: [] for each in ids
    }
    for row in stacks.values():
        resources[row.physical_resource_id].append(
            heat_values.ServerResource(
                number=row.id,
                name=row.name,
                stack_id=row.stack_id,
                stack_name=row.stack_name,
                root_stack_id=row.root_stack_id,
                metadata=row.rsrc_metadata or {},
                version=row.atomic_key,
                put_url=kept.get((row.id, _PUT_URL)),
                has_queue=(row.id, _QUEUE) in kept,
                is_itself=row.uuid == row.physical_resource_id,
                is_going=row.action == 'DELETE',
            )
        )
    return {
        each: heat_values.Server(id=each, resources=tuple(stand))
        for each, stand in resources.items()
    }


def above(context: heat_types.Context, stack_id: str) -> list[str]:
    """Return the names of the resources that a stack is nested in."""
    names: list[str] = []
    next_id: str | None = stack_id
    while next_id is not None:
        query = sqlalchemy.select(
            _Stack.owner_id, _Stack.parent_resource_name
        ).where(_Stack.id == next_id)
        next_id = None
        for row in rows.select(context, query):
            next_id = row.owner_id
            if next_id:
                names.insert(0, row.parent_resource_name)
    return names


def write_metadata(
    context: heat_types.Context,
    changed: abc.Collection[heat_values.ServerResource],
) -> set[int]:
    """Write metadata, each over its version; return what was written.

    Resources that an engine has locked, or that have another version now, are
    left as they are.
    """
    return rows.change_each(
        context,
        {
            each.number: sqlalchemy.update(_Resource)
            .where(
                _Resource.id == each.number,
                _Resource.engine_id.is_(None),
                _Resource.atomic_key == each.version,
            )
            .values(rsrc_metadata=each.metadata, atomic_key=each.next_version)
            for each in changed
        },
    )


def versions(
    context: heat_types.Context, numbers: abc.Collection[int]
) -> dict[int, int | None]:
    """Return which versions resources have now."""
    query = sqlalchemy.select(_Resource.id, _Resource.atomic_key).where(
        _Resource.id.in_(numbers)
    )
    return {row.id: row.atomic_key for row in rows.select(context, query)}
