# SPDX-License-Identifier: Apache-2.0
"""Finding what a run is to run: a deployment of a stack, and its config."""

from collections import abc
import contextlib
import dataclasses
import re
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.configs import actions
from heat_plugins.configs import handover
from heat_plugins.runs import orchestration
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import template_sources
from heat_plugins.signals import beginning
from heat_plugins.signals import group_ids

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

_PATH = '.'

# The attribute of a group with the states of its members.
_MEMBERS = 'members'

#: What the id of a stack looks like.
STACK_ID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


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
    resource: orchestration.Resource
    parent: str = ''
    member: 'Member | None' = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """A member of a group without nested stack.

    :ivar group: the group's resource.
    :ivar delivered_at: when its last action was delivered, in ISO 8601.
    :ivar ended_at: None while that goes on.
    """

    group: orchestration.Resource
    server_id: str
    action: str
    status: str
    reason: str
    delivered_at: str
    ended_at: str | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Action:
    """An action of a deployment.

    :ivar tool: the hook that runs it on the server.
    """

    resource: str
    server_id: str
    server_name: str | None
    name: str
    tool: str | None
    inputs: abc.Sequence[abc.Mapping[str, Any]] = dataclasses.field(repr=False)

    @property
    def lifecycle(self) -> bool:
        """Whether Heat starts it by itself."""
        return self.name in actions.LIFECYCLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """A deployment on a server.

    :ivar root: the stack at the top, whose container is used.
    :ivar config: what the server was given last: the config with the
        stack's own values.
    :ivar declared: the inputs as the template's config declares them.
    :ivar server_name: the path of the server's resource; None if the stack
        has none.
    :ivar standalone: whether it is no deployment of the stack, but a config
        of somebody's own for one of its servers.
    :ivar guarded: whether an engine ends its runs when the deployment goes.
    :ivar timeout: seconds that an action of it may take; None if the template
        does not say.
    :ivar delivery_timeout: seconds until its server must have reported;
        None if it need not.
    :ivar source_id: the template's config; None if it cannot be told.
    """

    root: orchestration.Stack
    path: str
    resource: orchestration.Resource
    deployment: orchestration.Deployment
    config: orchestration.Config
    declared: abc.Sequence[abc.Mapping[str, Any]] = dataclasses.field(
        repr=False
    )
    server_name: str | None = None
    standalone: bool = False
    guarded: bool = False
    timeout: int | None = None
    delivery_timeout: int | None = None
    source_id: str | None = None

    @property
    def current(self) -> dict[str, Any]:
        """The values that the stack gave it."""
        return {
            str(one['name']): one['value']
            for one in self.config.inputs
            if 'value' in one
        }

    def actions(self) -> list[Action]:
        """Return the actions that its config names, in its order."""
        offered = actions.actions(self.config.group, self.config.config)
        return [self._action(name) for name in offered]

    def action(self, name: str) -> Action:
        """Return an action that may be run.

        :raises errors.Refused: there is none of that name, or it is Heat's
            to run.
        """
        if self.standalone:
            return self._standalone_action(name)
        own = [one.name for one in self.actions() if not one.lifecycle]
        if name in own:
            return self._action(name)
        if name in actions.LIFECYCLE:
            raise errors.Refused(
                f'{name} belongs to the life of the stack, and Heat runs it; '
                f'{self.path} offers {bounds.listed(own) or "no other action"}'
            )
        if self.config.group != actions.COMPONENT:
            raise errors.Refused(
                f'The config of {self.path} is no OS::Heat::SoftwareComponent '
                f'(its group is "{self.config.group}"), so it has no actions '
                'by name; "openstack software deployment apply" runs all of '
                f'it: --config {self.config.id}'
            )
        raise errors.Refused(
            f'{self.path} has no action {bounds.shortened(name)}; it offers '
            f'{bounds.listed(own) or "none"} '
            '(they are compared letter by letter)'
            + bounds.did_you_mean(name, own)
        )

    def _standalone_action(self, name: str) -> Action:
        if not actions.serves(self.config.group, self.config.config, name):
            raise errors.Refused(
                f'The config {self.config.id} has nothing for action {name}'
            )
        return self._action(name)

    def _action(self, name: str) -> Action:
        return Action(
            resource=self.path,
            server_id=self.deployment.server_id,
            server_name=self.server_name,
            name=name,
            tool=handover.tool(self.config.group, self.config.config, name),
            inputs=[
                one
                for one in self.declared
                if one['name'] not in schema.RESERVED
            ],
        )


class Finder:
    """Finds deployments in stacks."""

    def __init__(self, heat: orchestration.Orchestration) -> None:
        self._heat = heat

    def stack(self, name_or_id: str) -> orchestration.Stack:
        """Return a stack.

        :raises errors.NotFound: there is none; it names one that may be meant.
        """
        try:
            return self._heat.stack(name_or_id)
        except errors.NotFound as exc:
            if STACK_ID.fullmatch(name_or_id):
                raise
            known: list[str] = []
            with contextlib.suppress(errors.Error):
                known = self._heat.stack_names()
            hint = bounds.did_you_mean(name_or_id, known)
            raise errors.NotFound(f'{exc}{hint}') from exc

    def root(self, name_or_id: str) -> orchestration.Stack:
        """Return a stack, or the one at the top if it is nested."""
        stack = self.stack(name_or_id)
        while stack.parent:
            stack = self._heat.stack(stack.parent)
        return stack

    def places(self, stack: orchestration.Stack) -> list[Place]:
        """Return all resources of a stack with their paths from there."""
        found = self._heat.resources(stack)
        owners = {one.nested_id: one for one in found if one.nested_id}

        def parent(one: orchestration.Resource) -> str:
            owner = owners.get(one.stack_id)
            return path(owner) if owner else ''

        def path(one: orchestration.Resource) -> str:
            above = parent(one)
            return f'{above}{_PATH}{one.name}' if above else one.name

        named = [
            Place(path=path(one), resource=one, parent=parent(one))
            for one in found
        ]
        for place in named[:]:
            if group_ids.is_one(place.resource.physical_id):
                named += self._members(place)
        return sorted(named, key=lambda place: place.path)

    def _members(self, place: Place) -> abc.Iterator[Place]:
        """Yield the members of a group that is one resource."""
        group = place.resource
        found: abc.Mapping[str, Any] = {}
        with contextlib.suppress(errors.NotFound):
            found = self._heat.attribute(group, _MEMBERS) or {}
        kind = next(
            (each for each in _KINDS if group.type.startswith(each)), _KINDS[0]
        )
        for key, one in found.items():
            if not one.get('deployment'):
                # It was given nothing.
                continue
            yield Place(
                path=f'{place.path}{_PATH}{key}',
                parent=place.path,
                resource=orchestration.Resource(
                    name=key,
                    type=kind,
                    physical_id=one['deployment'],
                    status=f'{one["action"]}_{one["status"]}',
                    stack_id=group.stack_id,
                ),
                member=Member(
                    group=group,
                    server_id=one['server'],
                    action=one['action'],
                    status=one['status'],
                    reason=one.get('status_reason') or '',
                    delivered_at=one['delivered_at'],
                    ended_at=one.get('ended_at'),
                ),
            )

    def targets(self, name_or_id: str, resource: str | None) -> list[Target]:
        """Return the deployment that a resource is, or those inside of it.

        :param name_or_id: a stack.
        :param resource: a name, a path such as ``parent.child``, or a
            physical id; None for all deployments of the stack.
        :raises errors.NotFound: there is none.
        """
        stack = self.stack(name_or_id)
        root, prefix = self._above(stack)
        places = self.places(stack)
        chosen = places if resource is None else _named(places, resource)
        if resource is not None and not chosen:
            raise errors.NotFound(
                f'Stack {stack.name} has no resource {resource}; those of '
                f'nested stacks are named parent.child. {_offer(places)}'
                + bounds.did_you_mean(resource, [p.path for p in places])
            )
        below = _below(places, chosen)
        deployments = [
            place
            for place in below
            if place.resource.type in _KINDS and place.resource.physical_id
        ]
        if not deployments and len(chosen) == 1:
            # A type of the stack's own environment may be one as well.
            deployments = chosen
        servers = server_names(places, prefix)
        found = self._targets(root, prefix, deployments, servers)
        if resource is not None and not found:
            raise errors.NotFound(
                f'Resource {resource} of stack {stack.name} is no software '
                'deployment that a server has been given, and holds none; a '
                'component needs an entry for CREATE, if only an empty one. '
                + _offer(places)
            )
        return found

    def server(
        self, name_or_id: str, resource: str, config: orchestration.Config
    ) -> Target:
        """Return a server of a stack as the target of a config of one's own.

        :param resource: the server's name, path or physical id; only a
            server that is a resource is told of its configs by Heat.
        :param config: the config; one that is in no Heat has no id.
        :raises errors.NotFound: there is no such resource.
        :raises errors.Refused: it is no server; nothing would ever answer.
        """
        stack = self.stack(name_or_id)
        root, prefix = self._above(stack)
        places = self.places(stack)
        found = [
            place
            for place in _named(places, resource)
            if place.resource.physical_id
        ]
        if not found:
            raise errors.NotFound(
                f'Stack {stack.name} has no resource {resource} that is there'
                + (
                    bounds.did_you_mean(resource, [p.path for p in places])
                    or f'. {_offer_servers(places)}'
                )
            )
        server = found[0].resource
        if not self._is_server(server):
            raise errors.Refused(
                f'Resource {found[0].path} of stack {stack.name} is no '
                f'server: its type is {server.type}. {_offer_servers(places)}'
            )
        return _standalone(root, prefix, found[0], config)

    def matching(
        self,
        stack: orchestration.Stack,
        is_wanted: abc.Callable[[Place], bool],
    ) -> list[Target]:
        """Return the deployments of a root stack that are wanted.

        :param is_wanted: asked about each resource; with one that is wanted,
            those inside of it are.
        """
        places = self.places(stack)
        wanted = [
            place
            for place in _below(places, list(filter(is_wanted, places)))
            if place.resource.type in _KINDS and place.resource.physical_id
        ]
        return self._targets(stack, '', wanted, server_names(places))

    def servers(
        self,
        stack: orchestration.Stack,
        config: orchestration.Config,
        is_wanted: abc.Callable[[Place], bool],
    ) -> list[Target]:
        """Return the servers of a root stack that are wanted, as targets.

        :param config: see `server`.
        :param is_wanted: see `matching`.
        """
        places = self.places(stack)
        return [
            _standalone(stack, '', place, config)
            for place in _below(places, list(filter(is_wanted, places)))
            if place.resource.type in _SERVERS and place.resource.physical_id
        ]

    def _is_server(self, resource: orchestration.Resource) -> bool:
        if resource.type in _SERVERS:
            return True
        if resource.nested_id:
            return False
        return self._heat.attribute(resource, _OF_SERVERS) is not None

    def _above(
        self, stack: orchestration.Stack
    ) -> tuple[orchestration.Stack, str]:
        """Return the root of a stack, and the path of the stack in it."""
        if not stack.parent:
            return stack, ''
        root = self.root(stack.parent)
        paths = [
            place.path + _PATH
            for place in self.places(root)
            if place.resource.nested_id == stack.id
        ]
        return root, paths[0] if paths else ''

    def _targets(
        self,
        root: orchestration.Stack,
        prefix: str,
        places: abc.Iterable[Place],
        servers: abc.Mapping[str, str],
    ) -> list[Target]:
        configs: dict[str, orchestration.Config] = {}
        declared: dict[str, orchestration.Config | None] = {}
        named = template_sources.Sources(self._heat)
        found = []
        for place in places:
            if place.resource.status.startswith('DELETE'):
                continue
            try:
                deployment = self._heat.deployment(place.resource.physical_id)
                config_id = deployment.config_id
                if config_id not in configs:
                    configs[config_id] = self._heat.config(config_id)
            except errors.NotFound:
                continue
            told = place.resource
            if place.member is not None:
                told = place.member.group
                if deployment.server_id != place.member.server_id:
                    # What its server had was withdrawn.
                    continue
            source_id = named.config_of(told)
            if source_id and source_id not in declared:
                declared[source_id] = None
                with contextlib.suppress(errors.Error):
                    declared[source_id] = self._heat.config(source_id)
            source = declared.get(source_id or '')
            config = configs[config_id]
            found.append(
                Target(
                    root=root,
                    path=prefix + place.path,
                    resource=place.resource,
                    deployment=deployment,
                    config=config,
                    declared=declared_inputs(source, config),
                    server_name=servers.get(deployment.server_id),
                    source_id=source_id or None,
                    timeout=named.seconds_of(
                        told, 'timeout', _given_timeout(config)
                    ),
                    delivery_timeout=named.seconds_of(
                        told, 'delivery_timeout'
                    ),
                )
            )
        return found


def _standalone(
    root: orchestration.Stack,
    prefix: str,
    place: Place,
    config: orchestration.Config,
) -> Target:
    server_id, path = place.resource.physical_id, prefix + place.path
    return Target(
        root=root,
        path=path,
        resource=place.resource,
        deployment=orchestration.Deployment(
            id=server_id,
            server_id=server_id,
            config_id=config.id,
            action=None,
            status=None,
            reason=None,
        ),
        config=config,
        declared=config.inputs,
        server_name=path,
        standalone=True,
    )


def declared_inputs(
    source: orchestration.Config | None, given: orchestration.Config
) -> list[abc.Mapping[str, Any]]:
    """Return the inputs that a run may be given.

    :param source: the template's config, which has their types; None if it
        cannot be told.
    :param given: what was derived from it for the server: with inputs that
        the stack gives a value and the config does not declare.
    """
    if source is None:
        return list(given.inputs)
    known = {one['name'] for one in source.inputs} | schema.RESERVED
    return [
        *source.inputs,
        *(one for one in given.inputs if one['name'] not in known),
    ]


def server_names(places: list[Place], prefix: str = '') -> dict[str, str]:
    """Return the paths of servers' resources, by the servers' ids.

    :param prefix: what stands in front of each path in the root stack.
    """
    return {
        place.resource.physical_id: prefix + place.path
        for place in places
        if place.resource.physical_id
    }


def _given_timeout(config: orchestration.Config) -> object:
    """Return in how many seconds a server was to answer last, if told."""
    for one in config.inputs:
        if one['name'] == beginning.TIMEOUT_INPUT:
            return one.get('value')
    return None


def _named(places: list[Place], resource: str) -> list[Place]:
    return [
        place
        for place in places
        if resource in (place.path, place.resource.physical_id)
    ]


def _offer(places: list[Place]) -> str:
    """Return a sentence on the deployments that might have been meant."""
    return _offer_of(places, _KINDS, 'deployments', 'software deployments')


def _offer_servers(places: list[Place]) -> str:
    """Return a sentence on the servers that might have been meant."""
    return _offer_of(places, _SERVERS, 'servers', 'servers')


def _offer_of(
    places: list[Place], kinds: abc.Container[str], name: str, none: str
) -> str:
    paths = [place.path for place in places if place.resource.type in kinds]
    if not paths:
        return f'It has no {none}'
    return f'Its {name}: {bounds.listed(paths)}'


def _below(places: list[Place], chosen: list[Place]) -> list[Place]:
    """Return what was chosen and what is nested in it."""
    paths = {place.path for place in chosen}
    return [
        place for place in places if not paths.isdisjoint(_lineage(place.path))
    ]


def _lineage(path: str) -> abc.Iterator[str]:
    """Yield a path, and those that it is nested in."""
    while path:
        yield path
        path = path.rpartition(_PATH)[0]
