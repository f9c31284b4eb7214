# SPDX-License-Identifier: Apache-2.0
"""Core: workflows, cron triggers and executions, as Mistral knows them.

``definitions`` reads, checks and renames workflows, ``triggers`` plans cron
triggers, ``executions`` says what a signal starts and with what result.
``workflow_service`` is the protocol of requests to Mistral. Nothing here
imports Heat or Mistral.
"""
