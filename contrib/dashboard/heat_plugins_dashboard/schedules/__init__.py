# SPDX-License-Identifier: Apache-2.0
"""The panel Schedules: the list, and one schedule with its week."""
