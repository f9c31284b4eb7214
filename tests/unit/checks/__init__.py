# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks of heat-plugins-status that need no cloud."""
