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
from heat.engine import resource
from oslo_config import cfg
import sqlalchemy

from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows

cfg.CONF.import_opt('max_server_name_length', 'heat.common.config')

# What Heat stores with a server that reads its metadata from an object.
_OBJECT = 'metadata_object_name'

# The end of each name that Heat makes up: twelve digits of the UUID.
_TAIL = re.compile('[a-z2-7]{12}')
_TAIL_LENGTH = 12

_Stack, _Resource, _Data = models.Stack, models.Resource, models.ResourceData
_Event = models.Event


@dataclasses.dataclass(frozen=True, kw_only=True)
class Past:
    """The servers that the resource of a name has had, by its stack's events.

    :ivar is_there: whether the resource of that name is there still.
    :ivar is_deployed: whether it was an OS::Heat::DeployedServer.
    :ivar gone: the IDs of servers that no resource has now.
    """

    is_there: bool
    is_deployed: bool
    gone: frozenset[str]


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

    :param names: that Heat has made for them. Those of which it has no event
        with a server's ID are left out.
    """
    stems = _stems(context, project_id)
    ids = {
        name: stems[stem]
        for name in names
        if (stem := name[:-_TAIL_LENGTH]) in stems
    }
    held = _held(context, set().union(*ids.values()))
    return {name: _past(name, of, held) for name, of in ids.items()}


def _past(
    name: str,
    physical_ids: abc.Set[str],
    held: abc.Mapping[str, str],
) -> Past:
    tail = name[-_TAIL_LENGTH:]
    return Past(
        is_there=any(
            _tail(held.get(each, '')) == tail for each in physical_ids
        ),
        is_deployed=any(_tail(each) == tail for each in physical_ids),
        gone=frozenset(physical_ids - held.keys()),
    )


def _stems(
    context: heat_types.Context, project_id: str
) -> dict[str, set[str]]:
    """Return the IDs that resources have had, by their names but the end."""
    query = (
        sqlalchemy.select(
            _Stack.name, _Event.resource_name, _Event.physical_resource_id
        )
        .join(_Stack, _Stack.id == _Event.stack_id)
        .where(
            _Stack.tenant == project_id,
            _Event.physical_resource_id.is_not(None),
        )
        .distinct()
    )
    stems: dict[str, set[str]] = {}
    for row in rows.select(context, query):
        stem = _stem(row.name, row.resource_name or '')
        stems.setdefault(stem, set()).add(row.physical_resource_id)
    return stems


def _stem(stack_name: str, resource_name: str) -> str:
    """Return how the names begin that Heat makes for a server."""
    reduced = resource.Resource.reduce_physical_resource_name(
        f'{stack_name}-{resource_name}-{"x" * _TAIL_LENGTH}',
        cfg.CONF.max_server_name_length,
    )
    return str(reduced[:-_TAIL_LENGTH])


def _held(
    context: heat_types.Context, physical_ids: abc.Collection[str]
) -> dict[str, str]:
    """Return the UUIDs of resources that have physical IDs now, by those."""
    column = _Resource.physical_resource_id
    query = sqlalchemy.select(column, _Resource.uuid)
    found = rows.select_in(context, query, column, physical_ids)
    return {row.physical_resource_id: row.uuid for row in found}


def _tail(made_of: str) -> str:
    """Return the end of the name that Heat makes of a UUID; '' of others."""
    try:
        return str(short_id.get_id(uuid.UUID(made_of)))
    except ValueError:
        return ''
