# SPDX-License-Identifier: Apache-2.0
"""Actions on bare metal nodes: ``nodes.*``.

``nodes.register`` registers the nodes of a file. Transitions of nodes take
long: ``nodes.begin`` selects nodes, and ``nodes.step`` polls and sends them,
until ``next_look`` is 0. The workflows ``nodes.register``,
``nodes.introspect`` and ``nodes.move`` take the steps of ``nodes.work``.

An error is a map of ``code`` and ``message``.
"""

from typing import Any

from heat_plugins.clients import ironic
from heat_plugins.clients import swift
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import sessions
from heat_plugins.nodes import node_operations


def core(context: Any) -> node_operations.NodeOperations:
    """Return the operations on nodes, with the credentials of a context."""
    cloud = sessions.cloud(context.security)
    return node_operations.NodeOperations(
        ironic.BaremetalAPI(cloud), swift.connect(cloud)
    )


_action = making.ActionMaker(
    __name__,
    lambda context, name, given: getattr(core(context), name)(**given),
)

List = _action(node_operations.NodeOperations.list)
Register = _action(node_operations.NodeOperations.register)
Begin = _action(node_operations.NodeOperations.begin)
Step = _action(node_operations.NodeOperations.step)
Abort = _action(node_operations.NodeOperations.abort)
Summaries = _action(node_operations.NodeOperations.summaries)
Work = _action(node_operations.NodeOperations.work)
