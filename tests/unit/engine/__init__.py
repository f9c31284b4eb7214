# SPDX-License-Identifier: Apache-2.0
"""Tests of what ties the core to a running engine."""
