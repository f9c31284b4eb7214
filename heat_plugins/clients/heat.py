# SPDX-License-Identifier: Apache-2.0
"""Heat's REST API over a Keystone session.

An engine calls its own Heat instead; see `engine.database.own_heat`.
"""

from collections import abc
import contextlib
import datetime
import json
from typing import Any
from urllib import parse

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.clients import rest
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.timeline import chart_reading
from heat_plugins.validations import inventory

# It is no matter for parameters whether this cloud has all services (Heat's
# error 99001) that the plan's resources need.
_VALIDATE = '/validate?show_nested=true&ignore_errors=99001'

# What Heat has to read and check may be hundreds of templates.
_LONG = 600.0

# More than Heat allows; it takes its own limit then.
_NESTED_DEPTH = 50

# Events, stacks or configs in one answer, and how many answers with configs.
_PAGE, _PAGES = 500, 4

# Heat's words for its limits, and the options that set them.
_LIMITS = {
    'JSON body size': 'max_json_body_size',
    'Recursion depth exceeds': 'max_nested_stack_depth',
    'Template size': 'max_template_size',
    'Maximum resources per stack exceeded': 'max_resources_per_stack',
}

# OS::Nova::Server, and what plans call theirs: OS::TripleO::ComputeServer.
_SERVER = 'Server'

_Stack = heat_values.Stack | plan_stacks.Stack


class Heat:
    """A client of Heat, for the protocols of the core.

    They are `orchestration.Orchestration` for runs,
    `chart_reading.StackHistory` for timelines, `plan_stacks.Stacks` and
    `inventory.Servers`.
    """

    def __init__(self, cloud: rest.Cloud) -> None:
        self._rest = rest.Rest(rest.HEAT, cloud)

    # Stacks

    def stack(self, name_or_id: str) -> heat_values.Stack:
        return stack(self._show(name_or_id))

    def find(self, name: str) -> plan_stacks.Stack | None:
        try:
            stack = plan_stack(self._show(name))
        except errors.NotFound:
            return None
        return None if stack.status == 'DELETE_COMPLETE' else stack

    def stack_names(self) -> list[str]:
        answer = self._get(f'/stacks?limit={bounds.CANDIDATES}', 'stacks')
        return _each(answer['stacks'], 'stack_name')

    def stack_ids(self, tag: str | None = None) -> list[str]:
        query = {} if tag is None else {'tags': tag}
        return _each(self._pages('/stacks', 'stacks', 'stacks', query), 'id')

    def output(self, stack: str, name: str) -> Any:
        answer = self._get(f'/stacks/{_quoted(stack)}', f'stack {stack}')
        for output in answer['stack'].get('outputs') or ():
            if output['output_key'] == name:
                if output.get('output_error'):
                    raise errors.Invalid(
                        f'Output {name} of stack {stack} has no value: '
                        f'{output["output_error"]}'
                    )
                return output.get('output_value')
        return None

    def template(self, stack: _Stack) -> abc.Mapping[str, Any]:
        return self._part(stack, 'template')

    def content(
        self, stack: plan_stacks.Stack
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
        stack: plan_stacks.Stack,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> None:
        body = _body(content, tags, timeout)
        self._send('PUT', _path(stack), f'stack {stack.name}', body)

    def update_environment(
        self, stack: heat_values.Stack, environment: abc.Mapping[str, Any]
    ) -> None:
        # PATCH keeps all values that the request leaves out.
        body = {'environment': dict(environment)}
        self._send('PATCH', _path(stack), f'stack {stack.name}', body)

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

    def preview(self, name: str, content: references.Resolved) -> None:
        body = _body(content) | {'stack_name': name}
        self._send('POST', '/stacks/preview', f'stack {name}', body)

    def preview_replace(
        self, stack: plan_stacks.Stack, content: references.Resolved
    ) -> abc.Mapping[str, tuple[str, ...]]:
        path, what = f'{_path(stack)}/preview', f'stack {stack.name}'
        answer = self._send('PUT', path, what, _body(content))
        return changes(answer['resource_changes'])

    # Their resources and events, nested ones included

    def resource_types(self) -> frozenset[str]:
        answer = self._get('/resource_types', 'resource types')
        return frozenset(map(str, answer['resource_types']))

    def resources(self, stack: _Stack) -> list[heat_values.Resource]:
        path = f'{_path(stack)}/resources?nested_depth={_NESTED_DEPTH}'
        answer = self._get(path, f'resources of stack {stack.name}')
        return [resource(entry) for entry in answer['resources']]

    def statuses(self, stack: plan_stacks.Stack) -> list[str]:
        return [resource.status for resource in self.resources(stack)]

    def attribute(self, resource: heat_values.Resource, name: str) -> Any:
        query = parse.urlencode({'with_attr': name})
        return self._attributes(resource, f'?{query}').get(name)

    def signal(
        self, resource: heat_values.Resource, details: abc.Mapping[str, Any]
    ) -> None:
        stack = self.stack(resource.stack_id)
        path = f'{_path(stack)}/resources/{_quoted(resource.name)}/signal'
        what = f'signal to resource {resource.name}'
        self._send('POST', path, what, dict(details))

    def servers(self, stack: str) -> list[inventory.Server]:
        root = self.stack(stack)
        resources = self.resources(root)
        servers = []
        for resource in resources:
            if resource.nested_id is None and resource.type.endswith(_SERVER):
                attributes: abc.Mapping[str, Any] = {}
                # It may have been deleted just now.
                with contextlib.suppress(errors.NotFound):
                    attributes = self._attributes(resource)
                if 'addresses' in attributes:
                    servers.append(
                        inventory.Server(
                            path=lineage(resource, resources, root.id),
                            name=str(attributes.get('name') or ''),
                            address=inventory.address(attributes),
                        )
                    )
        return servers

    def all_events(
        self, stack: heat_values.Stack
    ) -> list[chart_reading.StackEvent]:
        path, what = f'{_path(stack)}/events', f'events of stack {stack.name}'
        query = {'nested_depth': str(_NESTED_DEPTH), 'sort_dir': 'asc'}
        entries = self._pages(path, what, 'events', query)
        return [timeline_event(entry) for entry in entries]

    def events(
        self, stack: plan_stacks.Stack, after: str | None, limit: int
    ) -> list[plan_stacks.Event]:
        query = {'sort_dir': 'asc', 'limit': str(limit)}
        if after is not None:
            query['marker'] = after
        return [event(entry) for entry in self._events(stack, query)]

    def last_event(self, stack: plan_stacks.Stack) -> str | None:
        latest = self._events(stack, {'sort_dir': 'desc', 'limit': '1'})
        return str(latest[0]['id']) if latest else None

    # Software configs and deployments

    def config(self, config_id: str) -> heat_values.Config:
        path = f'/software_configs/{_quoted(config_id)}'
        answer = self._get(path, f'software config {config_id}')
        return config(answer['software_config'])

    def create_config(self, draft: heat_values.DerivedConfig) -> str:
        body = {
            'name': draft.name,
            'group': draft.group,
            'config': draft.config,
            'inputs': list(draft.inputs),
            'outputs': list(draft.outputs),
            'options': dict(draft.options),
        }
        return self._make('software_config', f'config {draft.name}', body)

    def recent_configs(self, suffix: str, since: float) -> list[str]:
        found: list[str] = []
        query = {'limit': str(_PAGE)}
        for _page in range(_PAGES):
            path = f'/software_configs?{parse.urlencode(query)}'
            page = self._get(path, 'software configs')['software_configs']
            recent = [e for e in page if _made_at(e) >= since]
            found += [
                str(each['id'])
                for each in recent
                if str(each.get('name')).endswith(suffix)
            ]
            if len(recent) < _PAGE:
                break
            query['marker'] = str(page[-1]['id'])
        return found

    def delete_config(self, config_id: str) -> None:
        self._delete(f'/software_configs/{_quoted(config_id)}', config_id)

    def deployment(self, deployment_id: str) -> heat_values.Deployment:
        if not deployment_id:
            raise errors.NotFound('The ID of the deployment is missing')
        path = f'/software_deployments/{_quoted(deployment_id)}'
        answer = self._get(path, f'software deployment {deployment_id}')
        return deployment(answer['software_deployment'])

    def deployments(self, server_id: str) -> list[heat_values.Deployment]:
        query = parse.urlencode({'server_id': server_id})
        path = f'/software_deployments?{query}'
        answer = self._get(path, f'deployments of {server_id}')
        return [deployment(row) for row in answer['software_deployments']]

    def create_deployment(
        self, *, config_id: str, server_id: str, action: str, reason: str
    ) -> str:
        body = {
            'config_id': config_id,
            'server_id': server_id,
            'action': action,
            'status': 'IN_PROGRESS',
            'status_reason': reason,
        }
        what = f'deployment for server {server_id}'
        return self._make('software_deployment', what, body)

    def tell(self, deployment: heat_values.Deployment) -> None:
        # Heat tells a server of whatever config a deployment is changed to.
        self._change(deployment.id, config_id=deployment.config_id)

    def set_status(self, deployment_id: str, status: str) -> str | None:
        reason: str | None = self._change(deployment_id, status=status)
        return reason

    def _change(self, deployment_id: str, **values: str) -> Any:
        path = f'/software_deployments/{_quoted(deployment_id)}'
        what = f'software deployment {deployment_id}'
        answer = self._send('PUT', path, what, values)
        return answer['software_deployment'].get('status_reason')

    def server_configs(self, server_id: str) -> list[heat_values.Config]:
        path = f'/software_deployments/metadata/{_quoted(server_id)}'
        answer = self._get(path, f'configs of {server_id}')
        return [config(entry) for entry in answer['metadata']]

    def delete_deployment(
        self, deployment_id: str, server_id: str | None = None
    ) -> None:
        path = f'/software_deployments/{_quoted(deployment_id)}'
        self._delete(path, deployment_id)

    # Requests

    def _show(self, name_or_id: str) -> abc.Mapping[str, Any]:
        # Heat may take long to work out the outputs, which no caller needs.
        path = f'/stacks/{_quoted(name_or_id)}?resolve_outputs=false'
        answer: abc.Mapping[str, Any] = self._get(path, f'stack {name_or_id}')
        return dict(answer['stack'])

    def _part(self, stack: _Stack, kind: str) -> dict[str, Any]:
        path = f'{_path(stack)}/{kind}'
        answer = self._get(path, f'{kind} of stack {stack.name}')
        return answer if isinstance(answer, dict) else {}

    def _attributes(
        self, resource: heat_values.Resource, query: str = ''
    ) -> abc.Mapping[str, Any]:
        # Heat wants the stack's name as well as its ID, and resolves it.
        stack = self.stack(resource.stack_id)
        path = f'{_path(stack)}/resources/{_quoted(resource.name)}{query}'
        answer = self._get(path, f'resource {resource.name}')
        return answer['resource'].get('attributes') or {}

    def _events(
        self, stack: plan_stacks.Stack, query: dict[str, str]
    ) -> list[Any]:
        query['nested_depth'] = str(_NESTED_DEPTH)
        path = f'{_path(stack)}/events?{parse.urlencode(query)}'
        with contextlib.suppress(errors.NotFound):
            answer = self._get(path, f'events of stack {stack.name}')
            return list(answer['events'])
        return []

    def _pages(
        self, path: str, what: str, key: str, query: dict[str, str]
    ) -> list[Any]:
        """Return the entries of all pages of a list."""
        query = {**query, 'limit': str(_PAGE)}
        entries: list[Any] = []
        while True:
            page = self._get(f'{path}?{parse.urlencode(query)}', what)[key]
            entries += page
            if len(page) < _PAGE:
                return entries
            query['marker'] = str(page[-1]['id'])

    def _get(self, path: str, what: str) -> Any:
        try:
            return self._rest.call('GET', path, what)
        except errors.NotFound as exc:
            raise errors.NotFound(
                f'Heat has no {what} in this project', exc.status
            ) from exc

    def _make(self, kind: str, what: str, body: dict[str, Any]) -> str:
        # Heat's message may quote the request, so it is not passed on.
        answer = self._rest.call(
            'POST', f'/{kind}s', f'software {what}', quote=False, json=body
        )
        return str(answer[kind]['id'])

    def _delete(self, path: str, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            self._rest.call('DELETE', path, name)

    def _send(self, method: str, path: str, what: str, body: Any) -> Any:
        # Heat counts the bytes of a body, so none is given away.
        data = json.dumps(body, ensure_ascii=False, separators=(',', ':'))
        try:
            return self._rest.call(
                method,
                path,
                what,
                timeout=_LONG,
                data=data.encode(),
                headers={'Content-Type': 'application/json'},
            )
        except errors.ServiceError as exc:
            for words, option in _LIMITS.items():
                if words in str(exc):
                    raise errors.OverHeatLimit(
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


def _each(entries: abc.Iterable[Any], key: str) -> list[str]:
    return [str(entry[key]) for entry in entries]


def _path(stack: _Stack) -> str:
    return f'/stacks/{_quoted(stack.name)}/{stack.id}'


def _quoted(text: str) -> str:
    return parse.quote(text, safe='')


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


def timeline_event(answer: abc.Mapping[str, Any]) -> chart_reading.StackEvent:
    return chart_reading.StackEvent(
        resource=answer['resource_name'],
        stack_id=_links(answer)['stack'][-1],
        physical_id=answer.get('physical_resource_id') or '',
        status=answer['resource_status'],
        reason=answer.get('resource_status_reason') or '',
        time=chart_reading.moment(answer['event_time']),
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


def _made_at(answer: abc.Mapping[str, Any]) -> float:
    """Return when something was made, in seconds since the epoch."""
    made = datetime.datetime.fromisoformat(
        str(answer['creation_time']).replace('Z', '+00:00')
    )
    return made.timestamp()


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
