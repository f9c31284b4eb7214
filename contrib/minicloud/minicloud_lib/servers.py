# SPDX-License-Identifier: Apache-2.0
"""Ask Heat what the agent of a server resource needs to begin with."""

import time
from typing import Any
import urllib.parse

from minicloud_lib import errors
from minicloud_lib import identity
from minicloud_lib import output
from minicloud_lib import rest
from minicloud_lib.settings import Settings

# Number of names that are shown of what there is.
_SHOWN = 20


class _NotThere(LookupError):
    """What was asked for does not exist, or is nothing for an agent."""


def bootstrap(
    settings: Settings, user: str, stack: str, resource: str, seconds: float
) -> dict[str, Any]:
    """The server's os_collect_config, waiting until Heat has it.

    The resource is asked, not the stack: that one may be in progress for as
    long as its deployments wait for the agent. A name that Heat does not know
    may be wrong, or come too early: it is said at once, and waited for.
    """
    rest.trust(settings.ca_file)
    keystone = identity.Client(settings.auth_url, user, settings.secrets[user])
    heat = keystone.endpoint('orchestration')
    deadline = time.monotonic() + seconds
    said = ''
    while True:
        try:
            return _ask(heat, keystone.token, stack, resource)
        except (OSError, LookupError) as error:
            state = str(error)
            doubtful = isinstance(error, _NotThere)
        if time.monotonic() > deadline:
            raise errors.MinicloudError(
                f'no os_collect_config after {seconds:g} s: {state}'
            )
        if doubtful and state != said:
            output.say(f'{state}. Waiting up to {seconds:g} s')
            said = state
        time.sleep(0.3)


def _ask(
    heat: str, token: str | None, stack: str, resource: str
) -> dict[str, Any]:
    """What there is of it.

    :raises LookupError: there is nothing yet; it says why.
    """
    quote = urllib.parse.quote
    # By name, Heat sends us on to the stack; it does not for its resources.
    found = _get(f'{heat}/stacks/{quote(stack)}', token)
    if not found:
        names = _names(f'{heat}/stacks', token, 'stacks', 'stack_name')
        raise _NotThere(f'there is no stack {stack}; there are: {names}')
    path = '{stack_name}/{id}'.format_map(found['stack'])
    resources = f'{heat}/stacks/{quote(path)}/resources'
    found = _get(
        f'{resources}/{quote(resource)}?with_attr=os_collect_config', token
    )
    if not found:
        names = _names(resources, token, 'resources', 'resource_name')
        raise _NotThere(
            f'stack {stack} has no resource {resource}; it has: {names}'
        )
    return _collect_config(found['resource'])


def _collect_config(resource: dict[str, Any]) -> dict[str, Any]:
    attributes = resource.get('attributes') or {}
    found: dict[str, Any] = attributes.get('os_collect_config') or {}
    if found:
        return found
    name, status = resource['resource_name'], resource['resource_status']
    state = f'{name} is a {resource["resource_type"]} in {status}'
    if status in ('CREATE_COMPLETE', 'UPDATE_COMPLETE'):
        raise _NotThere(
            f'{state}; it must be an OS::Heat::DeployedServer, or a server '
            'with user_data_format SOFTWARE_CONFIG'
        )
    raise LookupError(state)


def _names(url: str, token: str | None, kind: str, key: str) -> str:
    every = sorted(one[key] for one in _get(url, token).get(kind, ()))
    shown = ', '.join(every[:_SHOWN]) or 'none'
    surplus = len(every) - _SHOWN
    return f'{shown} and {surplus} more' if surplus > 0 else shown


def _get(url: str, token: str | None) -> dict[str, Any]:
    """What Heat says; empty if there is no such thing."""
    answer = rest.send('GET', url, token=token)
    if answer.status == 404:
        return {}
    if not answer.ok:
        raise LookupError(str(answer))
    found: dict[str, Any] = answer.json()
    return found
