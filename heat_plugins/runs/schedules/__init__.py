# SPDX-License-Identifier: Apache-2.0
"""Core: when a schedule is due, and what it does then."""
