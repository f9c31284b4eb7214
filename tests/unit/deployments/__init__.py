# SPDX-License-Identifier: Apache-2.0
"""Tests of how actions are delivered to servers."""
