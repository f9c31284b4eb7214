# SPDX-License-Identifier: Apache-2.0
"""Plugins for OpenStack Heat: software deployments and workflows."""
