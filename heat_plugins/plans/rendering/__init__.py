# SPDX-License-Identifier: Apache-2.0
"""Jinja templates of a plan, rendered in a process that has an end."""
