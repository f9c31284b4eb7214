# SPDX-License-Identifier: Apache-2.0
"""Core: deliver an action to servers, wait for their signals, clean up.

``deliveries`` has the values: what a server is given, and what Heat has stored
of it. ``outside`` has the ways out, as protocols over sequences: a single
deployment is N = 1 of them. The adapters of a heat-engine are in
`heat_plugins.engine`, where ``deployment_parts`` puts all together.

``lifecycle`` decides what a server is given, ``choosing`` by which transport
it answers, and ``derived`` in which form it gets it. ``delivering`` delivers
that, ``waiters`` waits, ``receptions`` takes the result; ``answers`` does so
where it comes through Heat's APIs, and ``signallers`` says who may send it.
``histories`` knows what was made, and withdraws it; ``removals`` lets a
deployment go, and ``groups`` takes an action through the members of a group.
``failures`` says why one fails. Nothing here knows Heat.
"""
