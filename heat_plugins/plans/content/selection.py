# SPDX-License-Identifier: Apache-2.0
"""Enabling and disabling environments, and their order."""

from collections import abc
import dataclasses

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments


def select(
    plan: environments.PlanEnvironment,
    offered: capabilities.Capabilities,
    choices: abc.Mapping[str, bool],
    *,
    requirements: bool = False,
) -> environments.PlanEnvironment:
    """Return the plan's environment after choices.

    Former violations are no reason to refuse: their repair may take several
    steps.

    :param choices: by path, whether to enable the environment.
    :param requirements: whether to enable required environments, too.
    :raises errors.Invalid: an enabled environment would lack one that it
        requires, or two would exclude each other.
    """
    known = offered.environments
    if requirements:
        choices = _with_requirements(choices, known)
    before = plan.enabled
    present = set(before)
    for path, wanted in choices.items():
        if not (path in known and (known[path].present or not wanted)):
            raise errors.Invalid(
                f'{path} is not an environment of the plan; "openstack '
                'deployment plan capability list" shows those that are'
                + bounds.did_you_mean(path, [n for n in known if n != path])
            )
    after = [path for path in before if choices.get(path, True)]
    # New ones come in the map's order.
    after += [
        path for path in known if choices.get(path) and path not in present
    ]
    allowed = set(_violations(before, offered))
    wrong = [
        violation
        for violation in _violations(after, offered)
        if violation not in allowed
    ]
    if wrong:
        raise errors.Invalid(bounds.listed(wrong, between='; '))
    # Put environments into order; those with data keep their places.
    ordered = iter(_sorted(after, known))
    kept = set(after)
    entries = [
        entry if entry.path is None else environments.Entry(path=next(ordered))
        for entry in plan.environments
        if entry.path is None or entry.path in kept
    ]
    entries += [environments.Entry(path=path) for path in ordered]
    return dataclasses.replace(plan, environments=tuple(entries))


def _with_requirements(
    choices: abc.Mapping[str, bool],
    known: abc.Mapping[str, capabilities.OptionalEnvironment],
) -> dict[str, bool]:
    """Add the requirements of chosen environments, if the plan has them."""
    full = dict(choices)
    rest = [path for path, wanted in choices.items() if wanted]
    while rest:
        path = rest.pop()
        for required in known[path].requires if path in known else ():
            if required not in full and _enforced(required, known):
                full[required] = True
                rest.append(required)
    return full


def _enforced(
    required: str, known: abc.Mapping[str, capabilities.OptionalEnvironment]
) -> bool:
    """Return whether a requirement counts: the plan must have the file."""
    return required in known and known[required].present


def _violations(
    enabled: abc.Collection[str],
    offered: capabilities.Capabilities,
) -> abc.Iterator[str]:
    """Yield what enabled environments lack, or exclude."""
    known = offered.environments
    # A lookup in a list would search it for each of them.
    enabled = dict.fromkeys(enabled)
    for path in enabled:
        for required in known[path].requires if path in known else ():
            if required not in enabled and _enforced(required, known):
                yield f'{path} requires {required}, which is not enabled'
    for group in offered.groups:
        both = dict.fromkeys(
            environment.path
            for environment in group.environments
            if environment.path in enabled
        )
        if group.mutually_exclusive and len(both) > 1:
            yield (
                f'{bounds.listed(both, between=" and ")} exclude each other '
                f'({group.title or group.name or "a group without a title"})'
            )


def _sorted(
    paths: abc.Sequence[str],
    known: abc.Mapping[str, capabilities.OptionalEnvironment],
) -> list[str]:
    """Put each environment after its requirements, and else keep the order.

    A circle of requirements keeps its order.
    """
    wanted, begun = set(paths), set[str]()
    ordered: dict[str, None] = {}
    waiting = list(reversed(paths))
    while waiting:
        path = waiting[-1]
        begun.add(path)
        requires = known[path].requires if path in known else ()
        lacking = [
            each for each in requires if each in wanted and each not in begun
        ]
        if lacking:
            waiting += reversed(lacking)
        else:
            ordered[waiting.pop()] = None
    return list(ordered)
