# SPDX-License-Identifier: Apache-2.0
"""What Heat's database still knows of servers that Heat has deleted.

A resource that is deleted has no row. The events of its stack stay, also
those of a deleted stack, until "heat-manage purge_deleted" removes them.
"""

from collections import abc
import dataclasses
import re
import uuid

from heat.common import short_id
from heat.db import models
import sqlalchemy

from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows

# What Heat stores with a server that reads its metadata from an object.
_OBJECT = 'metadata_object_name'

# The end of each name that Heat makes up: twelve digits of the UUID.
_TAIL = re.compile('[a-z2-7]{12}')
_TAIL_LENGTH = 12

_Stack, _Resource, _Data = models.Stack, models.Resource, models.ResourceData
_Event = models.Event


# Heat gives a resource its physical ID in these actions. Before that, events
# of the resource tell the name that Heat makes for it instead.
_GIVE_ID = ('CREATE', 'ADOPT')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Past:
    """The servers of one resource, by the events of its stack.

    :ivar is_there: whether Heat still has the resource.
    :ivar is_deployed: whether it was an OS::Heat::DeployedServer.
    :ivar servers: the IDs of its servers, at least one: Heat may have created
        it several times until that succeeded.
    """

    is_there: bool
    is_deployed: bool
    servers: frozenset[str]


@dataclasses.dataclass(frozen=True)
class _Place:
    """Where resources are that replace each other.

    The name of a stack would not do: a later stack may have it, too.
    """

    stack_id: str
    resource_name: str


def is_made_up(name: str) -> bool:
    """Say whether a name may be one that Heat has made for a resource."""
    return bool(_TAIL.fullmatch(name[-_TAIL_LENGTH:])) and '-' in name


def objects_in_use(
    context: heat_types.Context, names: abc.Collection[str]
) -> set[str]:
    """Return which objects hold the metadata of servers that Heat has.

    :param names: of objects.
    """
    query = sqlalchemy.select(_Data.value).where(_Data.key == _OBJECT)
    found = rows.select_in(context, query, _Data.value, names)
    return {row.value for row in found}


def pasts(
    context: heat_types.Context, project_id: str, names: abc.Collection[str]
) -> dict[str, Past]:
    """Return the servers that resources of a project have had.

    :param names: that Heat has made for the resources. Those for which no
        event is left that tells the name, or none that tells the server that
        was then created, are left out.
    """
    stacks = _stacks(context, project_id, names)
    servers: dict[str, set[str]] = {}
    places: dict[str, _Place] = {}
    last: dict[_Place, str] = {}
    for place, physical_id in _created(context, stacks):
        if not _is_uuid(physical_id):
            last[place] = physical_id
        elif (name := last.get(place, '')) in names:
            places[name] = place
            servers.setdefault(name, set()).add(physical_id)
    there = _there(context, stacks)
    return {
        name: _past(name, frozenset(its), there.get(places[name], set()))
        for name, its in servers.items()
    }


def _past(
    name: str, servers: frozenset[str], there: abc.Collection[str]
) -> Past:
    """Return the past of a resource.

    :param there: the UUIDs of resources that are in its place.
    """
    tail = name[-_TAIL_LENGTH:]
    return Past(
        is_there=any(_tail(each) == tail for each in there),
        is_deployed=any(_tail(each) == tail for each in servers),
        servers=servers,
    )


def _stacks(
    context: heat_types.Context, project_id: str, names: abc.Collection[str]
) -> set[str]:
    """Return the IDs of stacks with events that tell one of some names."""
    query = (
        sqlalchemy.select(_Event.stack_id)
        .join(_Stack, _Stack.id == _Event.stack_id)
        .where(_Stack.tenant == project_id)
        .distinct()
    )
    column = _Event.physical_resource_id
    found = rows.select_in(context, query, column, names)
    return {row.stack_id for row in found}


def _created(
    context: heat_types.Context, stack_ids: abc.Collection[str]
) -> abc.Iterator[tuple[_Place, str]]:
    """Yield what events tell of the creation of resources, the oldest first.

    First an event tells the name of a resource, then others its physical ID.
    Of one place, Heat creates one resource at a time.
    """
    query = (
        sqlalchemy.select(
            _Event.stack_id, _Event.resource_name, _Event.physical_resource_id
        )
        .where(
            _Event.resource_action.in_(_GIVE_ID),
            _Event.resource_name.is_not(None),
            _Event.physical_resource_id.is_not(None),
        )
        .order_by(_Event.id)
    )
    for row in rows.select_in(context, query, _Event.stack_id, stack_ids):
        yield (
            _Place(row.stack_id, row.resource_name),
            row.physical_resource_id,
        )


def _there(
    context: heat_types.Context, stack_ids: abc.Collection[str]
) -> dict[_Place, set[str]]:
    """Return the UUIDs of the resources of stacks, by their places."""
    query = sqlalchemy.select(
        _Resource.stack_id, _Resource.name, _Resource.uuid
    )
    found: dict[_Place, set[str]] = {}
    for row in rows.select_in(context, query, _Resource.stack_id, stack_ids):
        place = _Place(row.stack_id, row.name)
        found.setdefault(place, set()).add(row.uuid)
    return found


def _is_uuid(physical_id: str) -> bool:
    """Say whether a physical ID may be a server's."""
    try:
        return str(uuid.UUID(physical_id)) == physical_id.lower()
    except ValueError:
        return False


def _tail(made_of: str) -> str:
    """Return the end of the name that Heat makes of a UUID; '' of others."""
    try:
        return str(short_id.get_id(uuid.UUID(made_of)))
    except ValueError:
        return ''
