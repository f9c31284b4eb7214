# SPDX-License-Identifier: Apache-2.0
"""The panel Runs below Project, Orchestration; and a stack's timeline."""

PANEL = 'runs'
PANEL_DASHBOARD = 'project'
PANEL_GROUP = 'orchestration'
ADD_PANEL = 'heat_plugins_dashboard.runs.panel.Runs'
ADD_INSTALLED_APPS = ['heat_plugins_dashboard']
EXTRA_TABS = {
    'heat_dashboard.content.stacks.tabs.StackDetailTabs': (
        'heat_plugins_dashboard.stack_tab.TimelineTab',
    ),
}
