# SPDX-License-Identifier: Apache-2.0
"""Ask Heat what the agent of a server resource needs to begin with."""

import time
from typing import Any
import urllib.parse

from minicloud_lib import errors
from minicloud_lib import identity
from minicloud_lib import rest
from minicloud_lib.settings import Settings


def bootstrap(
    settings: Settings, user: str, stack: str, resource: str, seconds: float
) -> dict[str, Any]:
    """The server's os_collect_config, waiting until Heat has it.

    The resource is asked, not the stack: that one may be in progress for as
    long as its deployments wait for the agent.
    """
    rest.trust(settings.ca_file)
    keystone = identity.Client(settings.auth_url, user, settings.secrets[user])
    heat = keystone.endpoint('orchestration')
    deadline = time.monotonic() + seconds
    while True:
        try:
            found, state = _ask(heat, keystone.token, stack, resource)
        except (OSError, LookupError) as error:
            found, state = {}, str(error)
        if found:
            return found
        if time.monotonic() > deadline:
            raise errors.MinicloudError(
                f'Heat has no os_collect_config of {resource} in stack '
                f'{stack} after {seconds:g} s: {state}',
                'It has to be an OS::Heat::DeployedServer, or a server '
                'with user_data_format SOFTWARE_CONFIG.',
            )
        time.sleep(0.3)


def _ask(
    heat: str, token: str | None, stack: str, resource: str
) -> tuple[dict[str, Any], str]:
    """What there is of it, and the state that the resource is in."""
    quote = urllib.parse.quote
    # By name, Heat sends us on to the stack; it does not for its resources.
    found = _get(f'{heat}/stacks/{quote(stack)}', token)['stack']
    path = f'{quote(found["stack_name"])}/{found["id"]}'
    one = _get(
        f'{heat}/stacks/{path}/resources/{quote(resource)}'
        '?with_attr=os_collect_config',
        token,
    )['resource']
    attributes = one.get('attributes') or {}
    return (
        attributes.get('os_collect_config') or {},
        f'it is a {one["resource_type"]} in {one["resource_status"]}',
    )


def _get(url: str, token: str | None) -> Any:
    answer = rest.send('GET', url, token=token)
    if not answer.ok:
        raise LookupError(str(answer))
    return answer.json()
