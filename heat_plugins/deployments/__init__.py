# SPDX-License-Identifier: Apache-2.0
"""Core: deliver an action to servers, wait for their signals, clean up.

`deliveries` has the values: what a server is given, and what Heat has stored
of it. `outside` has the ways out, as protocols over sequences: a deployment
is N = 1 of them. The adapters of a heat-engine are in
`heat_plugins.engine`. Nothing here knows Heat.
"""
