# SPDX-License-Identifier: Apache-2.0
"""Which node of Ironic's an entry of a file means, and how they differ."""

from collections import abc
import dataclasses
from typing import Any, Final
import uuid as uuids

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins.nodes import addresses
from heat_plugins.nodes import node

_MISSING: Final = object()

_NAMESPACE: Final = uuids.UUID('6f1d5ad5-3f0e-5a52-9a70-0cbb7f5e8a11')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match:
    """What there is of an entry, and what it would be called.

    :ivar macs: those of the node that is there.
    :ivar uuid: of the node, or of the one to be made.
    """

    uuid: str
    present: node.Node | None = None
    macs: frozenset[str] = frozenset()


class Matcher:
    """Finds nodes by uuid, MAC address, or where their BMC is."""

    def __init__(
        self, nodes: abc.Iterable[node.Node], ports: abc.Iterable[node.Port]
    ) -> None:
        self._nodes = {each.uuid: each for each in nodes}
        self._owners: dict[str, str] = {}
        self._macs: dict[str, set[str]] = {}
        for port in ports:
            if port.node in self._nodes:
                self._owners[port.address] = port.node
                self._macs.setdefault(port.node, set()).add(port.address)
        self._places: dict[tuple[str, str, str], list[str]] = {}
        for each in self._nodes.values():
            place = addresses.place(each.map('driver_info'))
            if place:
                self._places.setdefault(place, []).append(each.uuid)

    def match(self, wanted: node.Wanted) -> Match:
        """Return what an entry means.

        :raises errors.Refused: it means several nodes at once.
        """
        means = self._means(wanted)
        matches = {uuid for uuids in means.values() for uuid in uuids}
        if len(matches) > 1:
            listed = ', '.join(
                f'{what} that of {self._nodes[uuid].label}'
                for what, uuids in means.items()
                for uuid in sorted(uuids)
            )
            raise errors.Refused(
                f'It matches several nodes: {listed}. Remove what belongs to '
                'another node'
            )
        if matches:
            return self._match(matches.pop())
        return self._new(wanted)

    def _means(self, wanted: node.Wanted) -> dict[str, set[str]]:
        means: dict[str, set[str]] = {}
        if wanted.uuid in self._nodes:
            means['uuid is'] = {wanted.uuid}
        owners = {
            self._owners[mac] for mac in wanted.macs if mac in self._owners
        }
        if owners:
            means['a MAC address is'] = owners
        at_place = self._places.get(wanted.place, []) if wanted.place else []
        if len(at_place) == 1 or (at_place and not means):
            means['the BMC is'] = set(at_place)
        return means

    def _match(self, uuid: str) -> Match:
        return Match(
            uuid=uuid,
            present=self._nodes[uuid],
            macs=frozenset(self._macs.get(uuid, ())),
        )

    def _new(self, wanted: node.Wanted) -> Match:
        uuid = wanted.uuid or _derived(wanted)
        if uuid not in self._nodes:
            return Match(uuid=uuid)
        if not self._macs.get(uuid):
            # Its creation was interrupted before its ports were made.
            return self._match(uuid)
        # What it was derived from is on its way through the machines.
        return Match(uuid=str(uuids.uuid4()))


def _derived(wanted: node.Wanted) -> str:
    """Return a uuid that is the same each time, and for all who register.

    So what was interrupted is found again, and of two who register a machine
    at once one is told by Ironic.
    """
    mark = min(wanted.macs, default='') or '|'.join(wanted.place or ())
    return str(uuids.uuid5(_NAMESPACE, mark))


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeChange:
    """The changes of one node.

    :ivar create: the fields of a node to be made, or None.
    :ivar patch: of one that is there.
    :ivar ports: the network cards that it lacks.
    :ivar shown: what would differ, a line each; passwords are hidden.
    """

    uuid: str
    create: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    patch: tuple[abc.Mapping[str, Any], ...] = dataclasses.field(
        default=(), repr=False
    )
    ports: tuple[abc.Mapping[str, Any], ...] = ()
    shown: tuple[str, ...] = ()
    new_driver: bool = False


def changes(wanted: node.Wanted, match: Match) -> NodeChange:
    """Return the changes that a match needs.

    What the file does not name stays as it is: an inspection may have found
    it. Passwords are always written: Ironic does not tell the present ones.
    """
    ports = tuple(
        port for port in wanted.ports if port['address'] not in match.macs
    )
    shown = [f'port {port["address"]}' for port in ports]
    if match.present is None:
        return NodeChange(
            uuid=match.uuid,
            create={
                **_fields(wanted),
                'uuid': match.uuid,
                'driver_info': dict(wanted.driver_info),
                'properties': _properties(wanted, {}),
            },
            ports=ports,
            shown=tuple(shown),
        )
    patch: list[abc.Mapping[str, Any]] = []
    for name, value in _fields(wanted).items():
        now = match.present.fields.get(name, _MISSING)
        _set(patch, shown, f'/{name}', now, value)
    for section, values in (
        ('driver_info', wanted.driver_info),
        ('properties', _properties(wanted, match.present.map('properties'))),
    ):
        present = match.present.map(section)
        for name, value in values.items():
            now = present.get(name, _MISSING)
            _set(patch, shown, f'/{section}/{_escaped(name)}', now, value)
    return NodeChange(
        uuid=match.uuid,
        patch=tuple(patch),
        ports=ports,
        shown=tuple(shown),
        new_driver=wanted.driver != match.present.text('driver'),
    )


def _fields(wanted: node.Wanted) -> dict[str, Any]:
    fields = {'driver': wanted.driver, **wanted.more}
    if wanted.name:
        fields['name'] = wanted.name
    return fields


def _properties(
    wanted: node.Wanted, present: abc.Mapping[str, Any]
) -> dict[str, Any]:
    """Return the properties, with the capabilities in one line."""
    properties = dict(wanted.properties)
    if wanted.capabilities:
        now = str(present.get('capabilities') or '')
        merged = {
            name: value
            for name, _, value in (
                pair.partition(':') for pair in now.split(',')
            )
            if name
        }
        merged.update(wanted.capabilities)
        properties['capabilities'] = ','.join(
            f'{name}:{value}' for name, value in merged.items()
        )
    return properties


def _set(
    patch: list[abc.Mapping[str, Any]],
    shown: list[str],
    path: str,
    now: Any,
    value: Any,
) -> None:
    # Ironic itself has had numbers as text.
    same = now == value or (now is not _MISSING and str(now) == str(value))
    secret = path.startswith('/driver_info/') and node.is_secret(path)
    if same and not secret:
        return
    # It adds what is not there, and replaces what is.
    patch.append({'op': 'add', 'path': path, 'value': value})
    name = path.removeprefix('/')
    if not secret:
        before = '' if now is _MISSING else f'{now} -> '
        shown.append(f'{name}: {before}{value}')
    elif now is _MISSING:
        shown.append(f'{name}: {masking.MASK}')


def _escaped(name: str) -> str:
    """Escape a name for a JSON pointer, as RFC 6901 says."""
    return name.replace('~', '~0').replace('/', '~1')
