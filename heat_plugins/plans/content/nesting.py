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
class TemplateResource:
    """A resource of a template.

    :ivar file: the template's path; '' for the root.
    :ivar types: its type, and those that its properties name for others.
    :ivar conditional: whether a condition may leave it out.
    """

    file: str
    name: str
    types: tuple[str, ...]
    conditional: bool = False


def resources(content: references.Resolved) -> tuple[TemplateResource, ...]:
    """Return the resources of all templates of a content."""
    all_resources = []
    for file, text in {'': content.template, **content.files}.items():
        if file and not links.is_template(text):
            continue
        try:
            template = texts.mapping(text, file)
        except errors.Invalid:
            continue
        section = template.get('resources', template.get('Resources'))
        for name, definition in (
            section if isinstance(section, dict) else {}
        ).items():
            all_resources.append(
                TemplateResource(
                    file=file,
                    name=str(name),
                    types=tuple(dict.fromkeys(_types(definition))),
                    conditional=isinstance(definition, dict)
                    and 'condition' in definition,
                )
            )
    return tuple(all_resources)


def depth(content: references.Resolved) -> int:
    """Return how many levels of nested stacks Heat makes of a content."""
    below: dict[str, set[str]] = {}
    groups: set[str] = set()
    registry = TypeRegistry(content)
    for resource in resources(content):
        below.setdefault(resource.file, set()).update(
            registry.made_of(name)[0] for name in resource.types
        )
        if not _GROUPS.isdisjoint(resource.types):
            groups.add(resource.file)
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


class TypeRegistry:
    """What the environments of a content map resource types to."""

    def __init__(self, content: references.Resolved) -> None:
        self._targets: dict[str, Any] = {}
        self._sections: list[tuple[str, dict[str, Any]]] = []
        for key in content.environments:
            section = texts.mapping(content.files[key], key).get(
                'resource_registry'
            )
            if isinstance(section, dict):
                self._sections.append((key, section))
                self._targets |= section

    def made_of(self, name: str) -> tuple[str, frozenset[str]]:
        """Return what Heat makes of a type: another type, or a template.

        :return: also the environments that say so, if it is mapped.
        """
        before, seen = name, {name}
        while (target := self._target(name)) and target not in seen:
            seen.add(target)
            before, name = name, target
        return name, self._mapped_by(before)

    def _mapped_by(self, name: str) -> frozenset[str]:
        target = self._targets.get(name)
        return frozenset(
            key
            for key, section in self._sections
            if name in section and section[name] == target
        )

    def _target(self, name: str) -> str | None:
        target = self._targets.get(name)
        return target if isinstance(target, str) else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Use:
    """A resource that the stack of a content has.

    :ivar type: what Heat makes of one of its types.
    :ivar environments: those that add it to the stack, or map it to this
        type; none if the root template alone does.
    """

    resource: TemplateResource
    type: str
    environments: frozenset[str]


def uses(
    content: references.Resolved, *, conditional: bool
) -> tuple[Use, ...]:
    """Return the resources that Heat makes of a content, of all types.

    :param conditional: whether to return those, too, that a condition may
        leave out, with what is below them.
    """
    registry = TypeRegistry(content)
    below: dict[str, list[TemplateResource]] = {}
    for resource in resources(content):
        if conditional or not resource.conditional:
            below.setdefault(resource.file, []).append(resource)
    # The templates that are reached, with the environments that add them.
    added_by: dict[str, frozenset[str]] = {'': frozenset()}
    used: dict[tuple[str, str, str], Use] = {}
    waiting = ['']
    while waiting:
        file = waiting.pop()
        for resource in below.get(file, ()):
            for type_, mapped_by in map(registry.made_of, resource.types):
                use = Use(
                    resource=resource,
                    type=type_,
                    environments=mapped_by or added_by[file],
                )
                used[file, resource.name, type_] = use
                before = added_by.get(type_)
                after = (before or frozenset()) | use.environments
                if type_ in content.files and after != before:
                    added_by[type_] = after
                    waiting.append(type_)
    return tuple(used.values())


def _types(value: Any) -> abc.Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get('type'), str):
            yield value['type']
        for item in value.values():
            yield from _types(item)
    elif isinstance(value, list):
        for item in value:
            yield from _types(item)
