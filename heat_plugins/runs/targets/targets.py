# SPDX-License-Identifier: Apache-2.0
"""Finding what a run is to run: a deployment of a stack, and its config."""

from collections import abc
import contextlib
import dataclasses
import functools
import json
import math
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.configs import actions
from heat_plugins.configs import config_checking
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import stack_tree
from heat_plugins.signals import body
from heat_plugins.signals import live

#: What Heat, its classes and we add to the inputs of a derived config.
RESERVED = body.REPORT_INPUTS | live.INPUTS | config_checking.RESERVED_INPUTS

_TRUE = ('true', 't', 'yes', 'y', 'on', '1')
_FALSE = ('false', 'f', 'no', 'n', 'off', '0')

_KINDS = {
    'Number': 'a number',
    'Boolean': 'true or false',
    'Json': 'a map or a list, in JSON',
    'CommaDelimitedList': 'a list, or a text with commas',
    'String': 'a text',
}

# What every server of Heat has.
_OF_SERVERS = 'os_collect_config'


class TemplateSources:
    """Finds what templates say of deployments.

    What a server is given has lost the types of some inputs, and has only the
    shorter of two time limits. Where the template says something that only
    Heat can work out, nothing is found.

    :param places: the resources of a root stack.
    """

    def __init__(
        self,
        heat: stack_tree.Selecting,
        places: abc.Iterable[stack_tree.Place],
    ) -> None:
        self._heat = heat
        self._ids = {
            (place.resource.stack_id, place.resource.name): (
                place.resource.physical_id
            )
            for place in places
            if place.member is None
        }

    def config_of(self, resource: heat_values.Resource) -> str | None:
        """Return the id of the config of a deployment, if it can be told."""
        value = self._value(resource, 'config')
        return value if isinstance(value, str) and value else None

    def metadata_of(self, resource: heat_values.Resource) -> dict[str, str]:
        """Return the metadata that the template gives a server in words."""
        value = self._value(resource, 'metadata')
        if not isinstance(value, dict):
            return {}
        return {
            str(name): str(each)
            for name, each in value.items()
            # A function, which Heat resolves.
            if not isinstance(each, dict)
        }

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
        texts = map(str, (value, None if value is None else otherwise))
        return next(filter(None, map(bounds.number, texts)), None)

    def _value(self, resource: heat_values.Resource, name: str) -> Any:
        """Return a property of a resource, as its template in Heat says.

        Of functions, get_resource and get_param are resolved.
        """
        stack = self._heat.stack(resource.stack_id)
        resources = self._heat.template(stack).get('resources') or {}
        named = resources.get(resource.name) or {}
        value = (named.get('properties') or {}).get(name)
        if isinstance(value, dict) and len(value) == 1:
            if 'get_resource' in value:
                return self._ids.get((stack.id, str(value['get_resource'])))
            if 'get_param' in value:
                return stack.parameters.get(str(value['get_param']), value)
        return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target(run_records.RunTarget):
    """A deployment on a server.

    :ivar config: what the server was given last: the config with the
        stack's own values.
    :ivar declared: the inputs as the template's config declares them.
    :ivar config_id: its ID.
    :ivar standalone: whether it is no deployment of the stack, but a config
        of the user's own for one of its servers.
    """

    config: heat_values.Config
    config_id: str
    declared: abc.Sequence[abc.Mapping[str, Any]] = dataclasses.field(
        repr=False
    )
    standalone: bool = False

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
    ) -> run_records.RunTarget:
        """Return its record as the target of an action.

        :param known_hooks: those that servers are known to have.
        :raises errors.Refused: see `tool`.
        """
        tool = self.tool(name) or ''
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(run_records.RunTarget)
        }
        is_known = actions.is_known_hook(tool, known_hooks)
        values['unknown_hook'] = None if is_known else tool
        if self.resource.rpartition('.')[2] == self.name:
            values['name'] = None
        return run_records.RunTarget(**values)

    @property
    def inputs(self) -> list[abc.Mapping[str, Any]]:
        """The inputs that a run may be given."""
        return [each for each in self.declared if each['name'] not in RESERVED]

    @functools.cached_property
    def actions(self) -> tuple[str, ...]:
        """The actions that its config names, in its order."""
        return actions.actions(self.config.group, self.config.config)

    @property
    def offered(self) -> list[str]:
        """The actions that Heat does not start by itself."""
        return [each for each in self.actions if each not in actions.LIFECYCLE]

    def offer(self) -> dict[str, Any]:
        """Return it for users, with the actions that can run there."""
        config, names = self.config, ('name', 'type', 'default', 'description')
        return {
            'resource': self.resource,
            'server': self.server_id,
            'server_name': self.server_name,
            'actions': {
                name: actions.hook_for(config.group, config.config, name)
                for name in self.actions
            },
            'inputs': [
                {name: each.get(name) for name in names}
                for each in self.inputs
            ],
        }

    def check(self, action: str, inputs: abc.Mapping[str, Any]) -> None:
        """Check that it can run an action with some inputs.

        :raises errors.Refused: there is no such action, or the inputs do not
            fit.
        """
        self.tool(action)
        values(self.declared, inputs, self.current)

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


def matching(
    heat: stack_tree.Selecting,
    stack: heat_values.Stack,
    is_wanted: abc.Callable[[stack_tree.Place], bool],
    config: heat_values.Config | None = None,
) -> list[Target]:
    """Return the deployments of a root stack that are wanted.

    :param is_wanted: asked about each resource; with one that is wanted,
        those inside of it are.
    :param config: a config of the user's own; then the targets are
        servers. One that is in no Heat has no ID.
    """
    places = stack_tree.find(heat, stack)
    chosen = list(filter(is_wanted, places))
    below = stack_tree.below(places, chosen)
    if config is not None:
        servers = [
            place
            for place in below
            if place.resource.physical_id
            and place.resource.type in stack_tree.SERVERS
        ]
        if not servers and len(chosen) == 1:
            # One of a type of the stack's own environment.
            servers = [
                place
                for place in chosen
                if place.resource.physical_id
                and not place.resource.nested_id
                and heat.attribute(place.resource, _OF_SERVERS) is not None
            ]
        return [
            Target(
                stack_id=stack.id,
                stack_name=stack.name,
                resource=place.path,
                name=place.resource.name,
                deployment_id=place.resource.physical_id,
                server_id=place.resource.physical_id,
                config=config,
                config_id=config.id,
                declared=config.inputs,
                server_name=place.path,
                standalone=True,
            )
            for place in servers
        ]
    deployments = [
        place
        for place in below
        if place.resource.physical_id
        and place.resource.type in stack_tree.DEPLOYMENTS
    ]
    if len(chosen) == 1:
        # It may be of a type of the stack's own environment.
        deployments = deployments or chosen
    there = [
        place
        for place in deployments
        if not place.resource.status.startswith('DELETE')
    ]
    return _targets(heat, stack, there, places)


def _targets(
    heat: stack_tree.Selecting,
    root: heat_values.Stack,
    chosen: abc.Iterable[stack_tree.Place],
    places: list[stack_tree.Place],
) -> list[Target]:
    """Return those deployments of a stack that servers have.

    :param places: all of the stack.
    """
    servers = {
        place.resource.physical_id: place.path
        for place in places
        if place.resource.physical_id
    }
    named = TemplateSources(heat, places)

    @functools.cache
    def read(config_id: str) -> heat_values.Config | None:
        with contextlib.suppress(errors.NotFound):
            return heat.config(config_id)
        return None

    owned = []
    for place in chosen:
        try:
            deployment = heat.deployment(place.resource.physical_id)
        except errors.NotFound:
            continue
        if place.member and deployment.server_id != place.member.server_id:
            # What its server had was withdrawn.
            continue
        config = deployment.config
        if config.is_withdrawn:
            # Its server has nothing.
            continue
        # The template declares a group for its members.
        declaring = place.member.group if place.member else place.resource
        source_id = named.config_of(declaring)
        source = read(source_id) if source_id else None
        owned.append(
            Target(
                stack_id=root.id,
                stack_name=root.name,
                resource=place.path,
                name=place.resource.name,
                deployment_id=deployment.id,
                server_id=deployment.server_id,
                config=config,
                config_id=config.id,
                declared=declared_inputs(source, config),
                server_name=servers.get(deployment.server_id),
                source_id=source_id,
                timeout=named.seconds_of(
                    declaring, 'timeout', config.given_timeout
                ),
                delivery_timeout=named.seconds_of(
                    declaring, 'delivery_timeout'
                ),
            )
        )
    return owned


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
    known = {each['name'] for each in source.inputs} | RESERVED
    return [
        *source.inputs,
        *(each for each in given.inputs if each['name'] not in known),
    ]


# Inputs


def values(
    declared: abc.Iterable[abc.Mapping[str, Any]],
    given: abc.Mapping[str, Any],
    current: abc.Mapping[str, Any],
) -> dict[str, Any]:
    """Return the values of the declared inputs for a run.

    :param declared: the inputs, maps with ``name`` and perhaps ``type`` and
        ``default``.
    :param given: what was asked for; a text where a person has typed it.
    :param current: the values that the stack gave its deployment.
    :raises errors.Refused: an input is unknown, of another type, or missing;
        all that is wrong is told at once, and never a value.
    """
    known = {
        str(each['name']): each
        for each in declared
        if each['name'] not in RESERVED
    }
    unknown = [name for name in given if name not in known]
    names = bounds.listed(sorted(known)) or 'none'
    wrong = [
        f'there is no input "{bounds.shortened(name)}" (there are: {names})'
        + bounds.did_you_mean(name, known)
        for name in unknown[: bounds.LISTED]
    ]
    # These are only counted.
    wrong += unknown[bounds.LISTED :]
    result: dict[str, Any] = {}
    for name, each in known.items():
        if name in given:
            kind = str(each.get('type') or 'String')
            try:
                result[name] = converted(given[name], kind)
            except ValueError:
                wrong.append(
                    f'input "{bounds.shortened(name)}" must be '
                    f'{_KINDS.get(kind, kind)} ({kind})'
                )
            continue
        result[name] = current.get(name, each.get('default'))
        if result[name] is None:
            wrong.append(
                f'input "{bounds.shortened(name)}" has no value in the stack '
                'and no default; give it a value'
            )
    if wrong:
        raise errors.Refused(bounds.listed(wrong, between='; '))
    return result


def converted(value: Any, kind: str) -> Any:
    """Return a value as its type has it.

    :raises ValueError: it cannot be one.
    """
    if value is None:
        raise ValueError
    if kind == 'Number':
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError
        if not isinstance(value, float):
            with contextlib.suppress(ValueError):
                return int(value)
        number = float(value)
        if not math.isfinite(number):
            raise ValueError
        return number
    if kind == 'Boolean':
        text = str(value).strip().lower()
        if text not in _TRUE + _FALSE:
            raise ValueError
        return text in _TRUE
    if kind == 'Json':
        parsed = bounds.read_json(value) if isinstance(value, str) else value
        if not isinstance(parsed, (dict, list)):
            raise ValueError
        # NaN and its like are no JSON, though Python reads them.
        json.dumps(parsed, allow_nan=False)
        return parsed
    if kind == 'CommaDelimitedList':
        if isinstance(value, str):
            return [part.strip() for part in value.split(',') if part.strip()]
        if not isinstance(value, list):
            raise ValueError
        return value
    if isinstance(value, (dict, list)):
        raise ValueError
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return str(value)
