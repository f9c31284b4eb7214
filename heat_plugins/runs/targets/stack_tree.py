# SPDX-License-Identifier: Apache-2.0
"""The resources of a stack and of its nested ones, by their paths."""

from collections import abc
import contextlib
import dataclasses
import re
from typing import Any, Protocol

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.signals import signal_names


class StackReader(Protocol):
    """What it takes to find resources of any stack.

    Each may raise `errors.NotFound`, `errors.Denied`, `errors.Unavailable`
    or another `errors.ServiceError`.
    """

    def stack(self, name_or_id: str) -> heat_values.Stack:
        """Return a stack of this project."""

    def stack_names(self) -> list[str]:
        """Return names of stacks of this project, perhaps not all."""

    def stack_ids(self, tag: str | None = None) -> list[str]:
        """Return the ids of the root stacks of this project.

        :param tag: only those that bear it.
        """

    def resources(
        self, stack: heat_values.Stack
    ) -> list[heat_values.Resource]:
        """Return the resources of a stack, nested ones included."""

    def attribute(self, resource: heat_values.Resource, name: str) -> Any:
        """Return an attribute of a resource; None if it has none such."""


class Selecting(StackReader, Protocol):
    """What it takes to find, in any stack, what can be run, too.

    An engine has `engine.database.stack_reading` for it.
    """

    def template(self, stack: heat_values.Stack) -> abc.Mapping[str, Any]:
        """Return the template of a stack."""

    def deployment(self, deployment_id: str) -> heat_values.DeploymentRow:
        """Return a deployment."""

    def config(self, config_id: str) -> heat_values.Config:
        """Return a config."""


class Orchestration(StackReader, Protocol):
    """What it takes to signal and to update stacks, and to draw them, too."""

    def signal(
        self, resource: heat_values.Resource, details: abc.Mapping[str, Any]
    ) -> None:
        """Send a signal to a resource; Heat handles it after the answer."""

    def update_environment(
        self, stack: heat_values.Stack, environment: abc.Mapping[str, Any]
    ) -> None:
        """Begin to update a stack, with more in its environment."""

    def all_events(self, stack: heat_values.Stack) -> list[heat_values.Event]:
        """Return the events of a stack and its nested ones, oldest first."""


#: Types that are deployments.
DEPLOYMENTS = (
    'OS::Heat::SoftwareDeployment',
    'OS::Heat::StructuredDeployment',
)
#: Types that are servers; see also `targets.matching`.
SERVERS = (
    'OS::Nova::Server',
    'OS::Heat::DeployedServer',
    'AWS::EC2::Instance',
)

# What the id of a stack looks like.
_STACK_ID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')

SEPARATOR = '.'

#: The attribute of a group with the states of its members.
MEMBERS = 'members'


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


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupMember:
    """A member of a group without nested stack.

    :ivar group: the group's resource.
    :ivar delivered_at: when its last action was delivered, in ISO 8601.
    :ivar ended_at: None until that ends.
    """

    group: heat_values.Resource
    server_id: str
    action: str
    status: str
    reason: str
    delivered_at: str
    ended_at: str | None


def stack(heat: StackReader, name_or_id: str) -> heat_values.Stack:
    """Return a stack.

    :raises errors.NotFound: there is none; it names one that may be meant.
    """
    try:
        return heat.stack(name_or_id)
    except errors.NotFound as exc:
        if _STACK_ID.fullmatch(name_or_id):
            raise
        known: list[str] = []
        with contextlib.suppress(errors.Error):
            known = heat.stack_names()
        hint = bounds.did_you_mean(name_or_id, known)
        raise errors.NotFound(f'{exc}{hint}') from exc


def root(heat: StackReader, name_or_id: str) -> heat_values.Stack:
    """Return a stack, or the one at the top if it is nested."""
    top = stack(heat, name_or_id)
    while top.parent:
        top = heat.stack(top.parent)
    return top


def find(heat: StackReader, stack: heat_values.Stack) -> list[Place]:
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


def _members(heat: StackReader, place: Place) -> abc.Iterator[Place]:
    """Yield the members of a group that is one resource."""
    group = place.resource
    members: abc.Mapping[str, Any] = {}
    with contextlib.suppress(errors.NotFound):
        members = heat.attribute(group, MEMBERS) or {}
    kind = next(
        (each for each in DEPLOYMENTS if group.type.startswith(each)),
        DEPLOYMENTS[0],
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
                action=member['action'],
                status=member['status'],
                reason=member.get('status_reason') or '',
                delivered_at=member['delivered_at'],
                ended_at=member.get('ended_at'),
            ),
        )


def below(places: list[Place], chosen: list[Place]) -> list[Place]:
    """Return the chosen places and those nested in them."""
    paths = {place.path for place in chosen}
    return [
        place for place in places if not paths.isdisjoint(lineage(place.path))
    ]


def lineage(path: str) -> abc.Iterator[str]:
    """Yield a path, and those that it is nested in."""
    while path:
        yield path
        path = path.rpartition(SEPARATOR)[0]
