# SPDX-License-Identifier: Apache-2.0
"""Nova's servers over a Keystone session."""

from urllib import parse

from heat_plugins import errors
from heat_plugins.clients import rest

_PAGE = 1000


def servers(cloud: rest.Cloud) -> dict[str, str]:
    """Return the names of the servers of a user's project, by ID.

    Nova leaves out servers whose cell it cannot reach, and those that were
    deleted so that they can be restored.

    :raises errors.ServiceError: they cannot be listed.
    """
    api = rest.Rest(rest.NOVA, cloud)
    names: dict[str, str] = {}
    query = f'limit={_PAGE}'
    while True:
        page = api.call('GET', f'/servers?{query}', 'servers')['servers']
        # Nova may give fewer than asked for.
        if not page:
            return names
        names |= {each['id']: each['name'] for each in page}
        query = f'limit={_PAGE}&marker={page[-1]["id"]}'


def is_there(cloud: rest.Cloud, server_id: str) -> bool:
    """Say whether Nova has a server, also one that can be restored.

    :raises errors.ServiceError: Nova does not tell.
    """
    path = f'/servers/{parse.quote(server_id, safe="")}'
    try:
        rest.Rest(rest.NOVA, cloud).call('GET', path, f'server {server_id}')
    except errors.NotFound:
        return False
    return True
