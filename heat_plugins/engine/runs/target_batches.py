# SPDX-License-Identifier: Apache-2.0
"""Many targets of a run, read and checked together.

It acts with the stored credentials of a stack, which reach every server of the
project. So before each run it checks that the order names a deployment of that
stack for that server, and that the server takes deployments of that stack: see
`servers.POLICY`.
"""

from collections import abc
import functools
from typing import Any, TypeAlias

from heat.engine import stack as parser

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.runs import attempts
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import targets
from heat_plugins.signals import signal_names

# Targets by deployment, or why one does not take its action now.
_Derived: TypeAlias = abc.Mapping[str, targets.Target | errors.Error]


def existing(
    context: heat_types.Context, deployment_ids: abc.Collection[str]
) -> abc.Collection[str]:
    """Return which deployments there are, or were withdrawn.

    Heat withdraws that of an action that times out, and creates it again for
    the next. Its resource is there meanwhile.

    :raises errors.Unavailable: the database does not answer; here as below.
    """
    with own_heat.translated('look up deployments'):
        known = rows.servers_of(context, deployment_ids)
        others = set(deployment_ids).difference(known)
        found = resources.find_all(context, others)
    return {
        *known,
        *(each for each, stand in found.items() if _staying(stand)),
    }


def finder(
    context: heat_types.Context,
    order: run_records.RunOrder,
    members: abc.Sequence[int],
) -> abc.Callable[[int], targets.Target]:
    """Return what finds members as targets; it may raise `errors.Error`."""
    heat = own_heat.OwnHeat(context)
    chosen = [order.members[n] for n in members]
    given: abc.Mapping[str, heat_values.DeploymentRow] = {}
    derived: _Derived = {}
    if order.config is None:
        with own_heat.translated('read deployments'):
            given = rows.visible(
                context, [each.deployment_id for each in chosen]
            )
        present = {k for k, row in given.items() if not row.is_withdrawn}
        lost = [e for e in chosen if e.deployment_id not in present]
        wanted = ordering.Start(
            run=order.id, action=order.action, inputs=order.inputs
        )
        derived = withdrawn(context, lost, wanted) if lost else {}

    @functools.cache
    def source(config_id: str | None) -> heat_values.Config | None:
        if config_id is None or order.config is not None:
            return None
        try:
            return heat.config(config_id)
        except errors.NotFound:
            return None

    def find(number: int) -> targets.Target:
        member = order.members[number]
        return attempts.target(
            order,
            member,
            given.get(member.deployment_id),
            derived.get(member.deployment_id),
            source(member.source_id),
        )

    return find


def withdrawn(
    context: heat_types.Context,
    members: abc.Sequence[run_records.RunTarget],
    wanted: ordering.Start,
) -> _Derived:
    """Return members whose deployments were withdrawn as targets.

    One is left out if Heat no longer has its resource.
    """
    with own_heat.translated('look up withdrawn deployments'):
        known = resources.find_all(
            context, {each.deployment_id for each in members}
        )
    load = functools.cache(
        lambda stack_id: parser.Stack.load(context, stack_id=stack_id)
    )
    derived = {
        each.deployment_id: _derived(
            each, known[each.deployment_id], load, wanted
        )
        for each in members
    }
    return {key: each for key, each in derived.items() if each}


def refusals(
    context: heat_types.Context,
    order: run_records.RunOrder,
    members: abc.Collection[int],
) -> dict[int, str]:
    """Return why members get no run, by their number.

    An engine acts with the credentials of a stack. What a user may do Heat's
    API decides.
    """
    chosen = {n: order.members[n] for n in members}
    ids = {
        each
        for member in chosen.values()
        for each in (member.server_id, *_owners(member))
    }
    with own_heat.translated('look up the targets of a run'):
        known = resources.find_all(context, ids)
        given = rows.servers_of(
            context, [member.deployment_id for member in chosen.values()]
        )
    reasons = {}
    for n, member in chosen.items():
        if order.config is not None:
            why = _of_server(member, known)
        else:
            why = _of_deployment(member, known, given)
        if why := why or _closed(member, known):
            reasons[n] = why
    return reasons


def _derived(
    member: run_records.RunTarget,
    known: heat_values.Server,
    load: abc.Callable[[str], Any],
    wanted: ordering.Start,
) -> targets.Target | errors.Error | None:
    """Return a withdrawn deployment, or why it does not take an action now."""
    try:
        with own_heat.translated(f'read resource {member.resource}'):
            for place in _staying(known):
                # Other stacks may have resources of that ID as well.
                if place.root_stack_id != member.stack_id:
                    continue
                target = _offered(load(place.stack_id), place, wanted)
                if target is not None and (
                    target.deployment_id,
                    target.server_id,
                ) == (member.deployment_id, member.server_id):
                    return target
    except errors.Error as exc:
        return exc
    return None


def _offered(
    stack: Any,
    place: heat_values.ServerResource,
    wanted: ordering.Start,
) -> targets.Target | None:
    """Return the deployment in a place; None if there is another type.

    :raises errors.Unavailable: Heat changes it just now.
    """
    resource = stack.get(place.name)
    if not hasattr(resource, 'run_target'):
        return None
    if resource.status == resource.IN_PROGRESS:
        raise errors.Unavailable(
            f'{resource.name} is {resource.action}_{resource.status}'
        )
    target: targets.Target = resource.run_target(wanted)
    return target


_Found = abc.Mapping[str, heat_values.Server]


def _owners(member: run_records.RunTarget) -> tuple[str, str]:
    """Return the physical IDs that the deployment's resource may have."""
    group_id = signal_names.id_in_group(
        member.deployment_id, signal_names.GROUP_TAIL
    )
    return member.deployment_id, group_id


def _of_server(member: run_records.RunTarget, known: _Found) -> str | None:
    """Return why a config of a user's own is not run on a server."""
    if member.stack_id in _roots(known, member.server_id):
        return None
    return (
        f'Server {member.server_id} is not a server of stack '
        f'{member.stack_name}'
    )


def _of_deployment(
    member: run_records.RunTarget,
    known: _Found,
    given: abc.Mapping[str, str],
) -> str | None:
    server_id = given.get(member.deployment_id)
    if server_id is None:
        # The process that reads it finds that it is gone.
        return None
    owners = [_roots(known, each) for each in _owners(member)]
    if server_id == member.server_id and member.stack_id in set().union(
        *owners
    ):
        return None
    return (
        f'Deployment {member.deployment_id} is not a deployment of stack '
        f'{member.stack_name} for server {member.server_id}'
    )


def _staying(
    found: heat_values.Server,
) -> list[heat_values.ServerResource]:
    """Return the resources of a physical ID that Heat does not delete."""
    return [each for each in found.resources if not each.is_going]


def _roots(known: _Found, physical_id: str) -> set[str]:
    """Return the root stacks that have a resource of a physical ID."""
    return {each.root_stack_id for each in known[physical_id].resources}


def _closed(member: run_records.RunTarget, known: _Found) -> str | None:
    server = known[member.server_id]
    if server.resources and all(each.is_going for each in server.resources):
        return f'Server {member.server_id} is being deleted'
    return servers.refusal(server, member.stack_id)
