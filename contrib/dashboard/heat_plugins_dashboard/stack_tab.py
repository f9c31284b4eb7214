# SPDX-License-Identifier: Apache-2.0
"""The tab Timeline of heat-dashboard's page of a stack."""

from django.utils.translation import gettext_lazy as _
from horizon import tabs

from heat_plugins.timeline import chart_reading
from heat_plugins_dashboard import cloud

# The most runs that are drawn.
_RUNS = 200


class TimelineTab(tabs.Tab):
    """A stack's life: its deployments, runs and workflow executions."""

    name = _('Timeline')
    slug = 'heat_plugins_timeline'
    template_name = 'heat_plugins_dashboard/timeline.html'
    preload = False

    def get_context_data(self, request):
        stack = self.tab_group.kwargs['stack']
        heat, runs = cloud.heat(request), cloud.runs(request)
        context = {'may_start': cloud.may(request, cloud.CHANGE_RUNS)}
        context['name'] = stack.stack_name
        with cloud.told(request):
            wanted = chart_reading.ChartFilter(runs=_RUNS)
            drawn = chart_reading.read(heat, runs.list, stack.id, wanted)
            context |= {'notes': drawn.notes, 'drawn': cloud.picture(drawn)}
        return context
