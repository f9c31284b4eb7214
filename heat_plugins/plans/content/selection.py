# SPDX-License-Identifier: Apache-2.0
"""Enabling and disabling environments, and the order that they come in."""

from collections import abc
import dataclasses
import graphlib
import heapq

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans


def select(
    plan: environments.PlanEnvironment,
    offered: capabilities.Capabilities,
    choices: abc.Mapping[str, bool],
    *,
    requirements: bool = False,
) -> environments.PlanEnvironment:
    """Return the plan's environment after choices.

    What was wrong before is no reason to refuse: it may take several steps
    to mend it.

    :param choices: by path, whether to enable the environment.
    :param requirements: whether to enable what is required, too.
    :raises errors.Invalid: what is enabled then would lack what it requires,
        or exclude each other; or require each other in a circle.
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
    after += [
        path
        for path in _in_order(choices, known)
        if choices[path] and path not in present
    ]
    allowed = set(_violations(before, offered))
    wrong = [
        violation
        for violation in _violations(after, offered)
        if violation not in allowed
    ]
    if wrong:
        raise errors.Invalid(bounds.listed(wrong, between='; '))
    return _arranged(plan, after, known)


def offered(
    plan: plans.Plan, read: abc.Callable[[str], str]
) -> capabilities.Capabilities:
    """Return what can be chosen in a plan.

    :param read: returns a file of the plan.
    """
    path = capabilities.PATH
    text = read(path) if path in plan.entries else None
    readable = capabilities.read(text, plan.entries, plan.environment.enabled)
    return dataclasses.replace(
        readable,
        warnings=readable.warnings + cycles(readable),
    )


def cycles(
    offered: capabilities.Capabilities,
) -> tuple[str, ...]:
    """Return a sentence about a circle of requirements, if there is one."""
    known = offered.environments
    try:
        _sorted(list(known), known)
    except errors.Invalid as exc:
        return (str(exc),)
    return ()


def _with_requirements(
    choices: abc.Mapping[str, bool],
    known: abc.Mapping[str, capabilities.Environment],
) -> dict[str, bool]:
    """Add what the enabled ones require, but for what is not there."""
    full = dict(choices)
    rest = [path for path, wanted in choices.items() if wanted]
    while rest:
        path = rest.pop()
        for required in known[path].requires if path in known else ():
            if required not in full and _enforced(required, known):
                full[required] = True
                rest.append(required)
    return full


def _in_order(
    choices: abc.Mapping[str, bool],
    known: abc.Mapping[str, capabilities.Environment],
) -> list[str]:
    """Return the choices in the map's order, whatever order they came in."""
    places = {path: place for place, path in enumerate(known)}
    return sorted(choices, key=lambda path: places.get(path, len(places)))


def _enforced(
    required: str, known: abc.Mapping[str, capabilities.Environment]
) -> bool:
    """Say whether a requirement counts: it does not if it cannot be met."""
    return required in known and known[required].present


def _violations(
    enabled: abc.Collection[str],
    offered: capabilities.Capabilities,
) -> abc.Iterator[str]:
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


def _arranged(
    plan: environments.PlanEnvironment,
    paths: abc.Sequence[str],
    known: abc.Mapping[str, capabilities.Environment],
) -> environments.PlanEnvironment:
    """Put environments into order; those written out keep their places."""
    ordered = iter(_sorted(paths, known))
    kept = set(paths)
    entries = [
        entry if entry.path is None else environments.Entry(path=next(ordered))
        for entry in plan.environments
        if entry.path is None or entry.path in kept
    ]
    entries += [environments.Entry(path=path) for path in ordered]
    return dataclasses.replace(plan, environments=tuple(entries))


def _sorted(
    paths: abc.Sequence[str],
    known: abc.Mapping[str, capabilities.Environment],
) -> list[str]:
    """Sort so that each follows what it requires, and else as given.

    :raises errors.Invalid: there is no such order.
    """
    places = {path: place for place, path in enumerate(paths)}
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for path in places:
        requires = known[path].requires if path in known else ()
        sorter.add(
            path, *(required for required in requires if required in places)
        )
    try:
        sorter.prepare()
    except graphlib.CycleError as exc:
        # Each is required by the next one.
        names = bounds.listed(exc.args[1][::-1], between=' requires ')
        raise errors.Invalid(
            f'Environments require each other in a cycle: {names}'
        ) from exc
    ready: list[tuple[int, str]] = []
    ordered = []
    while sorter.is_active():
        for path in sorter.get_ready():
            heapq.heappush(ready, (places[path], path))
        _, path = heapq.heappop(ready)
        ordered.append(path)
        sorter.done(path)
    return ordered
