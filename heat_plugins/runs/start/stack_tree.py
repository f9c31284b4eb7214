# SPDX-License-Identifier: Apache-2.0
"""The resources of a stack and of its nested ones, by their paths."""

from collections import abc
import contextlib
import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.runs import orchestration
from heat_plugins.signals import signal_names

_KINDS = (
    'OS::Heat::SoftwareDeployment',
    'OS::Heat::StructuredDeployment',
)
# Types that are servers; others, such as a type of the stack's environment,
# are asked for what every server of Heat has.
_SERVERS = (
    'OS::Nova::Server',
    'OS::Heat::DeployedServer',
    'AWS::EC2::Instance',
)
_OF_SERVERS = 'os_collect_config'

SEPARATOR = '.'

# The attribute of a group with the states of its members.
_MEMBERS = 'members'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """A resource, and where it is.

    :ivar path: its name after those of the resources that it is nested in.
    :ivar parent: the path of the one that it is nested in; or ''.
    :ivar member: what is known of a member of a group that is one resource.
        The group's template says what such a member is; Heat has no resource
        for it.
    """

    path: str
    resource: heat_values.Resource
    parent: str = ''
    member: 'GroupMember | None' = None

    @property
    def is_deployment(self) -> bool:
        """Whether it is a deployment that Heat has created."""
        return bool(self.resource.physical_id) and (
            self.resource.type in _KINDS
        )

    @property
    def declaring(self) -> heat_values.Resource:
        """The resource by which a template says what a deployment is."""
        return self.member.group if self.member else self.resource

    @property
    def is_server(self) -> bool:
        """Whether it is a server that Heat has created."""
        return bool(self.resource.physical_id) and (
            self.resource.type in _SERVERS
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupMember:
    """A member of a group without nested stack.

    :ivar group: the group's resource.
    :ivar config_id: what its server was given last; None if that was
        withdrawn, or if heat-engine is of an earlier release.
    :ivar config_digest: see `heat_values.DerivedConfig`; None as for that.
    :ivar delivered_at: when its last action was delivered, in ISO 8601.
    :ivar ended_at: None until that ends.
    """

    group: heat_values.Resource
    server_id: str
    config_id: str | None
    config_digest: str | None
    action: str
    status: str
    reason: str
    delivered_at: str
    ended_at: str | None


def find(
    heat: orchestration.Orchestration, stack: heat_values.Stack
) -> list[Place]:
    """Return all resources of a stack with their paths from there."""
    resources = heat.resources(stack)
    owners = {
        resource.nested_id: resource
        for resource in resources
        if resource.nested_id
    }

    def parent(resource: heat_values.Resource) -> str:
        owner = owners.get(resource.stack_id)
        return path(owner) if owner else ''

    def path(resource: heat_values.Resource) -> str:
        above = parent(resource)
        return f'{above}{SEPARATOR}{resource.name}' if above else resource.name

    named = [
        Place(path=path(resource), resource=resource, parent=parent(resource))
        for resource in resources
    ]
    for place in named[:]:
        if signal_names.is_group(place.resource.physical_id):
            named += _members(heat, place)
    return sorted(named, key=lambda place: place.path)


def _members(
    heat: orchestration.Orchestration, place: Place
) -> abc.Iterator[Place]:
    """Yield the members of a group that is one resource."""
    group = place.resource
    members: abc.Mapping[str, Any] = {}
    with contextlib.suppress(errors.NotFound):
        members = heat.attribute(group, _MEMBERS) or {}
    kind = next(
        (each for each in _KINDS if group.type.startswith(each)), _KINDS[0]
    )
    for key, member in members.items():
        if not member.get('deployment'):
            # It was given nothing.
            continue
        yield Place(
            path=f'{place.path}{SEPARATOR}{key}',
            parent=place.path,
            resource=heat_values.Resource(
                name=key,
                type=kind,
                physical_id=member['deployment'],
                status=f'{member["action"]}_{member["status"]}',
                stack_id=group.stack_id,
            ),
            member=GroupMember(
                group=group,
                server_id=member['server'],
                config_id=member.get('config'),
                config_digest=member.get('config_digest'),
                action=member['action'],
                status=member['status'],
                reason=member.get('status_reason') or '',
                delivered_at=member['delivered_at'],
                ended_at=member.get('ended_at'),
            ),
        )


def is_server(
    heat: orchestration.Orchestration, resource: heat_values.Resource
) -> bool:
    """Say whether a resource is a server, be it by a type of its own."""
    if resource.type in _SERVERS:
        return True
    if resource.nested_id:
        return False
    return heat.attribute(resource, _OF_SERVERS) is not None


def server_names(places: list[Place], prefix: str = '') -> dict[str, str]:
    """Return the paths of servers' resources, by the servers' ids.

    :param prefix: what stands in front of each path in the root stack.
    """
    return {
        place.resource.physical_id: prefix + place.path
        for place in places
        if place.resource.physical_id
    }


def named(places: list[Place], resource: str) -> list[Place]:
    return [
        place
        for place in places
        if resource in (place.path, place.resource.physical_id)
    ]


def offer_deployments(places: list[Place]) -> str:
    """Return a sentence on the deployments that might have been meant."""
    return _offer_of(places, _KINDS, 'deployments', 'software deployments')


def offer_servers(places: list[Place]) -> str:
    """Return a sentence on the servers that might have been meant."""
    return _offer_of(places, _SERVERS, 'servers', 'servers')


def _offer_of(
    places: list[Place], kinds: abc.Container[str], name: str, none: str
) -> str:
    paths = [place.path for place in places if place.resource.type in kinds]
    if not paths:
        return f'It has no {none}'
    return f'Its {name}: {bounds.listed(paths)}'


def below(places: list[Place], chosen: list[Place]) -> list[Place]:
    """Return what was chosen and what is nested in it."""
    paths = {place.path for place in chosen}
    return [
        place for place in places if not paths.isdisjoint(lineage(place.path))
    ]


def lineage(path: str) -> abc.Iterator[str]:
    """Yield a path, and those that it is nested in."""
    while path:
        yield path
        path = path.rpartition(SEPARATOR)[0]
