# SPDX-License-Identifier: Apache-2.0
"""Heat's stacks over a Keystone session, for plans."""

from collections import abc
import contextlib
import json
from typing import Any
from urllib import parse

from heat_plugins import errors
from heat_plugins.clients import keystone
from heat_plugins.clients import rest
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import plan_stacks

# It is no matter for parameters whether this cloud has all services (Heat's
# error 99001) that the plan's resources need.
_VALIDATE = '/validate?show_nested=true&ignore_errors=99001'

# What Heat has to read and check may be hundreds of templates.
_LONG = 600.0

# More than Heat allows; it takes its own limit then.
_NESTED_DEPTH = 50

# Heat's words for its limits, and the options that set them.
_LIMITS = {
    'JSON body size': 'max_json_body_size',
    'Recursion depth exceeds': 'max_nested_stack_depth',
    'Template size': 'max_template_size',
    'Maximum resources per stack exceeded': 'max_resources_per_stack',
}

_CHANGES = ('unchanged', 'updated', 'replaced', 'added', 'deleted')


class HeatStacks:
    """Stacks, as `orchestration.Stacks` has them."""

    def __init__(self, cloud: keystone.Cloud) -> None:
        self._rest = rest.Rest(rest.HEAT, cloud)

    def find(self, name: str) -> plan_stacks.Stack | None:
        path = f'/stacks/{_quoted(name)}?resolve_outputs=false'
        try:
            answer = self._call('GET', path, f'stack {name}')
        except errors.NotFound:
            return None
        stack = _stack(answer['stack'])
        return None if stack.status == 'DELETE_COMPLETE' else stack

    def create(
        self,
        name: str,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> str:
        body = _body(content, tags, timeout) | {'stack_name': name}
        answer = self._send('POST', '/stacks', f'stack {name}', body)
        return str(answer['stack']['id'])

    def replace(
        self,
        stack: plan_stacks.Stack,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> None:
        self._send(
            'PUT',
            _path(stack),
            f'stack {stack.name}',
            _body(content, tags, timeout),
        )

    def cancel(self, stack: plan_stacks.Stack) -> None:
        self._send(
            'POST',
            f'{_path(stack)}/actions',
            f'cancel of stack {stack.name}',
            {'cancel_without_rollback': None},
        )

    def validate(self, content: references.Resolved) -> abc.Mapping[str, Any]:
        answer = self._send('POST', _VALIDATE, 'validation', _body(content))
        return dict(answer)

    def resource_types(self) -> frozenset[str]:
        answer = self._call('GET', '/resource_types', 'resource types')
        return frozenset(map(str, answer['resource_types']))

    def preview(self, name: str, content: references.Resolved) -> None:
        body = _body(content) | {'stack_name': name}
        self._send('POST', '/stacks/preview', f'stack {name}', body)

    def preview_replace(
        self, stack: plan_stacks.Stack, content: references.Resolved
    ) -> abc.Mapping[str, tuple[str, ...]]:
        answer = self._send(
            'PUT',
            f'{_path(stack)}/preview',
            f'stack {stack.name}',
            _body(content),
        )
        changes = answer['resource_changes']
        return {
            kind: tuple(sorted(_names(changes[kind], 'resource_name')))
            for kind in _CHANGES
        }

    def content(
        self, stack: plan_stacks.Stack
    ) -> tuple[abc.Mapping[str, Any], abc.Mapping[str, Any], dict[str, str]]:
        path, what = _path(stack), f'of stack {stack.name}'
        return (
            self._call('GET', f'{path}/template', f'template {what}') or {},
            self._call('GET', f'{path}/environment', f'environment {what}')
            or {},
            self._call('GET', f'{path}/files', f'files {what}') or {},
        )

    def events(
        self, stack: plan_stacks.Stack, after: str | None, limit: int
    ) -> list[plan_stacks.Event]:
        query = {'sort_dir': 'asc', 'limit': str(limit)}
        if after is not None:
            query['marker'] = after
        return [_event(one) for one in self._events(stack, query)]

    def last_event(self, stack: plan_stacks.Stack) -> str | None:
        found = self._events(stack, {'sort_dir': 'desc', 'limit': '1'})
        return str(found[0]['id']) if found else None

    def statuses(self, stack: plan_stacks.Stack) -> list[str]:
        answer = self._call(
            'GET',
            f'{_path(stack)}/resources?nested_depth={_NESTED_DEPTH}',
            f'resources of stack {stack.name}',
        )
        return _names(answer['resources'], 'resource_status')

    def _events(
        self, stack: plan_stacks.Stack, query: dict[str, str]
    ) -> list[Any]:
        query['nested_depth'] = str(_NESTED_DEPTH)
        path = f'{_path(stack)}/events?{parse.urlencode(query)}'
        with contextlib.suppress(errors.NotFound):
            found = self._call('GET', path, f'events of stack {stack.name}')
            return list(found['events'])
        return []

    def _send(self, method: str, path: str, what: str, body: Any) -> Any:
        # Heat counts the bytes of a body, so none is given away.
        data = json.dumps(body, ensure_ascii=False, separators=(',', ':'))
        return self._call(
            method,
            path,
            what,
            timeout=_LONG,
            data=data.encode(),
            headers={'Content-Type': 'application/json'},
        )

    def _call(self, method: str, path: str, what: str, **more: Any) -> Any:
        try:
            return self._rest.call(method, path, what, **more)
        except errors.ServiceError as exc:
            for words, option in _LIMITS.items():
                if words in str(exc):
                    raise errors.OverLimit(
                        f'The plan exceeds a limit of this Heat: {exc} The '
                        f'operator raises [DEFAULT] {option} in heat.conf',
                        exc.status,
                        option,
                    ) from exc
            raise


def _body(
    content: references.Resolved,
    tags: abc.Sequence[str] = (),
    timeout: int | None = None,
) -> dict[str, Any]:
    body: dict[str, Any] = {
        'template': content.template,
        'files': dict(content.files),
        'environment_files': list(content.environments),
    }
    if tags:
        body['tags'] = ','.join(tags)
    if timeout is not None:
        body['timeout_mins'] = timeout
    return body


def _stack(found: abc.Mapping[str, Any]) -> plan_stacks.Stack:
    return plan_stacks.Stack(
        id=found['id'],
        name=found['stack_name'],
        status=found['stack_status'],
        reason=found.get('stack_status_reason') or '',
        tags=tuple(found.get('tags') or ()),
        changed_at=found.get('updated_time') or found['creation_time'],
    )


def _event(found: abc.Mapping[str, Any]) -> plan_stacks.Event:
    links = {link['rel']: link['href'] for link in found['links']}
    return plan_stacks.Event(
        id=found['id'],
        resource=found['resource_name'],
        physical_id=found.get('physical_resource_id') or '',
        stack='/'.join(links['stack'].rstrip('/').split('/')[-2:]),
        status=found['resource_status'],
        reason=found.get('resource_status_reason') or '',
        time=found['event_time'],
    )


def _names(found: abc.Iterable[Any], key: str) -> list[str]:
    return [str(one[key]) for one in found]


def _path(stack: plan_stacks.Stack) -> str:
    return f'/stacks/{_quoted(stack.name)}/{stack.id}'


def _quoted(text: str) -> str:
    return parse.quote(text, safe='')
