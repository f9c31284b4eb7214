# SPDX-License-Identifier: Apache-2.0
"""What Swift was asked, and what of a user's remains anywhere."""

import configparser
from typing import Any

import minicloud_client

from demo_lib import errors
from demo_lib import shell


def our_types() -> list[str]:
    """Return the resource types that this source tree provides."""
    parser = configparser.ConfigParser(delimiters=['='])
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(shell.FOLDER / 'setup.cfg')
    lines = parser['entry_points']['heat_plugins.resources'].split('\n')
    return sorted(line.partition(' = ')[0] for line in lines if line)


def container(stack_id: str) -> str:
    """Return a pattern for the path of a stack's container in Swift."""
    return f'/v1/[^/]+/heat-plugins-{stack_id}'


def listings(
    cloud: minicloud_client.Cloud, stack_id: str, since: float = 0
) -> list[dict[str, Any]]:
    return cloud.swift_requests(since, 'GET', container(stack_id))


def signals(
    cloud: minicloud_client.Cloud, stack_id: str
) -> dict[str, dict[str, Any]]:
    """Return the results that Swift has been sent, by their objects."""
    path = f'{container(stack_id)}/signals/(runs/)?[^/]+/[^/.]+([.][0-9]+)?'
    return {
        one['path'].partition('/signals/')[2]: one
        for one in cloud.swift_requests(method='PUT', path=path)
    }


def check_signal(request: dict[str, Any]) -> None:
    """Check that a result came from an agent, without credentials."""
    errors.require(
        request['status'] == 201
        and request['agent'].startswith('python-requests')
        and not request['token'],
        f'This is not what a PUT of the agent looks like: {request}',
    )


def left_over(cloud: minicloud_client.Cloud) -> dict[str, list[str]]:
    """Return what there is of each kind that a stack makes, by real calls."""
    demo, admin = cloud.session('demo'), cloud.session('admin')
    containers = _names(demo, 'object-store', '?format=json', None, 'name')
    domain = _names(admin, 'identity', '/domains?name=heat', 'domains')[0]
    in_domain = f'?domain_id={domain}'
    return {
        'software config': _names(
            demo, 'orchestration', '/software_configs', 'software_configs'
        ),
        'software deployment': _names(
            demo,
            'orchestration',
            '/software_deployments',
            'software_deployments',
        ),
        'container': containers,
        'object': [
            f'{one}/{name}'
            for one in containers
            for name in _names(
                demo, 'object-store', f'/{one}?format=json', None, 'name'
            )
        ],
        'stack user': [
            name
            for name in _names(
                admin, 'identity', f'/users{in_domain}', 'users', 'name'
            )
            # The one with which Heat makes all the others.
            if not name.endswith('admin')
        ],
        'stack project': _names(
            admin, 'identity', f'/projects{in_domain}', 'projects', 'name'
        ),
        'workflow': [
            name
            for name in _names(
                demo, 'workflowv2', '/workflows', 'workflows', 'name'
            )
            # Mistral's own are everybody's.
            if not name.startswith('std.')
        ],
        'cron trigger': _names(
            demo, 'workflowv2', '/cron_triggers', 'cron_triggers', 'name'
        ),
        'trust': _names(
            demo,
            'identity',
            f'/OS-TRUST/trusts?trustor_user_id={demo.user_id}',
            'trusts',
        ),
    }


def _names(
    session: minicloud_client.Session,
    service: str,
    path: str,
    key: str | None,
    field: str = 'id',
) -> list[str]:
    answer = session.get(service, path)
    errors.require(answer.ok, f'{service} answers {answer} to GET {path}')
    found = answer.json() or []
    return [str(one[field]) for one in (found[key] if key else found)]
