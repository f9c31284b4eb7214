# SPDX-License-Identifier: Apache-2.0
"""Which resources a plan has, and how deep its templates nest."""

from collections import abc
import dataclasses
from typing import Any, Final

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import links
from heat_plugins.plans.content import references

# Each of them is a nested stack by itself.
_GROUPS: Final = frozenset(
    {
        'OS::Heat::AutoScalingGroup',
        'OS::Heat::InstanceGroup',
        'OS::Heat::ResourceChain',
        'OS::Heat::ResourceGroup',
        'AWS::AutoScaling::AutoScalingGroup',
    }
)

# Deeper than any Heat goes; templates that nest in a circle end here.
_DEEPEST: Final = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a template.

    :ivar file: the template's path; '' for the root.
    :ivar types: its type, and those that its properties name for others.
    """

    file: str
    name: str
    types: tuple[str, ...]


def resources(content: references.Resolved) -> tuple[Resource, ...]:
    """Return the resources of all templates of a content."""
    found = []
    for file, text in {'': content.template, **content.files}.items():
        if file and not links.is_template(text):
            continue
        try:
            template = texts.mapping(text, file)
        except errors.Invalid:
            continue
        section = template.get('resources', template.get('Resources'))
        for name, one in (
            section if isinstance(section, dict) else {}
        ).items():
            types = tuple(dict.fromkeys(_types(one)))
            found.append(Resource(file=file, name=str(name), types=types))
    return tuple(found)


def depth(content: references.Resolved) -> int:
    """Return how many levels of nested stacks Heat makes of a content."""
    below: dict[str, set[str]] = {}
    groups: set[str] = set()
    registry = _registry(content)
    for one in resources(content):
        below.setdefault(one.file, set()).update(
            str(registry.get(name, name)) for name in one.types
        )
        if not _GROUPS.isdisjoint(one.types):
            groups.add(one.file)
    levels = 0
    level = {''}
    while level and levels < _DEEPEST:
        grouped = not groups.isdisjoint(level)
        level = {
            name
            for file in level
            for name in below.get(file, ())
            if name in below
        }
        levels += (1 + grouped) if level else grouped
    return levels


def environments_of(
    content: references.Resolved, files: abc.Iterable[str]
) -> list[str]:
    """Return the environments that bring templates into the stack.

    :param files: the templates' paths; '' for the root, which none brings.
    """
    registry = _registry(content)
    brought: dict[str, set[str]] = {}
    for key, section in _sections(content):
        for name, path in section.items():
            if isinstance(path, str) and registry[name] == path:
                brought.setdefault(path, set()).add(key)
    users: dict[str, set[str]] = {}
    for one in resources(content):
        for name in one.types:
            users.setdefault(name, set()).add(one.file)
    found: set[str] = set()
    seen = {''}
    level = set(files) - seen
    while level:
        seen |= level
        found.update(*(brought.get(path, ()) for path in level))
        # What a template names by its path comes with that template.
        level = {
            user
            for path in level
            if path not in brought
            for user in users.get(path, ())
        } - seen
    return sorted(found)


def _sections(
    content: references.Resolved,
) -> list[tuple[str, dict[str, Any]]]:
    """Return the resource registries by their environments' paths."""
    found = []
    for key in content.environments:
        section = texts.mapping(content.files[key], key).get(
            'resource_registry'
        )
        if isinstance(section, dict):
            found.append((key, section))
    return found


def _registry(content: references.Resolved) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _key, section in _sections(content):
        found |= section
    return found


def _types(value: Any) -> abc.Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get('type'), str):
            yield value['type']
        for one in value.values():
            yield from _types(one)
    elif isinstance(value, list):
        for one in value:
            yield from _types(one)
