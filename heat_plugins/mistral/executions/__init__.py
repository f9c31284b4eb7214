# SPDX-License-Identifier: Apache-2.0
"""Executions: what a signal starts, what came of it, how they end."""
