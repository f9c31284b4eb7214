# SPDX-License-Identifier: Apache-2.0
"""Executions: what a signal starts, with what result, how they end."""
