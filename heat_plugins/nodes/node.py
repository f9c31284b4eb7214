# SPDX-License-Identifier: Apache-2.0
"""Nodes: entries of a file, and nodes in Ironic."""

from collections import abc
import dataclasses
import re
from typing import Any, Protocol

# For IPMI and SNMP, keys and communities are passwords by another name, such
# as ipmi_hex_kg_key and snmp_community.
_SECRET = re.compile(
    'password|secret|token|community|(auth|kg|priv|protocol)_key',
    re.IGNORECASE,
)


def is_secret(name: str) -> bool:
    """Return whether an entry of ``driver_info`` must not be shown."""
    return _SECRET.search(name) is not None


#: Where a BMC is: host, port, and the system behind it.
Place = tuple[str, str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """A node that a file asks for.

    :ivar label: its name in messages.
    :ivar uuid: '' where the file has none; so with name.
    :ivar properties: all but the capabilities.
    :ivar ports: each with its ``address``, in lower case with colons.
    :ivar more: other fields of a node, as Ironic's API names them.
    :ivar place: of its BMC; None where that is unknown.
    :ivar warnings: a sentence each.
    """

    label: str
    driver: str
    uuid: str = ''
    name: str = ''
    driver_info: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    properties: abc.Mapping[str, Any] = dataclasses.field(default_factory=dict)
    capabilities: abc.Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )
    ports: tuple[abc.Mapping[str, Any], ...] = ()
    more: abc.Mapping[str, Any] = dataclasses.field(default_factory=dict)
    place: Place | None = None
    warnings: tuple[str, ...] = ()

    @property
    def macs(self) -> tuple[str, ...]:
        return tuple(str(port['address']) for port in self.ports)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Flaw:
    """An entry of a file that is no node, and why."""

    label: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Node:
    """A node of Ironic's.

    :ivar fields: as Ironic's API has them; Ironic masks passwords.
    """

    uuid: str
    fields: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )

    def text(self, field: str) -> str:
        """Return a field; '' where Ironic has nothing."""
        return str(self.fields.get(field) or '')

    def map(self, field: str) -> abc.Mapping[str, Any]:
        value = self.fields.get(field)
        return value if isinstance(value, dict) else {}

    @property
    def name(self) -> str:
        return self.text('name')

    @property
    def label(self) -> str:
        return self.name or self.uuid

    @property
    def state(self) -> str:
        return self.text('provision_state')


Patch = abc.Sequence[abc.Mapping[str, Any]]


class Baremetal(Protocol):
    """The nodes that a project may see."""

    def nodes(self) -> list[Node]:
        """Return all nodes with all fields."""

    def states(self) -> list[Node]:
        """Return all nodes with the fields of their states only."""

    def ports(self) -> dict[str, str]:
        """Return the uuids of nodes by the addresses of network cards."""

    def create_node(self, fields: abc.Mapping[str, Any]) -> None:
        """Create a node.

        :raises errors.Conflict: its uuid or name is taken.
        """

    def update_node(
        self, uuid: str, patch: Patch, *, reset_interfaces: bool = False
    ) -> None:
        """Change a node by a JSON patch.

        :param reset_interfaces: whether interfaces that are not in the patch
            become those of the driver, as when that changes.
        """

    def delete_node(self, uuid: str) -> None:
        """Delete a node and its ports."""

    def create_port(self, uuid: str, fields: abc.Mapping[str, Any]) -> None:
        """Give a node a network card.

        :raises errors.Conflict: its address is taken.
        """

    def set_state(self, uuid: str, verb: str) -> None:
        """Ask for a provision state, by one of Ironic's verbs.

        :raises errors.Refused: it cannot follow the present state.
        """

    def inventory(self, uuid: str) -> abc.Mapping[str, Any]:
        """Return the inventory of the last inspection.

        :raises errors.NotFound: there was none.
        """
