# SPDX-License-Identifier: Apache-2.0
"""Tests of what is handed to servers."""
