# SPDX-License-Identifier: Apache-2.0
"""The parameters of each template of a plan, and those that can be set."""

from collections import abc
import dataclasses
import enum
from typing import Any

from heat_plugins import errors
from heat_plugins.content import texts


class Origin(enum.StrEnum):
    """The origin of the value of a parameter."""

    #: It was set in the plan.
    PLAN = 'plan'
    #: A workflow has computed it for the plan.
    DERIVED = 'derived'
    #: It was generated for the plan.
    GENERATED = 'generated'
    #: An environment sets it.
    ENVIRONMENT = 'environment'
    #: The template's own.
    DEFAULT = 'default'
    #: The parent template passes it down, which overrides all others.
    PARENT = 'parent'
    #: There is none: the plan cannot be deployed before it is set.
    MISSING = 'missing'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of one template.

    :ivar type: as in HOT: string, number, json, boolean or
        comma_delimited_list.
    :ivar default: the template's own; None if it has none.
    :ivar value: the effective one; None without one.
    :ivar hidden: whether `default` and `value` are masked.
    :ivar constraints: by Heat's names, such as ``MinValue``.
    """

    name: str
    type: str
    label: str = ''
    description: str = ''
    default: Any = dataclasses.field(default=None, repr=False)
    value: Any = dataclasses.field(default=None, repr=False)
    origin: Origin = Origin.DEFAULT
    hidden: bool = False
    constraints: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict
    )
    tags: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class TemplateParameters:
    """A template, at its place in the tree.

    :ivar path: names of resources, from the root down; '' for the root.
    :ivar type: the resource type that it implements.
    """

    path: str
    type: str = ''
    description: str = ''
    parameters: tuple[Parameter, ...] = ()
    nested: tuple['TemplateParameters', ...] = ()

    def walk(self) -> abc.Iterator['TemplateParameters']:
        """Return this template and all below it."""
        yield self
        for template in self.nested:
            yield from template.walk()


#: A parameter that can be set, as the first template with it declares it; and
#: the paths of all templates with it.
Effective = tuple[Parameter, tuple[str, ...]]


def declared(template: str) -> dict[str, abc.Mapping[str, Any]]:
    """Return the declarations of parameters in a text, if it is a template."""
    return {
        name: declaration
        for name, declaration in section(template, 'parameters').items()
        if isinstance(declaration, dict)
    }


def section(template: str, name: str) -> abc.Mapping[str, Any]:
    """Return a section of a template; nothing if there is none."""
    try:
        sections = texts.mapping(template, 'a template')
    except errors.Invalid:
        return {}
    content = sections.get(name)
    return content if isinstance(content, dict) else {}


def is_hidden(declaration: abc.Mapping[str, Any]) -> bool:
    """Return whether Heat or a template declares a parameter hidden."""
    marks = (declaration.get('NoEcho'), declaration.get('hidden'))
    return any(str(mark).lower() == 'true' for mark in marks)


def effective(root: TemplateParameters) -> dict[str, Effective]:
    """Return the parameters that can be set, by name, the root's first."""
    by_name: dict[str, Effective] = {}
    for template in root.walk():
        for parameter in template.parameters:
            if parameter.origin is not Origin.PARENT:
                first, paths = by_name.get(parameter.name, (parameter, ()))
                by_name[parameter.name] = first, (*paths, template.path)
    return by_name


def is_of_role(
    parameter: Parameter, paths: abc.Iterable[str], role: str
) -> bool:
    """Return whether a parameter belongs to a role.

    Its name begins with the role's, as in WebCount, or it is a parameter of a
    template below the resource of that name.
    """
    return parameter.name.startswith(role) or any(
        f'{path}.'.startswith(f'{role}.') for path in paths
    )
