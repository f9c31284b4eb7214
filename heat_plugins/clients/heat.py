# SPDX-License-Identifier: Apache-2.0
"""Heat over a Keystone session, for runs and timelines."""

from collections import abc
import contextlib
from typing import Any
from urllib import parse

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.clients import keystone
from heat_plugins.clients import rest
from heat_plugins.runs import orchestration
from heat_plugins.timeline import events

# More than Heat allows; it takes its own limit then.
_NESTED_DEPTH = 50

# Events, or stacks, in one answer.
_PAGE = 500


class Heat:
    """Heat, as `orchestration.Orchestration` and `looking.Heat` have it."""

    def __init__(self, cloud: keystone.Cloud) -> None:
        self._rest = rest.Rest(rest.HEAT, cloud)

    def stack(self, name_or_id: str) -> orchestration.Stack:
        # Its outputs may take long to work out, and nobody wants them here.
        path = f'/stacks/{_quoted(name_or_id)}?resolve_outputs=false'
        found = self._get(path, 'stack', name_or_id)['stack']
        return orchestration.Stack(
            id=found['id'],
            name=found['stack_name'],
            status=found['stack_status'],
            parent=found.get('parent') or None,
            parameters=found.get('parameters') or {},
        )

    def stack_names(self) -> list[str]:
        path = f'/stacks?limit={bounds.CANDIDATES}'
        found = self._get(path, 'stacks', '')['stacks']
        return [str(one['stack_name']) for one in found]

    def stack_ids(self, tag: str | None = None) -> list[str]:
        query = {'limit': str(_PAGE)}
        if tag is not None:
            query['tags'] = tag
        found: list[str] = []
        while True:
            path = f'/stacks?{parse.urlencode(query)}'
            page = self._get(path, 'stacks', '')['stacks']
            found += [str(one['id']) for one in page]
            if len(page) < _PAGE:
                return found
            query['marker'] = found[-1]

    def template(self, stack: orchestration.Stack) -> abc.Mapping[str, Any]:
        path = f'/stacks/{_quoted(stack.name)}/{stack.id}/template'
        found = self._get(path, 'template of stack', stack.name)
        return found if isinstance(found, dict) else {}

    def resources(
        self, stack: orchestration.Stack
    ) -> list[orchestration.Resource]:
        path = (
            f'/stacks/{_quoted(stack.name)}/{stack.id}/resources'
            f'?nested_depth={_NESTED_DEPTH}'
        )
        found = self._get(path, 'resources of stack', stack.name)
        return [_resource(one) for one in found['resources']]

    def events(self, stack: orchestration.Stack) -> list[events.Event]:
        query = {
            'nested_depth': str(_NESTED_DEPTH),
            'sort_dir': 'asc',
            'limit': str(_PAGE),
        }
        path = f'/stacks/{_quoted(stack.name)}/{stack.id}/events'
        found: list[events.Event] = []
        while True:
            page = self._get(
                f'{path}?{parse.urlencode(query)}',
                'events of stack',
                stack.name,
            )['events']
            found += map(_event, page)
            if len(page) < _PAGE:
                return found
            query['marker'] = page[-1]['id']

    def attribute(self, resource: orchestration.Resource, name: str) -> Any:
        stack = self.stack(resource.stack_id)
        path = (
            f'/stacks/{_quoted(stack.name)}/{stack.id}/resources/'
            f'{_quoted(resource.name)}?{parse.urlencode({"with_attr": name})}'
        )
        found = self._get(path, 'resource', resource.name)['resource']
        return (found.get('attributes') or {}).get(name)

    def config(self, config_id: str) -> orchestration.Config:
        path = f'/software_configs/{_quoted(config_id)}'
        found = self._get(path, 'software config', config_id)[
            'software_config'
        ]
        return orchestration.Config(
            id=found['id'],
            name=found.get('name'),
            group=found.get('group'),
            config=found.get('config'),
            inputs=found.get('inputs') or [],
            outputs=found.get('outputs') or [],
            options=found.get('options') or {},
        )

    def create_config(self, draft: orchestration.Draft) -> str:
        answer = self._call(
            'POST',
            '/software_configs',
            'software config',
            draft.name,
            json={
                'name': draft.name,
                'group': draft.group,
                'config': draft.config,
                'inputs': list(draft.inputs),
                'outputs': list(draft.outputs),
                'options': dict(draft.options),
            },
        )
        return str(answer['software_config']['id'])

    def delete_config(self, config_id: str) -> None:
        self._delete(f'/software_configs/{_quoted(config_id)}', config_id)

    def deployment(self, deployment_id: str) -> orchestration.Deployment:
        if not deployment_id:
            raise errors.NotFound('Heat has no deployment without an id')
        path = f'/software_deployments/{_quoted(deployment_id)}'
        found = self._get(path, 'software deployment', deployment_id)
        return _deployment(found['software_deployment'])

    def deployments(self, server_id: str) -> list[orchestration.Deployment]:
        query = parse.urlencode({'server_id': server_id})
        found = self._get(
            f'/software_deployments?{query}', 'deployments of', server_id
        )
        return [_deployment(one) for one in found['software_deployments']]

    def create_deployment(
        self, *, config_id: str, server_id: str, action: str, reason: str
    ) -> str:
        answer = self._call(
            'POST',
            '/software_deployments',
            'software deployment for server',
            server_id,
            json={
                'config_id': config_id,
                'server_id': server_id,
                'action': action,
                'status': 'IN_PROGRESS',
                'status_reason': reason,
            },
        )
        return str(answer['software_deployment']['id'])

    def delete_deployment(self, deployment_id: str) -> None:
        path = f'/software_deployments/{_quoted(deployment_id)}'
        self._delete(path, deployment_id)

    def _delete(self, path: str, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            self._call('DELETE', path, '', name)

    def _get(self, path: str, kind: str, name: str) -> Any:
        return self._call('GET', path, kind, name)

    def _call(
        self, method: str, path: str, kind: str, name: str, **more: Any
    ) -> Any:
        try:
            # Heat may quote what it was given, so the answer to a POST is
            # not passed on.
            return self._rest.call(
                method,
                path,
                f'{kind} {name}'.strip(),
                quote=method != 'POST',
                **more,
            )
        except errors.NotFound as exc:
            raise errors.NotFound(
                f'Heat has no {kind} {name} in this project', exc.status
            ) from exc


def _resource(found: abc.Mapping[str, Any]) -> orchestration.Resource:
    links = {
        link['rel']: link['href'].partition('?')[0].rstrip('/')
        for link in found.get('links') or ()
    }
    nested = links.get('nested')
    return orchestration.Resource(
        name=found['resource_name'],
        type=found['resource_type'],
        physical_id=found.get('physical_resource_id') or '',
        status=found['resource_status'],
        stack_id=links['stack'].rpartition('/')[2],
        nested_id=nested.rpartition('/')[2] if nested else None,
    )


def _event(found: abc.Mapping[str, Any]) -> events.Event:
    links = {
        link['rel']: link['href'].partition('?')[0].rstrip('/')
        for link in found['links']
    }
    return events.Event(
        resource=found['resource_name'],
        stack_id=links['stack'].rpartition('/')[2],
        physical_id=found.get('physical_resource_id') or '',
        status=found['resource_status'],
        reason=found.get('resource_status_reason') or '',
        time=events.moment(found['event_time']),
    )


def _deployment(found: abc.Mapping[str, Any]) -> orchestration.Deployment:
    return orchestration.Deployment(
        id=found['id'],
        server_id=found['server_id'],
        config_id=found['config_id'],
        action=found.get('action'),
        status=found.get('status'),
        reason=found.get('status_reason'),
    )


def _quoted(text: str) -> str:
    return parse.quote(text, safe='')
