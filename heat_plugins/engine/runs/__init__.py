# SPDX-License-Identifier: Apache-2.0
"""Runs and operations that an engine starts, follows and advances."""
