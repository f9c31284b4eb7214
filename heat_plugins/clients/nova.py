# SPDX-License-Identifier: Apache-2.0
"""Nova's servers over a Keystone session."""

from heat_plugins.clients import rest

_PAGE = 1000


def servers(cloud: rest.Cloud) -> dict[str, str]:
    """Return the names of the servers of a user's project, by ID.

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
