# SPDX-License-Identifier: Apache-2.0
"""Core: workflows, cron triggers and executions, as Mistral knows them.

``definitions`` reads and renames workflows, ``workflow_requests`` says what a
signal starts, ``triggers`` reads cron triggers, ``outcome`` says how an
execution has ended. Nothing here imports Heat or Mistral.
"""
