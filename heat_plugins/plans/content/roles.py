# SPDX-License-Identifier: Apache-2.0
"""The roles of a plan's servers."""

from collections import abc
import dataclasses
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts

#: The file of a plan that may define roles.
PATH: Final = 'roles_data.yaml'

_GROUPS = frozenset(
    {
        'OS::Heat::ResourceGroup',
        'OS::Heat::AutoScalingGroup',
        'OS::Heat::InstanceGroup',
    }
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Role:
    """A role.

    :ivar count: the number of servers by default; None if unknown.
    :ivar data: the role as roles_data.yaml has it.
    """

    name: str
    description: str = ''
    count: int | None = None
    tags: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    data: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )


def from_roles_data(text: str) -> tuple[Role, ...]:
    """Read roles_data.yaml.

    :raises errors.Invalid: it is not a list of maps with a name each.
    """
    entries = texts.load(text, PATH)
    if not isinstance(entries, list):
        raise errors.Invalid(f'{PATH} must be a list of roles')
    check_names(entries, PATH)
    return tuple(
        Role(
            name=data['name'],
            description=' '.join(str(data.get('description') or '').split()),
            count=_count(data.get('CountDefault')),
            tags=_names(data.get('tags')),
            networks=_names(data.get('networks')),
            services=_names(data.get('ServicesDefault')),
            data=data,
        )
        for data in entries
    )


def check_names(entries: abc.Iterable[Any], path: str) -> None:
    """Refuse entries of a list without a text as a name.

    :raises errors.Invalid: an entry has none; YAML reads ``Off`` as false.
    """
    for number, entry in enumerate(entries, 1):
        name = entry.get('name') if isinstance(entry, dict) else None
        if not isinstance(name, str):
            shown = bounds.shortened(repr(name))
            raise errors.Invalid(
                f'Entry {number} of {path} must be a map with a name that is '
                f'a text, and has {shown}; YAML takes words such as Off and '
                'Yes for texts only in quotes'
            )


def from_template(text: str, where: str) -> tuple[Role, ...]:
    """Return the groups of a root template as roles.

    The count may be a parameter's default, as of count: {get_param: Size}.
    """
    template = dict(texts.mapping(text, where))
    parameters = texts.section(template, 'parameters', where)
    roles = []
    for name, resource in texts.section(template, 'resources', where).items():
        if isinstance(resource, dict) and resource.get('type') in _GROUPS:
            place = f'resource {name} of {where}'
            properties = texts.section(dict(resource), 'properties', place)
            size = properties.get('count', properties.get('desired_capacity'))
            if isinstance(size, dict) and list(size) == ['get_param']:
                declared = parameters.get(str(size['get_param']))
                size = (
                    declared.get('default')
                    if isinstance(declared, dict)
                    else None
                )
            roles.append(
                Role(
                    name=name,
                    description=str(resource.get('description') or ''),
                    count=_count(size),
                )
            )
    return tuple(roles)


def _count(value: Any) -> int | None:
    """Return the number of servers of a role; None if it is none."""
    try:
        return int(value)
    except (OverflowError, TypeError, ValueError):
        return None


def _names(value: Any) -> tuple[str, ...]:
    """Return names of a list or map; newer files have a map of networks."""
    if isinstance(value, list | dict):
        return tuple(str(name) for name in value)
    return ()
