# SPDX-License-Identifier: Apache-2.0
"""Tests of what can only go wrong where several engines serve one cloud."""
