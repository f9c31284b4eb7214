# SPDX-License-Identifier: Apache-2.0
"""The way out of nodes: Ironic.

Each method may raise `errors.Denied`, `errors.Unavailable`,
`errors.NodeLocked` (Ironic has locked the node for now) or another
`errors.Error`. The real one is `heat_plugins.clients.ironic`, the strict fake
in ``tests/unit/nodes/fake_ironic.py``.
"""

from collections import abc
from typing import Any, Protocol

from heat_plugins.nodes import node

Patch = abc.Sequence[abc.Mapping[str, Any]]


class Baremetal(Protocol):
    """The nodes that a project may see."""

    def nodes(self) -> list[node.Node]:
        """Return all nodes, with all that Ironic says of them."""

    def states(self) -> list[node.Node]:
        """Return all nodes, with what their states are and no more."""

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

        :raises errors.Refused: there is no way to it from the present one.
        """

    def inventory(self, uuid: str) -> abc.Mapping[str, Any]:
        """Return what the last inspection has found.

        :raises errors.NotFound: there was none.
        """
