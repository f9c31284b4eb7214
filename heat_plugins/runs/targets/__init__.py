# SPDX-License-Identifier: Apache-2.0
"""Core: what a run can be started on, and what it runs there."""
