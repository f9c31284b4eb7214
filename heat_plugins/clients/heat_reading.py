# SPDX-License-Identifier: Apache-2.0
"""Convert Heat's answers, rows of JSON, to values of the core."""

from collections import abc
from typing import Any

from heat_plugins import heat_values
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.timeline import stack_events

_CHANGES = ('unchanged', 'updated', 'replaced', 'added', 'deleted')


def stack(answer: abc.Mapping[str, Any]) -> heat_values.Stack:
    return heat_values.Stack(
        id=answer['id'],
        name=answer['stack_name'],
        status=answer['stack_status'],
        parent=answer.get('parent') or None,
        parameters=answer.get('parameters') or {},
    )


def plan_stack(answer: abc.Mapping[str, Any]) -> plan_stacks.Stack:
    return plan_stacks.Stack(
        id=answer['id'],
        name=answer['stack_name'],
        status=answer['stack_status'],
        reason=answer.get('stack_status_reason') or '',
        tags=tuple(answer.get('tags') or ()),
        changed_at=answer.get('updated_time') or answer['creation_time'],
    )


def resource(answer: abc.Mapping[str, Any]) -> heat_values.Resource:
    links = _links(answer)
    return heat_values.Resource(
        name=answer['resource_name'],
        type=answer['resource_type'],
        physical_id=answer.get('physical_resource_id') or '',
        status=answer['resource_status'],
        stack_id=links['stack'][-1],
        nested_id=links['nested'][-1] if 'nested' in links else None,
    )


def lineage(
    target: heat_values.Resource,
    resources: abc.Iterable[heat_values.Resource],
    root_id: str,
) -> tuple[str, ...]:
    """Return the names of the resources from a root stack down to one."""
    parents = {
        other.nested_id: other for other in resources if other.nested_id
    }
    path = [target.name]
    stack_id = target.stack_id
    while stack_id != root_id and stack_id in parents:
        path.insert(0, parents[stack_id].name)
        stack_id = parents[stack_id].stack_id
    return tuple(path)


def timeline_event(answer: abc.Mapping[str, Any]) -> stack_events.StackEvent:
    return stack_events.StackEvent(
        resource=answer['resource_name'],
        stack_id=_links(answer)['stack'][-1],
        physical_id=answer.get('physical_resource_id') or '',
        status=answer['resource_status'],
        reason=answer.get('resource_status_reason') or '',
        time=stack_events.moment(answer['event_time']),
    )


def event(answer: abc.Mapping[str, Any]) -> plan_stacks.Event:
    return plan_stacks.Event(
        id=answer['id'],
        resource=answer['resource_name'],
        physical_id=answer.get('physical_resource_id') or '',
        stack='/'.join(_links(answer)['stack'][-2:]),
        status=answer['resource_status'],
        reason=answer.get('resource_status_reason') or '',
        time=answer['event_time'],
    )


def changes(
    answer: abc.Mapping[str, abc.Iterable[Any]],
) -> dict[str, tuple[str, ...]]:
    """Return the names of resources by what an update does to them."""
    return {
        kind: tuple(
            sorted(str(target['resource_name']) for target in answer[kind])
        )
        for kind in _CHANGES
    }


def config(answer: abc.Mapping[str, Any]) -> heat_values.Config:
    return heat_values.Config(
        id=answer['id'],
        name=answer.get('name'),
        group=answer.get('group'),
        config=answer.get('config'),
        inputs=answer.get('inputs') or [],
        outputs=answer.get('outputs') or [],
        options=answer.get('options') or {},
    )


def deployment(answer: abc.Mapping[str, Any]) -> heat_values.Deployment:
    return heat_values.Deployment(
        id=answer['id'],
        server_id=answer['server_id'],
        config_id=answer['config_id'],
        action=answer.get('action'),
        status=answer.get('status'),
        reason=answer.get('status_reason'),
    )


def _links(answer: abc.Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the segments of each link's path, by what it leads to."""
    return {
        link['rel']: link['href'].partition('?')[0].rstrip('/').split('/')
        for link in answer.get('links') or ()
    }
