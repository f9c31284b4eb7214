# SPDX-License-Identifier: Apache-2.0
"""Ironic's nodes over a Keystone session."""

from collections import abc
from typing import Any
from urllib import parse

from heat_plugins import errors
from heat_plugins.clients import rest
from heat_plugins.nodes import node

# The first that keeps the inventory of an inspection (Ironic 21.4).
_VERSION = '1.81'

_STATES = ('uuid', 'name', 'provision_state', 'last_error', 'instance_uuid')


class BaremetalAPI:
    """Nodes, as `node.Baremetal` has them."""

    def __init__(self, cloud: rest.Cloud) -> None:
        self._rest = rest.Rest(
            rest.IRONIC,
            cloud,
            default_microversion=_VERSION,
            # We retry ourselves, and only what may be repeated.
            connect_retries=0,
        )

    def nodes(self) -> list[node.Node]:
        return self._nodes('/nodes/detail')

    def states(self) -> list[node.Node]:
        return self._nodes(f'/nodes?fields={",".join(_STATES)}')

    def ports(self) -> dict[str, str]:
        return {
            row['address'].lower(): row['node_uuid']
            for row in self._all('/ports?fields=node_uuid,address', 'ports')
        }

    def create_node(self, fields: abc.Mapping[str, Any]) -> None:
        self._call('POST', '/nodes', fields)

    def update_node(
        self,
        uuid: str,
        patch: node.Patch,
        *,
        reset_interfaces: bool = False,
    ) -> None:
        query = '?reset_interfaces=true' if reset_interfaces else ''
        self._call('PATCH', f'/nodes/{uuid}{query}', [*patch])

    def delete_node(self, uuid: str) -> None:
        self._call('DELETE', f'/nodes/{uuid}')

    def create_port(self, uuid: str, fields: abc.Mapping[str, Any]) -> None:
        self._call('POST', '/ports', {**fields, 'node_uuid': uuid})

    def set_state(self, uuid: str, verb: str) -> None:
        self._call('PUT', f'/nodes/{uuid}/states/provision', {'target': verb})

    def inventory(self, uuid: str) -> abc.Mapping[str, Any]:
        return dict(self._call('GET', f'/nodes/{uuid}/inventory'))

    def _nodes(self, path: str) -> list[node.Node]:
        """Return the nodes that Ironic lists at a path."""
        return [
            node.Node(uuid=row['uuid'], fields=row)
            for row in self._all(path, 'nodes')
        ]

    def _all(self, path: str, kind: str) -> list[dict[str, Any]]:
        """Return the entries of all pages of a list."""
        rows: list[dict[str, Any]] = []
        following: str | None = path
        while following:
            page = self._call('GET', following)
            rows += page[kind]
            # A proxy before Ironic may have another address than it thinks.
            query = parse.urlsplit(page.get('next') or '').query
            following = f'{path.partition("?")[0]}?{query}' if query else None
        return rows

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to Ironic; say if a node is locked."""
        what = path.split('/')[1].partition('?')[0]
        try:
            # The catalogue has the address with the version, or without it.
            endpoint = self._rest.endpoint().rstrip('/')
            prefix = '' if endpoint.endswith('/v1') else '/v1'
            return self._rest.call(method, f'{prefix}{path}', what, json=body)
        except errors.ServiceError as exc:
            message = str(exc)
            if exc.status == 409 and 'locked' in message:
                # It answers 409 also for an object that exists already.
                raise errors.NodeLocked(message, exc.status) from exc
            if type(exc) is errors.ServiceError and (exc.status or 0) >= 400:
                raise errors.Refused(message) from exc
            raise
