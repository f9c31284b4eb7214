# SPDX-License-Identifier: Apache-2.0
"""The node in Ironic for an entry of a file, and their differences."""

from collections import abc
import dataclasses
from typing import Any, Final
import uuid as uuids

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.nodes import node
from heat_plugins.nodes import node_reading

_MISSING: Final = object()

_NAMESPACE: Final = uuids.UUID('6f1d5ad5-3f0e-5a52-9a70-0cbb7f5e8a11')


class Matcher:
    """Finds nodes by uuid, MAC address or the address of their BMC."""

    def __init__(
        self,
        nodes: abc.Iterable[node.Node],
        owners: abc.Mapping[str, str],
    ) -> None:
        self._nodes = {each.uuid: each for each in nodes}
        self._owners = owners
        self._places: dict[node.Place | None, list[str]] = {}
        for each in self._nodes.values():
            place = node_reading.place(each.map('driver_info'))
            self._places.setdefault(place, []).append(each.uuid)

    def change(self, wanted: node.Wanted) -> 'NodeChange':
        """Return the changes that an entry needs.

        A node that does not exist gets a UUID that is the same each time, made
        of its first MAC address or its BMC. So an interrupted registration is
        resumed, and of two callers who register a machine at once, Ironic
        refuses one.

        :raises errors.Refused: the entry matches several nodes.
        """
        means = {
            self._owners[mac]: f'MAC address {mac}'
            for mac in wanted.macs
            if self._owners.get(mac) in self._nodes
        }
        if wanted.uuid in self._nodes:
            means[wanted.uuid] = f'uuid {wanted.uuid}'
        at_place = self._places.get(wanted.place, []) if wanted.place else []
        # A BMC of several nodes, as of a chassis, identifies none of them.
        if len(at_place) == 1 or not means:
            means |= dict.fromkeys(at_place, 'the BMC')
        if len(means) > 1:
            listed = ', '.join(
                f'{mark} is of {self._nodes[uuid].label}'
                for uuid, mark in means.items()
            )
            raise errors.Refused(
                f'It matches several nodes: {listed}. Remove what belongs to '
                'another node'
            )
        mark = min(wanted.macs, default='') or '|'.join(wanted.place or ())
        derived = str(uuids.uuid5(_NAMESPACE, mark))
        uuid = min(means, default=wanted.uuid or derived)
        return _compare(wanted, uuid, self._nodes.get(uuid), self._owners)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeChange:
    """The changes of one node.

    :ivar present: the node in Ironic; None for a new node.
    :ivar create: the fields of a new node, or None.
    :ivar patch: of a node that exists.
    :ivar ports: the network cards that it lacks.
    :ivar shown: the differences, a line each; passwords are hidden.
    :ivar secrets: the passwords and keys, which no message may hold.
    """

    uuid: str
    present: node.Node | None
    create: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    patch: tuple[abc.Mapping[str, Any], ...] = dataclasses.field(
        default=(), repr=False
    )
    ports: tuple[abc.Mapping[str, Any], ...] = ()
    shown: tuple[str, ...] = ()
    secrets: frozenset[str] = dataclasses.field(
        default=frozenset(), repr=False
    )
    new_driver: bool = False


def _compare(
    wanted: node.Wanted,
    uuid: str,
    present: node.Node | None,
    owners: abc.Mapping[str, str],
) -> NodeChange:
    """Return the changes from the node in Ironic to an entry of the file.

    Fields that the file does not name stay as they are: an inspection may have
    found them. Passwords are always written: Ironic masks the present ones.
    """
    ports = tuple(
        port for port in wanted.ports if owners.get(port['address']) != uuid
    )
    shown = [f'port {port["address"]}' for port in ports]
    former = present or node.Node(uuid=uuid)
    fields = {'driver': wanted.driver, **wanted.more}
    if wanted.name:
        fields['name'] = wanted.name
    properties = _properties(wanted, former.map('properties'))
    sections = {'driver_info': wanted.driver_info, 'properties': properties}
    values = [('', name, value) for name, value in fields.items()]
    for section, entries in sections.items():
        values += [(section, *entry) for entry in entries.items()]
    patch = []
    for section, name, value in values if present else ():
        within = former.map(section) if section else former.fields
        now = within.get(name, _MISSING)
        secret = section == 'driver_info' and node.is_secret(name)
        # Ironic may store a number as a text.
        if str(now) == str(value) and not secret:
            continue
        # In Ironic "add" replaces a value that exists. RFC 6901 escapes names.
        key = name.replace('~', '~0').replace('/', '~1')
        path = f'/{section}/{key}' if section else f'/{name}'
        patch.append({'op': 'add', 'path': path, 'value': value})
        before = '' if now is _MISSING else f'{now} -> '
        if not secret:
            shown.append(f'{path[1:]}: {before}{value}')
        elif now is _MISSING:
            shown.append(f'{path[1:]}: {masking.MASK}')
    return NodeChange(
        uuid=uuid,
        present=present,
        create=None if present else {**fields, **sections, 'uuid': uuid},
        patch=tuple(patch),
        ports=ports,
        shown=tuple(shown),
        secrets=frozenset(
            str(value)
            for name, value in wanted.driver_info.items()
            if node.is_secret(name)
        ),
        new_driver=wanted.driver != former.text('driver'),
    )


def _properties(
    wanted: node.Wanted, present: abc.Mapping[str, Any]
) -> dict[str, Any]:
    """Return the properties, with all capabilities as one text."""
    properties = dict(wanted.properties)
    if wanted.capabilities:
        now = str(present.get('capabilities') or '').split(',')
        merged = dict(pair.split(':', 1) for pair in now if ':' in pair)
        merged.update(wanted.capabilities)
        properties['capabilities'] = ','.join(
            f'{name}:{value}' for name, value in merged.items()
        )
    return properties
