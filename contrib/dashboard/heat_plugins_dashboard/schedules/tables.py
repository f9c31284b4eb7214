# SPDX-License-Identifier: Apache-2.0
"""The table of schedules."""

from django import http
from django import urls
from django.utils.translation import gettext_lazy as _
from horizon import tables

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins_dashboard import cloud
from heat_plugins_dashboard import tables as shared

#: Of outcomes, as for runs; a schedule that has not run yet has none.
_OUTCOMES = (
    *((each.value, True) for each in run_records.Phase if each.ended),
    (schedule_deciding.MISSED, True),
    ('', True),
)


def place(schedule):
    """Return the arguments of a schedule's addresses; None of an error."""
    stack, path = schedule['stack'], schedule['schedule']
    return [stack, path] if path else None


def link(name, schedule):
    return urls.reverse(f'horizon:project:schedules:{name}', args=schedule)


class _Signal(shared.Request):
    """A signal to a schedule."""

    policy_rules = cloud.CHANGE_SCHEDULES
    do = ''

    def allowed(self, request, schedule=None):
        return schedule is None or bool(schedule['when'])

    def ask(self, request, obj_id):
        stack, _slash, path = obj_id.partition('/')
        signal = schedule_signals.ScheduleSignal(do=self.do)
        cloud.schedules(request).signal(stack, path, signal)


class RunNow(_Signal):
    name, icon, do = 'run', 'play', schedule_signals.RUN
    present, past = _('Run Now'), _('Started')
    help_text = _('It runs now, even if it is paused.')


class Resume(_Signal):
    name, icon, do = 'resume', 'repeat', schedule_signals.RESUME
    present, past = _('Resume Schedule'), _('Resumed')
    help_text = _('What is due from now on starts.')

    def allowed(self, request, schedule=None):
        return schedule is None or bool(schedule['paused'])


class Pause(tables.LinkAction):
    name, icon, classes = 'pause', 'pause', ('ajax-modal',)
    verbose_name = _('Pause Schedule')
    policy_rules = cloud.CHANGE_SCHEDULES

    def allowed(self, request, schedule=None):
        return bool(schedule and schedule['when'] and not schedule['paused'])

    def get_link_url(self, schedule):
        return link('pause', place(schedule))


class ScheduleRow(tables.Row):
    ajax = True

    def get_data(self, request, obj_id):
        try:
            return self.table.get_object_by_id(obj_id)
        except errors.NotFound as exc:
            raise http.Http404 from exc
        except errors.Error as exc:
            stack, _slash, path = obj_id.partition('/')
            row = dict.fromkeys(schedule_signals.KEYS)
            row |= {'stack': stack, 'schedule': path, 'reason': str(exc)}
            return {**row, 'last_outcome': 'unknown'}


def _state(schedule):
    if schedule['paused']:
        return foreign.line(f'paused: {schedule["paused"]}')
    return foreign.line(schedule['reason'] or 'active')


class SchedulesTable(tables.DataTable):
    schedule = tables.Column(
        lambda each: foreign.line(each['schedule'] or '-'),
        verbose_name=_('Schedule'),
        link=lambda each: link('detail', place(each)) if place(each) else None,
    )
    stack = tables.Column(
        lambda each: foreign.line(each['stack']),
        verbose_name=_('Stack'),
        classes=shared.WIDE,
    )
    state = tables.Column(_state, verbose_name=_('State'))
    when = tables.Column(
        lambda each: foreign.line(
            f'{each["when"] or ""} {each["timezone"] or ""}'
        ),
        verbose_name=_('When'),
        classes=shared.WIDE,
    )
    next = tables.Column(
        lambda each: cloud.local(each['next_at']), verbose_name=_('Next')
    )
    last = tables.Column(
        lambda each: cloud.local(each['last_at']),
        verbose_name=_('Last'),
        classes=shared.WIDE,
    )
    outcome = tables.Column(
        lambda each: foreign.line(each['last_outcome'] or ''),
        verbose_name=_('Outcome'),
        status=True,
        status_choices=_OUTCOMES,
    )
    missed = tables.Column(
        lambda each: each['missed'],
        verbose_name=_('Missed'),
        classes=shared.WIDE,
    )

    class Meta:
        name = 'schedules'
        verbose_name = _('Schedules')
        no_data_message = _(
            'No schedules to display. A resource OS::Heat::SoftwareSchedule '
            'of a stack is one.'
        )
        status_columns = ('outcome',)
        row_class = ScheduleRow
        multi_select = False
        row_actions = (RunNow, Pause, Resume)

    def get_object_id(self, schedule):
        return f'{schedule["stack"]}/{schedule["schedule"]}'

    def get_object_display(self, schedule):
        return foreign.line(schedule['schedule'] or schedule['stack'])

    def get_object_by_id(self, lookup):
        stack, _slash, path = lookup.partition('/')
        return cloud.schedules(self.request).show(stack, path)


class ScheduleTable(SchedulesTable):
    """The same for one schedule."""

    class Meta(SchedulesTable.Meta):
        footer = False
