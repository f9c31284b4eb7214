# SPDX-License-Identifier: Apache-2.0
"""Which node of Ironic's an entry of a file means."""

from collections import abc
import dataclasses
from typing import Final
import uuid as uuids

from heat_plugins import errors
from heat_plugins.nodes import addresses
from heat_plugins.nodes import node

_NAMESPACE: Final = uuids.UUID('6f1d5ad5-3f0e-5a52-9a70-0cbb7f5e8a11')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Match:
    """What there is of an entry, and what it would be called.

    :ivar macs: those of the node that is there.
    :ivar uuid: of the node, or of the one to be made.
    """

    uuid: str
    found: node.Node | None = None
    macs: frozenset[str] = frozenset()


class Matcher:
    """Finds nodes by uuid, MAC address, or where their BMC is."""

    def __init__(
        self, nodes: abc.Iterable[node.Node], ports: abc.Iterable[node.Port]
    ) -> None:
        self._nodes = {one.uuid: one for one in nodes}
        self._owners: dict[str, str] = {}
        self._macs: dict[str, set[str]] = {}
        for port in ports:
            if port.node in self._nodes:
                self._owners[port.address] = port.node
                self._macs.setdefault(port.node, set()).add(port.address)
        self._places: dict[tuple[str, str, str], list[str]] = {}
        for one in self._nodes.values():
            place = addresses.place(one.map('driver_info'))
            if place:
                self._places.setdefault(place, []).append(one.uuid)

    def match(self, wanted: node.Wanted) -> Match:
        """Return what an entry means.

        :raises errors.Refused: it means several nodes at once.
        """
        means = self._means(wanted)
        found = {uuid for uuids in means.values() for uuid in uuids}
        if len(found) > 1:
            said = ', '.join(
                f'{what} that of {self._nodes[uuid].label}'
                for what, uuids in means.items()
                for uuid in sorted(uuids)
            )
            raise errors.Refused(
                f'It matches several nodes: {said}. Remove what belongs to '
                'another node'
            )
        if found:
            return self._match(found.pop())
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
            found=self._nodes[uuid],
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
