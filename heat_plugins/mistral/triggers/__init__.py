# SPDX-License-Identifier: Apache-2.0
"""Cron triggers: their values, their schedule, and how they change."""
