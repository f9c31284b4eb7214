# SPDX-License-Identifier: Apache-2.0
"""Runs that heat-engine starts, leads and shows."""
