# SPDX-License-Identifier: Apache-2.0
"""The panel Schedules below Project, Orchestration."""

PANEL = 'schedules'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'orchestration'
ADD_PANEL = 'heat_plugins_dashboard.schedules.panel.Schedules'
