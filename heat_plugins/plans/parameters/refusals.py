# SPDX-License-Identifier: Apache-2.0
"""What Heat refuses of a plan, said without secrets and with the remedy.

Of a service that the cloud lacks, Heat names one type whose service it is, and
says so only as it deploys: its validation passes over it.
"""

from collections import abc
import contextlib
import dataclasses
import shlex
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import links
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy

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
        for name, definition in parameters.section(text, 'resources').items():
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
    for use in uses(content, conditional=True):
        below.setdefault(use.resource.file, set()).add(use.type)
        if not _GROUPS.isdisjoint(use.resource.types):
            groups.add(use.resource.file)
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


# Names of services in types whose resources some cloud may lack.
_SERVICES = frozenset(
    {
        'Aodh', 'Barbican', 'Blazar', 'Cinder', 'Designate', 'Glance',
        'Ironic', 'Magnum', 'Manila', 'Mistral', 'Neutron', 'Nova',
        'Octavia', 'Swift', 'Trove', 'Vitrage', 'Zaqar', 'Zun',
    }
)  # fmt: skip

# Heat's code for a type whose service is missing.
_UNAVAILABLE = 'HEAT-E99001'


@contextlib.contextmanager
def explained(
    stacks: plan_stacks.Stacks, plan: plans.Plan, content: references.Resolved
) -> abc.Iterator[None]:
    """Explain what Heat refuses of a content that is sent to it.

    :raises errors.Refused: the cloud lacks a type that the content needs.
    :raises errors.ServiceError: Heat refuses it for another reason.
    """
    try:
        with secrecy.guarding(content, plan.environment):
            yield
    except errors.OverHeatLimit as exc:
        message = str(exc)
        if exc.option == 'max_nested_stack_depth':
            message += f' to {depth(content)}'
        raise errors.OverHeatLimit(message, exc.status, exc.option) from exc
    except errors.ServiceError as exc:
        # Some of Heat's code finds no type, and says no more than that.
        if isinstance(exc, errors.NotFound) or _UNAVAILABLE in str(exc):
            raise errors.Refused(
                _explanation(str(exc), stacks, plan, content)
            ) from exc
        raise


def _explanation(
    message: str,
    stacks: plan_stacks.Stacks,
    plan: plans.Plan,
    content: references.Resolved,
) -> str:
    for conditional in (False, True):
        used = uses(content, conditional=conditional)
        lacking = _lacking(stacks, used)
        if lacking:
            return f'{message.rstrip(".")}. {_sentence(plan, lacking)}'
    return message


def warnings(
    stacks: plan_stacks.Stacks, plan: plans.Plan, content: references.Resolved
) -> tuple[str, ...]:
    """Foresee that Heat will refuse to deploy a plan, in one sentence."""
    lacking = _lacking(stacks, uses(content, conditional=False))
    if not lacking:
        return ()
    return (f'Heat cannot deploy this plan. {_sentence(plan, lacking)}',)


def _lacking(
    stacks: plan_stacks.Stacks, uses: abc.Iterable[Use]
) -> tuple[Use, ...]:
    """Return the resources whose types Heat does not offer to the user."""
    uses_of_services = tuple(use for use in uses if _is_of_service(use.type))
    if not uses_of_services:
        return ()
    try:
        offered = stacks.resource_types()
    except errors.ServiceError:
        return ()
    return tuple(use for use in uses_of_services if use.type not in offered)


def _is_of_service(type_: str) -> bool:
    root, _, rest = type_.partition('::')
    return root == 'OS' and rest.partition('::')[0] in _SERVICES


def _sentence(plan: plans.Plan, lacking: abc.Sequence[Use]) -> str:
    named = bounds.listed(
        [
            f'resource {use.resource.name} of '
            f'{use.resource.file or plan.environment.template} ({use.type})'
            for use in lacking
        ]
    )
    sentence = f'This cloud lacks the service for {named}'
    adding = frozenset[str]().union(*(use.environments for use in lacking))
    enabled = [path for path in plan.environment.enabled if path in adding]
    if not enabled:
        return f'{sentence}. No enabled environment adds these resources'
    options = bounds.listed(
        [f'--disable {shlex.quote(path)}' for path in enabled], between=' '
    )
    return (
        f'{sentence}. To leave out what needs it: openstack '
        f'deployment plan capability set {plan.name} {options}'
    )
