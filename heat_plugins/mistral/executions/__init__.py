# SPDX-License-Identifier: Apache-2.0
"""Executions: how signals start them, their outcomes, and how they end."""
