# SPDX-License-Identifier: Apache-2.0
"""Cron triggers: what they are, when they run, how they change."""
