# SPDX-License-Identifier: Apache-2.0
"""Pages in Horizon for the runs and schedules of heat-plugins."""
