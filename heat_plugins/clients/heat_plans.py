# SPDX-License-Identifier: Apache-2.0
"""Heat's REST API for plans and validations."""

from collections import abc
import contextlib
from typing import Any
from urllib import parse

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.clients import heat
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import plan_stacks

# It is no matter for parameters whether this cloud has all services (Heat's
# error 99001) that the plan's resources need.
_VALIDATE = '/validate?show_nested=true&ignore_errors=99001'

# OS::Nova::Server, and what plans call theirs: OS::TripleO::ComputeServer.
_SERVER = 'Server'

_CHANGES = ('unchanged', 'updated', 'replaced', 'added', 'deleted')


class PlanStacks(heat.Heat):
    """Implements `plan_stacks.Stacks` by Heat."""

    def find(self, name: str) -> heat_values.Stack | None:
        try:
            stack = heat.stack(self._show(name))
            return None if stack.status == 'DELETE_COMPLETE' else stack
        except errors.NotFound:
            return None

    def output(self, stack: str, name: str) -> Any:
        answer = self._get(f'/stacks/{heat.quoted(stack)}', f'stack {stack}')
        for output in answer['stack'].get('outputs') or ():
            if output['output_key'] == name:
                if output.get('output_error'):
                    raise errors.Invalid(
                        f'Output {name} of stack {stack} has no value: '
                        f'{output["output_error"]}'
                    )
                return output.get('output_value')
        return None

    def content(
        self, stack: heat_values.Stack
    ) -> tuple[abc.Mapping[str, Any], abc.Mapping[str, Any], dict[str, str]]:
        return (
            self.template(stack),
            self._part(stack, 'environment'),
            self._part(stack, 'files'),
        )

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
        stack: heat_values.Stack,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> None:
        self._send(
            'PUT',
            heat.path_of(stack),
            f'stack {stack.name}',
            _body(content, tags, timeout),
        )

    def cancel(self, stack: heat_values.Stack) -> None:
        self._send(
            'POST',
            f'{heat.path_of(stack)}/actions',
            f'cancel of stack {stack.name}',
            {'cancel_without_rollback': None},
        )

    def validate(self, content: references.Resolved) -> abc.Mapping[str, Any]:
        return dict(
            self._send('POST', _VALIDATE, 'validation', _body(content))
        )

    def preview(self, name: str, content: references.Resolved) -> None:
        self._send(
            'POST',
            '/stacks/preview',
            f'stack {name}',
            _body(content) | {'stack_name': name},
        )

    def preview_replace(
        self, stack: heat_values.Stack, content: references.Resolved
    ) -> abc.Mapping[str, tuple[str, ...]]:
        path, what = f'{heat.path_of(stack)}/preview', f'stack {stack.name}'
        answer = self._send('PUT', path, what, _body(content))
        return {
            kind: tuple(
                sorted(
                    str(target['resource_name'])
                    for target in answer['resource_changes'][kind]
                )
            )
            for kind in _CHANGES
        }

    def servers(self, stack: str) -> list[plan_stacks.StackServer]:
        root = self.stack(stack)
        resources, servers = self.resources(root), []
        for resource in resources:
            if resource.nested_id is None and resource.type.endswith(_SERVER):
                attributes: abc.Mapping[str, Any] = {}
                # It may have been deleted just now.
                with contextlib.suppress(errors.NotFound):
                    attributes = self._attributes(resource)
                if 'addresses' in attributes:
                    servers.append(
                        plan_stacks.StackServer(
                            path=lineage(resource, resources, root.id),
                            name=str(attributes.get('name') or ''),
                            address=address(attributes),
                        )
                    )
        return servers

    def events(
        self, stack: heat_values.Stack, after: str | None, limit: int
    ) -> list[heat_values.Event]:
        query = {'sort_dir': 'asc', 'limit': str(limit)}
        if after is not None:
            query['marker'] = after
        return [heat.event(entry) for entry in self._events(stack, query)]

    def last_event(self, stack: heat_values.Stack) -> str | None:
        latest = self._events(stack, {'sort_dir': 'desc', 'limit': '1'})
        return str(latest[0]['id']) if latest else None

    def _events(
        self, stack: heat_values.Stack, query: dict[str, str]
    ) -> list[Any]:
        """Return events of a stack; none if it has gone."""
        query['nested_depth'] = str(heat.NESTED_DEPTH)
        path = f'{heat.path_of(stack)}/events?{parse.urlencode(query)}'
        with contextlib.suppress(errors.NotFound):
            answer = self._get(path, f'events of stack {stack.name}')
            return list(answer['events'])
        return []


def address(attributes: abc.Mapping[str, Any]) -> str:
    """Return the address to come to a server by; '' if it has none.

    It is the one that its owner has set (``accessIPv4``, ``accessIPv6``),
    else a floating one, else the first one, IPv4 before IPv6.
    """
    for name in ('accessIPv4', 'accessIPv6'):
        if attributes.get(name):
            return str(attributes[name])
    every = [
        port
        for network in (attributes.get('addresses') or {}).values()
        for port in network
        if port.get('addr')
    ]
    every.sort(
        key=lambda port: (
            port.get('OS-EXT-IPS:type') != 'floating',
            str(port.get('version')) != '4',
        )
    )
    return str(every[0]['addr']) if every else ''


def _body(
    content: references.Resolved,
    tags: abc.Sequence[str] = (),
    timeout: int | None = None,
) -> dict[str, Any]:
    """Return a plan as Heat's API takes a stack."""
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
