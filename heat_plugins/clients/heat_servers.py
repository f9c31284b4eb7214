# SPDX-License-Identifier: Apache-2.0
"""The servers of Heat's stacks over a Keystone session, for validations."""

from collections import abc
import contextlib
from typing import Any
from urllib import parse

from heat_plugins import errors
from heat_plugins.clients import heat
from heat_plugins.clients import keystone
from heat_plugins.clients import rest
from heat_plugins.runs import orchestration
from heat_plugins.validations import inventory

# OS::Nova::Server, and what plans call theirs: OS::TripleO::ComputeServer.
_SERVER = 'Server'


class HeatServers:
    """Servers, as `inventory.Servers` has them."""

    def __init__(self, cloud: keystone.Cloud) -> None:
        self._heat = heat.Heat(cloud)
        self._rest = rest.Rest(rest.HEAT, cloud)

    def output(self, stack: str, name: str) -> Any:
        found = self._get(f'/stacks/{_quoted(stack)}', f'stack {stack}')
        if found is None:
            raise errors.NotFound(f'There is no stack {stack}')
        for one in found['stack'].get('outputs') or ():
            if one['output_key'] == name:
                if one.get('output_error'):
                    raise errors.Invalid(
                        f'Output {name} of stack {stack} has no value: '
                        f'{one["output_error"]}'
                    )
                return one.get('output_value')
        return None

    def servers(self, stack: str) -> list[inventory.Server]:
        root = self._heat.stack(stack)
        resources = self._heat.resources(root)
        found = []
        for one in resources:
            if one.nested_id is None and one.type.endswith(_SERVER):
                attributes = self._attributes(one)
                if 'addresses' in attributes:
                    found.append(
                        inventory.Server(
                            path=_path(one, resources, root.id),
                            name=str(attributes.get('name') or ''),
                            address=address(attributes),
                        )
                    )
        return found

    def _attributes(
        self, one: orchestration.Resource
    ) -> abc.Mapping[str, Any]:
        """Return the attributes of a resource; none if it has just gone."""
        # Heat asks for the name of the stack beside its id, and follows it.
        stack = self._heat.stack(one.stack_id)
        found = self._get(
            f'/stacks/{_quoted(stack.name)}/{stack.id}/resources/'
            f'{_quoted(one.name)}',
            f'resource {one.name}',
        )
        return dict(found['resource'].get('attributes') or {}) if found else {}

    def _get(self, path: str, what: str) -> Any:
        with contextlib.suppress(errors.NotFound):
            return self._rest.call('GET', path, what, quote=False)
        return None


def address(attributes: abc.Mapping[str, Any]) -> str:
    """Return the address to come to a server by; '' if it has none.

    It is the one that its owner has set (``accessIPv4``, ``accessIPv6``),
    else a floating one, else the first one, IPv4 before IPv6.
    """
    for name in ('accessIPv4', 'accessIPv6'):
        if attributes.get(name):
            return str(attributes[name])
    networks = attributes.get('addresses')
    every = [
        one
        for network in (networks or {}).values()
        for one in network
        if one.get('addr')
    ]
    every.sort(
        key=lambda one: (
            one.get('OS-EXT-IPS:type') != 'floating',
            str(one.get('version')) != '4',
        )
    )
    return str(every[0]['addr']) if every else ''


def _path(
    one: orchestration.Resource,
    resources: abc.Iterable[orchestration.Resource],
    root_id: str,
) -> tuple[str, ...]:
    parents = {
        other.nested_id: other for other in resources if other.nested_id
    }
    path = [one.name]
    stack_id = one.stack_id
    while stack_id != root_id and stack_id in parents:
        path.insert(0, parents[stack_id].name)
        stack_id = parents[stack_id].stack_id
    return tuple(path)


def _quoted(text: str) -> str:
    return parse.quote(text, safe='')
