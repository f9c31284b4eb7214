# SPDX-License-Identifier: Apache-2.0
"""Read Heat's answers: rows of JSON as the values of the core."""

from collections import abc
from typing import Any

from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.runs import orchestration
from heat_plugins.timeline import events as timeline

_CHANGES = ('unchanged', 'updated', 'replaced', 'added', 'deleted')


def stack(found: abc.Mapping[str, Any]) -> orchestration.Stack:
    return orchestration.Stack(
        id=found['id'],
        name=found['stack_name'],
        status=found['stack_status'],
        parent=found.get('parent') or None,
        parameters=found.get('parameters') or {},
    )


def plan_stack(found: abc.Mapping[str, Any]) -> plan_stacks.Stack:
    return plan_stacks.Stack(
        id=found['id'],
        name=found['stack_name'],
        status=found['stack_status'],
        reason=found.get('stack_status_reason') or '',
        tags=tuple(found.get('tags') or ()),
        changed_at=found.get('updated_time') or found['creation_time'],
    )


def resource(found: abc.Mapping[str, Any]) -> orchestration.Resource:
    links = _links(found)
    return orchestration.Resource(
        name=found['resource_name'],
        type=found['resource_type'],
        physical_id=found.get('physical_resource_id') or '',
        status=found['resource_status'],
        stack_id=links['stack'][-1],
        nested_id=links['nested'][-1] if 'nested' in links else None,
    )


def lineage(
    one: orchestration.Resource,
    resources: abc.Iterable[orchestration.Resource],
    root_id: str,
) -> tuple[str, ...]:
    """Return the names of the resources from a root stack down to one."""
    parents = {
        other.nested_id: other for other in resources if other.nested_id
    }
    path = [one.name]
    stack_id = one.stack_id
    while stack_id != root_id and stack_id in parents:
        path.insert(0, parents[stack_id].name)
        stack_id = parents[stack_id].stack_id
    return tuple(path)


def timeline_event(found: abc.Mapping[str, Any]) -> timeline.Event:
    return timeline.Event(
        resource=found['resource_name'],
        stack_id=_links(found)['stack'][-1],
        physical_id=found.get('physical_resource_id') or '',
        status=found['resource_status'],
        reason=found.get('resource_status_reason') or '',
        time=timeline.moment(found['event_time']),
    )


def event(found: abc.Mapping[str, Any]) -> plan_stacks.Event:
    return plan_stacks.Event(
        id=found['id'],
        resource=found['resource_name'],
        physical_id=found.get('physical_resource_id') or '',
        stack='/'.join(_links(found)['stack'][-2:]),
        status=found['resource_status'],
        reason=found.get('resource_status_reason') or '',
        time=found['event_time'],
    )


def changes(
    found: abc.Mapping[str, abc.Iterable[Any]],
) -> dict[str, tuple[str, ...]]:
    """Return the names of resources by what an update does to them."""
    return {
        kind: tuple(sorted(str(one['resource_name']) for one in found[kind]))
        for kind in _CHANGES
    }


def config(found: abc.Mapping[str, Any]) -> orchestration.Config:
    return orchestration.Config(
        id=found['id'],
        name=found.get('name'),
        group=found.get('group'),
        config=found.get('config'),
        inputs=found.get('inputs') or [],
        outputs=found.get('outputs') or [],
        options=found.get('options') or {},
    )


def deployment(found: abc.Mapping[str, Any]) -> orchestration.Deployment:
    return orchestration.Deployment(
        id=found['id'],
        server_id=found['server_id'],
        config_id=found['config_id'],
        action=found.get('action'),
        status=found.get('status'),
        reason=found.get('status_reason'),
    )


def _links(found: abc.Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the segments of each link's path, by what it leads to."""
    return {
        link['rel']: link['href'].partition('?')[0].rstrip('/').split('/')
        for link in found.get('links') or ()
    }
