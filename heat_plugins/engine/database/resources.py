# SPDX-License-Identifier: Apache-2.0
"""Stacks and resources as Heat's database has them, and servers by those.

A server has no row of its own there: resources stand for it.

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

from heat.common import context as heat_context
from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api
from heat.db import models
from heat.engine import environment
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
_Deployment, _Point = models.SoftwareDeployment, models.SyncPoint
_Template = models.RawTemplate

# An engine that was killed leaves such resources in stacks that no engine
# works on.
_IS_BUSY = (_Resource.status == 'IN_PROGRESS', _Stack.status == 'IN_PROGRESS')

# What neither a resource nor its stack does while what it keeps is in force.
_OFF = ('SUSPEND', 'DELETE')

Key: TypeAlias = tuple[int, int | None, bool]

#: Names a sync point: the ID of its resource or stack, and whether it is for
#: an update, not for cleaning up.
PointKey: TypeAlias = tuple[str, bool]


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
        """The identity of this state of the resource."""
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
    return stack.user_creds_id is not None and rows.finds(
        stack.context,
        sqlalchemy.select(_Resource.id).where(
            _Resource.name == resource.name,
            _Resource.stack_id == _Stack.id,
            _Stack.user_creds_id == stack.user_creds_id,
        ),
    )


def datum(context: heat_types.Context, number: int, key: str) -> str | None:
    """Return a datum of a resource by its key; None if there is none."""
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


def replacing_datum(
    number: int, key: str, before: str, after: str
) -> sqlalchemy.Update:
    """Return an UPDATE that replaces a value if it is still the same."""
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
    """Return the data that resources of all projects keep by a key.

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
    return rows.finds(
        context,
        sqlalchemy.select(_Deployment.id)
        .join(_Resource, is_of_resource())
        .where(_Resource.root_stack_id == root_stack_id),
    )


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
    """Mark failed deployments that another one replaces on its server.

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
    """Return the users of the resources that one replaces, until they go.

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
    return {
        row.physical_resource_id: row.value
        for row in rows.select(context, query)
    }


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
    ids = {each for row in rows.select(context, query) for each in row}
    return set(filter(signal_names.is_group, ids))


def show_replaced(stack: parser.Stack, name: str, user_id: str) -> bool:
    """Let a stack show the server of a user in place of its replacement.

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
    return rows.finds(
        context,
        sqlalchemy.select(_Resource.id).where(
            _Resource.id == number,
            _Resource.engine_id.is_(None),
            ~has_replacement(
                template_id, lambda newer: newer.status != 'FAILED'
            ),
        ),
    )


# Stacks


def stack_names(context: heat_types.Context, most: int) -> list[str]:
    """Return names of root stacks of the project, perhaps not all."""
    query = sqlalchemy.select(_Stack.name).where(
        _is_own(context), _Stack.owner_id.is_(None)
    )
    return [row.name for row in rows.select(context, query.limit(most))]


def stacks_with_templates(
    context: heat_types.Context,
    ids: abc.Collection[str],
    name: str | None = None,
) -> abc.Iterator[Any]:
    """Yield stacks of the project with their templates and environments.

    :param name: also those of this name, as the database compares names.
    """
    query = (
        sqlalchemy.select(
            _Stack.id,
            _Stack.name,
            _Stack.action,
            _Stack.status,
            _Stack.owner_id,
            _Stack.raw_template_id,
            _Template.template,
            _Template.environment,
        )
        .join(_Template, _Template.id == _Stack.raw_template_id)
        .where(_is_own(context))
    )
    yield from rows.select_in(context, query, _Stack.id, ids)
    if name is not None:
        yield from rows.select(context, query.where(_Stack.name == name))


def templates(
    context: heat_types.Context, numbers: abc.Collection[int]
) -> abc.Iterator[Any]:
    """Yield templates: ``id`` and ``template``."""
    query = sqlalchemy.select(_Template.id, _Template.template)
    return rows.select_in(context, query, _Template.id, numbers)


def below(context: heat_types.Context, root_stack_id: str) -> list[Any]:
    """Return the resources of a root stack, those of nested stacks included.

    Those that Heat has replaced come before those that stay.
    """
    query = (
        sqlalchemy.select(
            _Resource.name,
            _Resource.physical_resource_id,
            _Resource.action,
            _Resource.status,
            _Resource.stack_id,
            _Resource.current_template_id,
        )
        .where(_Resource.root_stack_id == root_stack_id)
        .order_by(_Resource.id)
    )
    return rows.select(context, query)


def _is_own(context: heat_types.Context) -> Any:
    """Return the condition that a stack is the caller's and not deleted."""
    return (_Stack.tenant == context.project_id) & _Stack.deleted_at.is_(None)


def projects_with_users_in(
    context: heat_types.Context,
    users_project: str,
    projects: abc.Collection[str],
) -> set[str]:
    """Return the projects with stacks that have users in another project.

    :param users_project: that project; Heat makes the users of stacks there.
    :param projects: those that may be returned.
    """
    query = sqlalchemy.select(_Stack.tenant).where(
        _Stack.tenant.in_(projects),
        _Stack.stack_user_project_id == users_project,
    )
    return {row.tenant for row in rows.select(context, query)}


def has_users_in(context: heat_types.Context, users_project: str) -> bool:
    """Say whether a stack of the project has its users in another project."""
    return rows.finds(
        context,
        sqlalchemy.select(_Stack.id).where(
            _is_own(context), _Stack.stack_user_project_id == users_project
        ),
    )


def project_of_stack(context: heat_types.Context, stack_id: str) -> str:
    """Return the project of a stack."""
    query = sqlalchemy.select(_Stack.tenant).where(_Stack.id == stack_id)
    return str(rows.select(context, query)[0].tenant)


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
    """Read the current actions of stacks that exist.

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
    """Return the condition that a resource is a group without nested stack."""
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
                is_deleting=row.action == 'DELETE',
            )
        )
    return {
        each: heat_values.Server(id=each, resources=tuple(parts))
        for each, parts in resources.items()
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
    """Write metadata over known versions; return the numbers written.

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


# Locks of engines


def held(context: heat_types.Context) -> list[Held]:
    """Return the resources that live or dead engines are working on.

    This includes what was taken from them and not checked again yet, and
    replacements that no engine has started.
    """
    # Of several of a name that a traversal has made, each in the place of one
    # before.
    is_last = ~has_replacement(_Stack.raw_template_id)
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
            is_of_resource(), _Deployment.status == 'IN_PROGRESS'
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
    return rows.finds(
        context,
        sqlalchemy.select(models.Snapshot.id).where(
            models.Snapshot.stack_id == stack_id
        ),
    )


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
    """Return the conditions of one update's points of Heat's graph."""
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
