# SPDX-License-Identifier: Apache-2.0
"""Bare metal nodes: registered from a file, inspected, made available.

Ironic alone keeps nodes, so an interrupted operation can be repeated.
`node_operations.NodeOperations` is the entry point; it raises errors of
`heat_plugins.errors`.
"""
