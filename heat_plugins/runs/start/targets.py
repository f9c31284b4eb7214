# SPDX-License-Identifier: Apache-2.0
"""Finding what a run is to run: a deployment of a stack, and its config."""

from collections import abc
import contextlib
import dataclasses
import re
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.configs import actions
from heat_plugins.configs import hooks
from heat_plugins.runs import orchestration
from heat_plugins.runs import runs
from heat_plugins.runs.start import schema
from heat_plugins.runs.start import stack_tree

#: What the id of a stack looks like.
STACK_ID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


class TemplateSources:
    """Finds what templates say of deployments.

    What a server is given has lost the types of some inputs, and has only the
    shorter of two time limits. Where the template says something that only
    Heat can work out, nothing is found.

    :param places: the resources of a root stack, if they are known.
    :param root: that stack.
    """

    def __init__(
        self,
        heat: orchestration.Orchestration,
        places: abc.Iterable[stack_tree.Place] = (),
        root: heat_values.Stack | None = None,
    ) -> None:
        self._heat = heat
        self._root = root
        self._resources = [
            each.resource for each in places if each.member is None
        ]
        self._stacks: dict[str, tuple[Any, Any, dict[str, str]]] = {}

    def load(self, stack_id: str) -> None:
        """Read what the template of a stack says, if that can be read."""
        with contextlib.suppress(errors.Error):
            self._read(stack_id)

    def config_of(self, resource: heat_values.Resource) -> str | None:
        """Return the id of the config of a deployment, if it can be told."""
        value = self._value(resource, 'config')
        return value if isinstance(value, str) and value else None

    def metadata_of(self, resource: heat_values.Resource) -> dict[str, str]:
        """Return the metadata that the template gives a server."""
        value = self._value(resource, 'metadata')
        if not isinstance(value, dict):
            return {}
        return {str(name): str(each) for name, each in value.items()}

    def seconds_of(
        self,
        resource: heat_values.Resource,
        name: str,
        otherwise: object = None,
    ) -> int | None:
        """Return a time limit of a deployment.

        :param name: of its property.
        :param otherwise: what serves where the template has one that cannot
            be told; what is not a number is None.
        """
        value = self._value(resource, name)
        for each in (value, None if value is None else otherwise):
            try:
                seconds = int(str(each))
            except ValueError:
                continue
            if seconds > 0:
                return seconds
        return None

    def _value(self, resource: heat_values.Resource, name: str) -> Any:
        """Return what a property has in the template, or a function's map."""
        try:
            stack, template, ids = self._read(resource.stack_id)
        except errors.Error:
            return None
        named = (template.get('resources') or {}).get(resource.name) or {}
        value = (named.get('properties') or {}).get(name)
        if isinstance(value, dict) and len(value) == 1:
            if 'get_resource' in value:
                return ids.get(str(value['get_resource']))
            if 'get_param' in value:
                return stack.parameters.get(str(value['get_param']), value)
        return value

    def _read(self, stack_id: str) -> tuple[Any, Any, dict[str, str]]:
        if stack_id not in self._stacks:
            try:
                self._stacks[stack_id] = self._said(stack_id)
            except errors.Unavailable:
                raise
            except errors.Error:
                # Asked again it would be refused again.
                self._stacks[stack_id] = (None, {}, {})
        return self._stacks[stack_id]

    def _said(self, stack_id: str) -> tuple[Any, Any, dict[str, str]]:
        stack = self._root
        if stack is None or stack.id != stack_id:
            stack = self._heat.stack(stack_id)
        return (
            stack,
            self._heat.template(stack),
            {
                resource.name: resource.physical_id
                for resource in self._resources or self._heat.resources(stack)
                if resource.stack_id == stack.id
            },
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target(runs.RunTarget):
    """A deployment on a server.

    :ivar config: what the server was given last: the config with the
        stack's own values. See `is_own`.
    :ivar declared: the inputs as the template's config declares them.
    :ivar config_id: that of its own server.
    :ivar standalone: whether it is no deployment of the stack, but a config
        of the user's own for one of its servers.
    :ivar guarded: whether an engine ends its runs when the deployment goes.
    :ivar source: the template's config; None if it cannot be read.
    """

    config: heat_values.Config
    config_id: str
    declared: abc.Sequence[abc.Mapping[str, Any]] = dataclasses.field(
        repr=False
    )
    standalone: bool = False
    guarded: bool = False
    source: heat_values.Config | None = dataclasses.field(
        default=None, repr=False
    )

    @property
    def is_own(self) -> bool:
        """Whether `config` is that of this server.

        If not, it is that of another member of its group, which was given the
        same with perhaps other values: enough to tell whether an action and
        inputs fit.
        """
        return self.config.id == self.config_id

    @property
    def current(self) -> dict[str, Any]:
        """The values that the stack gave it."""
        return {
            str(each['name']): each['value']
            for each in self.config.inputs
            if 'value' in each
        }

    def with_action(
        self, name: str, known_hooks: abc.Collection[str]
    ) -> runs.RunTarget:
        """Return what a record says of it as the target of an action.

        :param known_hooks: those that servers are known to have.
        :raises errors.Refused: see `tool`.
        """
        tool = self.tool(name) or ''
        target = runs.RunTarget(**runs.shared(runs.RunTarget, self))
        is_last = self.resource.rpartition('.')[2] == self.name
        return dataclasses.replace(
            target,
            unknown_hook=None if hooks.is_known(tool, known_hooks) else tool,
            name=None if is_last else self.name,
        )

    @property
    def inputs(self) -> list[abc.Mapping[str, Any]]:
        """The inputs that a run may be given."""
        return [
            each
            for each in self.declared
            if each['name'] not in schema.RESERVED
        ]

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that its config names, in its order."""
        return actions.actions(self.config.group, self.config.config)

    @property
    def offered(self) -> list[str]:
        """Those of them that Heat does not start by itself."""
        return [each for each in self.actions if each not in actions.LIFECYCLE]

    def tool(self, name: str) -> str | None:
        """Return the hook that runs an action on the server.

        :raises errors.Refused: there is no action of that name, or it is
            Heat's to run.
        """
        group, config = self.config.group, self.config.config
        if self.standalone and not actions.serves(group, config, name):
            raise errors.Refused(
                f'The config {self.config.id} has nothing for action {name}'
            )
        if self.standalone or name in self.offered:
            return actions.hook_for(group, config, name)
        offered = bounds.listed(self.offered)
        if name in actions.LIFECYCLE:
            raise errors.Refused(
                f"Only Heat runs {name}, which is a part of the stack's life "
                f'cycle; {self.resource} offers '
                f'{offered or "no other action"}'
            )
        if group != actions.COMPONENT:
            raise errors.Refused(
                f'The config of {self.resource} is not an '
                'OS::Heat::SoftwareComponent (its group is '
                f'"{group}"), so it has no actions by name; '
                '"openstack software deployment run start" runs all of it: '
                f'--config {self.config.id}'
            )
        raise errors.Refused(
            f'{self.resource} has no action {bounds.shortened(name)}; it '
            f'offers {offered or "none"} (names are case-sensitive)'
            + bounds.did_you_mean(name, self.offered)
        )


class Finder:
    """Finds deployments in stacks.

    :param pool: for many requests at a time.
    """

    def __init__(
        self,
        heat: orchestration.Orchestration,
        pool: pools.Pool | None = None,
    ) -> None:
        self._heat = heat
        self._pool = pool or pools.Pool(attempts=1)

    def stack(self, name_or_id: str) -> heat_values.Stack:
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

    def root(self, name_or_id: str) -> heat_values.Stack:
        """Return a stack, or the one at the top if it is nested."""
        stack = self.stack(name_or_id)
        while stack.parent:
            stack = self._heat.stack(stack.parent)
        return stack

    def targets(self, name_or_id: str, *resources: str | None) -> list[Target]:
        """Return the deployments that resources are, or those inside of them.

        :param name_or_id: a stack.
        :param resources: names, paths such as ``parent.child``, or physical
            ids; none or None for all deployments of the stack.
        :raises errors.NotFound: one of them is none, and holds none.
        """
        stack = self.stack(name_or_id)
        root, prefix = self._above(stack)
        places = stack_tree.find(self._heat, stack)
        parts = {
            resource: _deployments(stack, places, resource)
            for resource in resources or (None,)
        }
        deployments = {
            place.path: place for part in parts.values() for place in part
        }
        targets = self._targets(root, prefix, deployments.values(), places)
        there = {each.resource for each in targets}
        for resource, part in parts.items():
            if resource is not None and there.isdisjoint(
                prefix + place.path for place in part
            ):
                raise errors.NotFound(
                    f'Resource {resource} of stack {stack.name} neither is '
                    'nor contains a software deployment that was delivered '
                    'to a server. A component needs an entry for CREATE, '
                    'even an empty one. '
                    + stack_tree.offer_deployments(places)
                )
        return targets

    def server(
        self, name_or_id: str, resource: str, config: heat_values.Config
    ) -> Target:
        """Return a server of a stack as the target of a config of one's own.

        :param resource: the server's name, path or physical id; only a
            server that is a resource is told of its configs by Heat.
        :param config: the config; one that is in no Heat has no id.
        :raises errors.NotFound: there is no such resource.
        :raises errors.Refused: it is not a server; nothing would ever answer.
        """
        stack = self.stack(name_or_id)
        root, prefix = self._above(stack)
        places = stack_tree.find(self._heat, stack)
        servers = [
            place
            for place in stack_tree.named(places, resource)
            if place.resource.physical_id
        ]
        if not servers:
            raise errors.NotFound(
                f'Stack {stack.name} has no resource {resource} in Heat'
                + (
                    bounds.did_you_mean(resource, [p.path for p in places])
                    or f'. {stack_tree.offer_servers(places)}'
                )
            )
        server = servers[0].resource
        if not stack_tree.is_server(self._heat, server):
            raise errors.Refused(
                f'Resource {servers[0].path} of stack {stack.name} is not a '
                f'server: its type is {server.type}. '
                + stack_tree.offer_servers(places)
            )
        return _standalone(root, prefix, servers[0], config)

    def matching(
        self,
        stack: heat_values.Stack,
        is_wanted: abc.Callable[[stack_tree.Place], bool],
        config: heat_values.Config | None = None,
    ) -> list[Target]:
        """Return the deployments of a root stack that are wanted.

        :param is_wanted: asked about each resource; with one that is wanted,
            those inside of it are.
        :param config: see `server`; then the targets are servers.
        """
        places = stack_tree.find(self._heat, stack)
        chosen = list(filter(is_wanted, places))
        below = stack_tree.below(places, chosen)
        if config is not None:
            return [
                _standalone(stack, '', place, config)
                for place in self._servers(chosen, below)
            ]
        deployments = [place for place in below if place.is_deployment]
        return self._targets(stack, '', deployments, places)

    def _servers(
        self,
        chosen: list[stack_tree.Place],
        below: list[stack_tree.Place],
    ) -> list[stack_tree.Place]:
        """Return the servers of a stack that are wanted.

        :param below: what was chosen, and what is nested in it.
        """
        servers = [place for place in below if place.is_server]
        if not servers and len(chosen) == 1:
            # One of a type of the stack's own environment.
            servers = [
                place
                for place in chosen
                if place.resource.physical_id
                and stack_tree.is_server(self._heat, place.resource)
            ]
        return servers

    def _above(
        self, stack: heat_values.Stack
    ) -> tuple[heat_values.Stack, str]:
        """Return the root of a stack, and the path of the stack in it."""
        if not stack.parent:
            return stack, ''
        root = self.root(stack.parent)
        paths = [
            place.path + stack_tree.SEPARATOR
            for place in stack_tree.find(self._heat, root)
            if place.resource.nested_id == stack.id
        ]
        return root, paths[0] if paths else ''

    def _targets(
        self,
        root: heat_values.Stack,
        prefix: str,
        chosen: abc.Iterable[stack_tree.Place],
        places: list[stack_tree.Place],
    ) -> list[Target]:
        """Return those deployments of a stack that servers have.

        :param prefix: the path of the stack in its root, and a separator.
        :param places: all of the stack.
        """
        servers = stack_tree.server_names(places, prefix)
        named = TemplateSources(self._heat, places, root)
        given = self._given(
            [
                place
                for place in chosen
                if not place.resource.status.startswith('DELETE')
            ]
        )
        its_stacks = {place.declaring.stack_id for place, _ in given}
        self._pool.each(named.load, its_stacks)
        configs = self._configs(_series(given))
        sources = self._sources(
            [named.config_of(place.declaring) for place, _ in given]
        )
        return [
            Target(
                stack_id=root.id,
                stack_name=root.name,
                resource=prefix + place.path,
                name=place.resource.name,
                deployment_id=deployment.id,
                server_id=deployment.server_id,
                config=config,
                config_id=deployment.config_id,
                declared=declared_inputs(source, config),
                server_name=servers.get(deployment.server_id),
                source=source,
                source_id=named.config_of(place.declaring),
                timeout=named.seconds_of(
                    place.declaring, 'timeout', config.given_timeout
                ),
                delivery_timeout=named.seconds_of(
                    place.declaring, 'delivery_timeout'
                ),
            )
            for (place, deployment), source in zip(given, sources, strict=True)
            if (config := configs[deployment.config_id]) is not None
        ]

    def _given(
        self, places: abc.Sequence[stack_tree.Place]
    ) -> list[tuple[stack_tree.Place, heat_values.Deployment]]:
        """Return the deployments that servers have, and where they are."""
        deployments = self._pool.each(self._deployment, places)
        return [
            (place, deployment)
            for place, deployment in zip(places, deployments, strict=True)
            if deployment is not None
        ]

    def _deployment(
        self, place: stack_tree.Place
    ) -> heat_values.Deployment | None:
        """Return what a server was given last; None for nothing."""
        resource, member = place.resource, place.member
        if member is not None and member.config_id is not None:
            return heat_values.Deployment(
                id=resource.physical_id,
                server_id=member.server_id,
                config_id=member.config_id,
                action=member.action,
                status=member.status,
                reason=member.reason,
            )
        try:
            deployment = self._heat.deployment(resource.physical_id)
        except errors.NotFound:
            return None
        if member and deployment.server_id != member.server_id:
            # What its server had was withdrawn.
            return None
        return deployment

    def _configs(
        self, series: list[list[str]]
    ) -> dict[str, heat_values.Config | None]:
        """Read configs of servers; the first stands for those that are alike.

        Where the first and the last of a series are alike, all of it is.

        :param series: IDs of configs that were made one after another.
        :returns: by the ID of each; None for what Heat does not have.
        """
        known: dict[str, heat_values.Config | None] = {}
        while series:
            ends = dict.fromkeys(
                e for ids in series for e in (ids[0], ids[-1])
            )
            new = [each for each in ends if each not in known]
            read = self._pool.each(self._config, new)
            known.update(zip(new, read, strict=True))
            halves = []
            for ids in series:
                if _are_alike(known[ids[0]], known[ids[-1]]):
                    known |= dict.fromkeys(ids[1:-1], known[ids[0]])
                elif len(ids) > 2:
                    middle = len(ids) // 2
                    halves += [ids[:middle], ids[middle:]]
            series = halves
        return known

    def _config(
        self, config_id: str, lost: type[errors.Error] = errors.NotFound
    ) -> heat_values.Config | None:
        with contextlib.suppress(lost):
            return self._heat.config(config_id)
        return None

    def _sources(
        self, ids: abc.Sequence[str | None]
    ) -> list[heat_values.Config | None]:
        """Return the configs of templates, as far as they can be read."""
        wanted = list(dict.fromkeys(filter(None, ids)))
        read = self._pool.each(
            lambda each: self._config(each, errors.Error), wanted
        )
        known = dict(zip(wanted, read, strict=True))
        return [known[each] if each else None for each in ids]


def _deployments(
    stack: heat_values.Stack,
    places: list[stack_tree.Place],
    resource: str | None,
) -> list[stack_tree.Place]:
    """Return the deployments inside of a resource, or in the whole stack.

    :raises errors.NotFound: there is no such resource.
    """
    chosen = places
    if resource is not None:
        chosen = stack_tree.named(places, resource)
        if not chosen:
            raise errors.NotFound(
                f'Stack {stack.name} has no resource {resource}; those of '
                'nested stacks are named parent.child. '
                + stack_tree.offer_deployments(places)
                + bounds.did_you_mean(resource, [p.path for p in places])
            )
    below = stack_tree.below(places, chosen)
    deployments = [place for place in below if place.is_deployment]
    # A type of the stack's own environment may be one as well.
    return deployments or (chosen if len(chosen) == 1 else [])


def _standalone(
    root: heat_values.Stack,
    prefix: str,
    place: stack_tree.Place,
    config: heat_values.Config,
) -> Target:
    server_id, path = place.resource.physical_id, prefix + place.path
    return Target(
        stack_id=root.id,
        stack_name=root.name,
        resource=path,
        name=place.resource.name,
        deployment_id=server_id,
        server_id=server_id,
        config=config,
        config_id=config.id,
        declared=config.inputs,
        server_name=path,
        standalone=True,
    )


def with_own_config(heat: orchestration.Deploying, target: Target) -> Target:
    """Return a target with what its own server was given.

    :raises errors.NotFound: the server was given something else meanwhile.
    """
    if target.is_own:
        return target
    config = heat.config(target.config_id)
    declared = declared_inputs(target.source, config)
    return dataclasses.replace(target, config=config, declared=declared)


def declared_inputs(
    source: heat_values.Config | None, given: heat_values.Config
) -> list[abc.Mapping[str, Any]]:
    """Return the inputs that a run may be given.

    :param source: the template's config, which has their types; None if it
        cannot be told.
    :param given: what was derived from it for the server: with inputs that
        the stack gives a value and the config does not declare.
    """
    if source is None:
        return list(given.inputs)
    known = {each['name'] for each in source.inputs} | schema.RESERVED
    return [
        *source.inputs,
        *(each for each in given.inputs if each['name'] not in known),
    ]


def _series(
    given: abc.Iterable[tuple[stack_tree.Place, heat_values.Deployment]],
) -> list[list[str]]:
    """Return the configs of each group in the order of their delivery.

    Its members are given the same until it is updated, and again what they
    had if that is rolled back. So those that heat-engine says to be unlike
    are apart; one of an earlier release says nothing. Any other deployment
    stands for itself.
    """
    series: dict[object, list[tuple[str, str]]] = {}
    for place, deployment in given:
        key: object = deployment.id
        at = ''
        if place.member is not None:
            key = place.member.config_digest, place.parent
            at = place.member.delivered_at
        series.setdefault(key, []).append((at, deployment.config_id))
    return [
        [config_id for _, config_id in sorted(made, key=lambda each: each[0])]
        for made in series.values()
    ]


def _are_alike(
    one: heat_values.Config | None, other: heat_values.Config | None
) -> bool:
    """Say whether two configs differ at most in the values of inputs."""
    if one is None or other is None:
        return False
    return one.digest == other.digest
