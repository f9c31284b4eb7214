# SPDX-License-Identifier: Apache-2.0
"""The pages of the panel Schedules."""

import datetime
import time

from django import urls
from django.utils import functional
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from horizon import forms
from horizon import messages
from horizon import tables

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.timeline import schedule_week
from heat_plugins_dashboard import cloud
from heat_plugins_dashboard import tables as shared
from heat_plugins_dashboard.runs import tables as run_tables
from heat_plugins_dashboard.schedules import tables as schedule_tables

_INDEX = urls.reverse_lazy('horizon:project:schedules:index')

# Times and runs that a page lists.
_NEXT, _RUNS = 5, 100


class _Page(shared.ErrorsOnIndex):
    index = _INDEX


class IndexView(_Page, tables.DataTableView):
    """The schedules of all stacks of the project."""

    table_class = schedule_tables.SchedulesTable
    template_name = 'heat_plugins_dashboard/schedules.html'
    page_title = _('Schedules')

    def get_data(self):
        try:
            # An engine without heat-plugins has none, and says nothing.
            cloud.runs(self.request).door()
            return cloud.schedules(self.request).list()
        except errors.Error as exc:
            messages.error(self.request, foreign.line(exc))
            return []


class DetailView(_Page, tables.MultiTableView):
    """A schedule: its next times, its runs, and the week around today."""

    table_classes = (schedule_tables.ScheduleTable, run_tables.RunTable)
    template_name = 'heat_plugins_dashboard/schedule.html'

    @functional.cached_property
    def shown(self):
        return cloud.schedules(self.request).show(*self.kwargs.values())

    @functional.cached_property
    def times(self):
        return cloud.schedules(self.request).times(*self.kwargs.values())

    @functional.cached_property
    def ran(self):
        (times, _), self.now = self.times, time.time()
        begin, end = schedule_week.span(times, self.now)
        found = cloud.runs(self.request).list(
            schedule=times.key, since=begin, until=end
        )
        return [*found]

    def get_schedules_data(self):
        return [self.shown]

    def get_runs_data(self):
        return self.ran[:_RUNS]

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        place = kwargs['stack'], kwargs['schedule']
        ran, now = self.ran, self.now
        times, since = self.times
        week = schedule_week.week(*place, times, ran, now, since)
        context |= {
            'page_title': foreign.line(' '.join(place)),
            'schedule': self.shown,
            'week': cloud.picture(week),
            'notes': week.notes,
            'times': [
                (
                    _spelt(tick.time, times.zone),
                    _spelt(tick.time, timezone.get_current_timezone()),
                )
                for tick in times.next(_NEXT, now)
            ],
        }
        return context


def _spelt(seconds, zone):
    """Return a time in some zone."""
    return f'{datetime.datetime.fromtimestamp(seconds, zone):%a %F %H:%M %Z}'


class PauseForm(forms.SelfHandlingForm):
    """Why to pause a schedule."""

    note = forms.CharField(
        label=_('Note for colleagues'), required=False, max_length=200
    )

    def handle(self, request, data):
        place = self.initial['place']
        signal = schedule_signals.ScheduleSignal(
            do=schedule_signals.PAUSE, note=data['note']
        )
        try:
            cloud.schedules(request).signal(*place, signal)
        except errors.Error as exc:
            messages.error(request, foreign.line(exc))
            return False
        messages.success(request, foreign.line(f'Paused: {" ".join(place)}'))
        return True


class PauseView(_Page, forms.ModalFormView):
    """The form to pause a schedule."""

    form_class = PauseForm
    template_name = 'heat_plugins_dashboard/pause.html'
    ajax_template_name = 'heat_plugins_dashboard/_pause.html'
    page_title = modal_header = _('Pause Schedule')
    submit_label = _('Pause')

    def dispatch(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_SCHEDULES)
        self.submit_url = request.path
        self.success_url = schedule_tables.link('detail', [*kwargs.values()])
        return super().dispatch(request, *args, **kwargs)

    def get_initial(self):
        return {'place': [self.kwargs['stack'], self.kwargs['schedule']]}
