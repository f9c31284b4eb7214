# SPDX-License-Identifier: Apache-2.0
"""Heat's REST API over a Keystone session.

An engine calls its own Heat instead; see `engine.database.stack_reading`.
"""

from collections import abc
import json
from typing import Any
from urllib import parse

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.clients import rest

# What Heat has to read and check may be hundreds of templates.
_LONG = 600.0

#: More than Heat allows; it takes its own limit then.
NESTED_DEPTH = 50

# Events or stacks in one answer.
PAGE = 500


class Heat:
    """A client of Heat, for the protocols of runs and timelines.

    They use `stack_tree.Orchestration`; `heat_plans.PlanStacks` has what plans
    and validations need as well.
    """

    def __init__(self, cloud: rest.Cloud) -> None:
        self._rest = rest.Rest(rest.HEAT, cloud)

    # Stacks

    def stack(self, name_or_id: str) -> heat_values.Stack:
        return stack(self._show(name_or_id))

    def stack_names(self) -> list[str]:
        path = f'/stacks?limit={bounds.CANDIDATES}'
        return _each(self._get(path, 'stacks')['stacks'], 'stack_name')

    def stack_ids(self, tag: str | None = None) -> list[str]:
        query = {} if tag is None else {'tags': tag}
        return _each(self._pages('/stacks', 'stacks', 'stacks', query), 'id')

    def template(self, stack: heat_values.Stack) -> abc.Mapping[str, Any]:
        return self._part(stack, 'template')

    def update_environment(
        self, stack: heat_values.Stack, environment: abc.Mapping[str, Any]
    ) -> None:
        # PATCH keeps all values that the request leaves out.
        self._send(
            'PATCH',
            path_of(stack),
            f'stack {stack.name}',
            {'environment': dict(environment)},
        )

    # Their resources and events, nested ones included

    def resources(
        self, stack: heat_values.Stack
    ) -> list[heat_values.Resource]:
        path = f'{path_of(stack)}/resources?nested_depth={NESTED_DEPTH}'
        answer = self._get(path, f'resources of stack {stack.name}')
        return [*map(resource, answer['resources'])]

    def attribute(self, resource: heat_values.Resource, name: str) -> Any:
        shown = self._attributes(resource, f'?with_attr={quoted(name)}')
        return shown.get(name)

    def signal(
        self, resource: heat_values.Resource, details: abc.Mapping[str, Any]
    ) -> None:
        stack = self.stack(resource.stack_id)
        path = f'{path_of(stack)}/resources/{quoted(resource.name)}/signal'
        self._send(
            'POST', path, f'signal to resource {resource.name}', dict(details)
        )

    def all_events(self, stack: heat_values.Stack) -> list[heat_values.Event]:
        path, what = (
            f'{path_of(stack)}/events',
            f'events of stack {stack.name}',
        )
        query = {'nested_depth': str(NESTED_DEPTH), 'sort_dir': 'asc'}
        return [*map(event, self._pages(path, what, 'events', query))]

    # Requests

    def _show(self, name_or_id: str) -> abc.Mapping[str, Any]:
        """Return Heat's answer about a stack, without its outputs."""
        # Heat may take long to work out the outputs, which no caller needs.
        path = f'/stacks/{quoted(name_or_id)}?resolve_outputs=false'
        return dict(self._get(path, f'stack {name_or_id}')['stack'])

    def _part(self, stack: heat_values.Stack, kind: str) -> dict[str, Any]:
        """Return a document of a stack, such as its template."""
        what = f'{kind} of stack {stack.name}'
        answer = self._get(f'{path_of(stack)}/{kind}', what)
        return answer if isinstance(answer, dict) else {}

    def _attributes(
        self, resource: heat_values.Resource, query: str = ''
    ) -> abc.Mapping[str, Any]:
        """Return the attributes of a resource."""
        # Heat wants the stack's name as well as its ID, and resolves it.
        stack = self.stack(resource.stack_id)
        path = f'{path_of(stack)}/resources/{quoted(resource.name)}{query}'
        answer = self._get(path, f'resource {resource.name}')
        return answer['resource'].get('attributes') or {}

    def _pages(
        self, path: str, what: str, key: str, query: dict[str, str]
    ) -> list[Any]:
        """Return the entries of all pages of a list."""
        query = {**query, 'limit': str(PAGE)}
        entries: list[Any] = []
        while True:
            page = self._get(f'{path}?{parse.urlencode(query)}', what)[key]
            entries += page
            if len(page) < PAGE:
                return entries
            query['marker'] = str(page[-1]['id'])

    def _get(self, path: str, what: str) -> Any:
        """GET from Heat; what is missing is named in the error."""
        try:
            return self._rest.call('GET', path, what)
        except errors.NotFound as exc:
            raise errors.NotFound(
                f'Heat has no {what} in this project', exc.status
            ) from exc

    def _send(self, method: str, path: str, what: str, body: Any) -> Any:
        """Send JSON to Heat, in as few bytes as it takes."""
        # Heat counts the bytes of a body, so none is given away.
        data = json.dumps(body, ensure_ascii=False, separators=(',', ':'))
        return self._rest.call(
            method,
            path,
            what,
            timeout=_LONG,
            data=data.encode(),
            headers={'Content-Type': 'application/json'},
        )


def _each(entries: abc.Iterable[Any], key: str) -> list[str]:
    """Return a field of each entry of a list."""
    return [str(entry[key]) for entry in entries]


def path_of(stack: heat_values.Stack) -> str:
    """Return a stack's path in Heat's API."""
    return f'/stacks/{quoted(stack.name)}/{stack.id}'


def quoted(text: str) -> str:
    """Return a part of a path for a URL."""
    return parse.quote(text, safe='')


def stack(answer: abc.Mapping[str, Any]) -> heat_values.Stack:
    return heat_values.Stack(
        id=answer['id'],
        name=answer['stack_name'],
        status=answer['stack_status'],
        parent=answer.get('parent') or None,
        parameters=answer.get('parameters') or {},
        reason=answer.get('stack_status_reason') or '',
        tags=tuple(answer.get('tags') or ()),
        changed_at=answer.get('updated_time')
        or answer.get('creation_time')
        or '',
    )


def resource(answer: abc.Mapping[str, Any]) -> heat_values.Resource:
    """Return a resource as Heat's API shows it."""
    links = _links(answer)
    return heat_values.Resource(
        name=answer['resource_name'],
        type=answer['resource_type'],
        physical_id=answer.get('physical_resource_id') or '',
        status=answer['resource_status'],
        stack_id=links['stack'][-1],
        nested_id=links['nested'][-1] if 'nested' in links else None,
        created_at=answer.get('creation_time') or '',
    )


def event(answer: abc.Mapping[str, Any]) -> heat_values.Event:
    """Return an event as Heat's API shows it."""
    return heat_values.Event(
        id=answer['id'],
        resource=answer['resource_name'],
        stack_id=_links(answer)['stack'][-1],
        physical_id=answer.get('physical_resource_id') or '',
        status=answer['resource_status'],
        reason=answer.get('resource_status_reason') or '',
        time=heat_values.moment(answer['event_time']),
    )


def _links(answer: abc.Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the segments of each link's path, by the link's relation."""
    return {
        link['rel']: link['href'].partition('?')[0].rstrip('/').split('/')
        for link in answer.get('links') or ()
    }
