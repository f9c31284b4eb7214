# SPDX-License-Identifier: Apache-2.0
"""What runs inside the virtual environment: a module for each service.

``python -m minicloud_lib.services.heat CONF [CONF ...]`` runs in the
foreground until SIGTERM; its port is open once it can be used.
"""
