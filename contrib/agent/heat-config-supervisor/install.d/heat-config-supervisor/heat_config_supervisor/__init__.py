# SPDX-License-Identifier: Apache-2.0
"""Stands between 55-heat-config of heat-agents and its hooks.

It reports when a config begins, bounds the time that one may take, and sends
a result until it has been accepted. The hooks and heat-agents' own programs
stay as they are. Needs Python 3.9 and, as heat-agents do, requests.
"""
