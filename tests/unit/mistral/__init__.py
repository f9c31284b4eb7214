# SPDX-License-Identifier: Apache-2.0
"""Tests of heat_plugins.workflows."""
