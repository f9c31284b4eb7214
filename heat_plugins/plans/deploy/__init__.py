# SPDX-License-Identifier: Apache-2.0
"""Deploying a plan: its stack, the difference to it, the steps after it."""
