# SPDX-License-Identifier: Apache-2.0
"""Core: deliver an action to servers, wait for their answers, withdraw it.

A single deployment is N = 1. ``deliveries`` has the values: what a server is
given, and what Heat has stored of it. ``fleets`` decides what servers must
run, ``derived`` in which form they get it.

``rollout`` delivers an action to its members in batches, ``waits`` takes their
answers, and ``lifecycle`` takes an action of a stack through its rollouts.
They reach servers, rows and signals through the protocol `fleets.Fleet` alone;
its implementations are in `heat_plugins.engine.server_fleets`, and a strict
one for tests in ``tests/unit/deployments``. ``deliveries`` says why an action
fails. Nothing here knows Heat.
"""
