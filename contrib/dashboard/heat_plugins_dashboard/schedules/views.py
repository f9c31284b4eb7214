# SPDX-License-Identifier: Apache-2.0
"""The pages of the panel Schedules."""

import datetime
import time

from django import shortcuts
from django import urls
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
from heat_plugins_dashboard.runs import tables as run_tables
from heat_plugins_dashboard.schedules import tables as schedule_tables

_INDEX = urls.reverse_lazy('horizon:project:schedules:index')

# Times that a page lists.
_NEXT = 5


class IndexView(tables.DataTableView):
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


class DetailView(tables.MultiTableView):
    """A schedule: its next times, its runs, and the week around today."""

    table_classes = (schedule_tables.ScheduleTable, run_tables.RunTable)
    template_name = 'heat_plugins_dashboard/schedule.html'

    def dispatch(self, request, *args, **kwargs):
        place = kwargs['stack'], kwargs['schedule']
        known, self.now = cloud.schedules(request), time.time()
        try:
            self.shown = known.show(*place)
            self.times = known.times(*place)
            begin, end = schedule_week.span(self.times, self.now)
            self.ran = [
                *cloud.runs(request).list(
                    schedule=self.times.key, since=begin, until=end
                )
            ]
        except errors.Error as exc:
            messages.error(request, foreign.line(exc))
            return shortcuts.redirect(_INDEX)
        return super().dispatch(request, *args, **kwargs)

    def get_schedules_data(self):
        return [self.shown]

    def get_runs_data(self):
        return self.ran

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        week = schedule_week.week(
            kwargs['stack'],
            kwargs['schedule'],
            self.times,
            self.ran,
            self.now,
        )
        context |= {
            'page_title': foreign.line(
                f'{kwargs["stack"]} {kwargs["schedule"]}'
            ),
            'schedule': self.shown,
            'week': cloud.picture(week),
            'notes': week.notes,
            'times': [
                (
                    _spelt(tick.time, self.times.zone),
                    _spelt(tick.time, timezone.get_current_timezone()),
                )
                for tick in self.times.next(_NEXT, self.now)
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


class PauseView(forms.ModalFormView):
    """The form to pause a schedule."""

    form_class = PauseForm
    template_name = 'heat_plugins_dashboard/pause.html'
    ajax_template_name = 'heat_plugins_dashboard/_pause.html'
    page_title = modal_header = _('Pause Schedule')
    submit_label = _('Pause')
    success_url = _INDEX

    def dispatch(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_SCHEDULES)
        self.submit_url = request.path
        self.cancel_url = _INDEX
        return super().dispatch(request, *args, **kwargs)

    def get_initial(self):
        return {'place': [self.kwargs['stack'], self.kwargs['schedule']]}
