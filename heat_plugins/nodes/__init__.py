# SPDX-License-Identifier: Apache-2.0
"""Bare metal nodes: registered from a file, inspected, made available.

All that is known of a node is in Ironic, so what was interrupted can be done
again. `node_operations.NodeOperations` is the door; what goes wrong is told by
`heat_plugins.errors`.
"""
