# SPDX-License-Identifier: Apache-2.0
"""Clients: the core's access to services, for heat-engine and commands alike.

``swift`` needs no Heat. ``heat_swift`` and ``heat_mistral`` are Heat's client
plugins; they read the operator's ``[clients_swift]`` and
``[clients_mistral]``.
"""
