# SPDX-License-Identifier: Apache-2.0
"""Core: workflows, cron triggers and executions, as Mistral knows them.

``definitions`` reads, checks and renames workflows, ``triggers`` plans cron
triggers, ``executions`` says what a signal starts and what came of it.
``service`` is the protocol of what Mistral is asked. Nothing here imports
Heat or Mistral.
"""
