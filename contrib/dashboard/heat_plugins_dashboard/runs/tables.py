# SPDX-License-Identifier: Apache-2.0
"""The tables of runs and of the targets of a run."""

from django import http
from django import urls
from django.utils import html
from django.utils.translation import gettext_lazy as _
from horizon import tables

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.clients import runs
from heat_plugins.runs import run_records
from heat_plugins.runs import summary
from heat_plugins_dashboard import cloud
from heat_plugins_dashboard import tables as shared

_Phase = run_records.Phase
_State = run_records.State

# Of a row of which Heat cannot say more now; it is polled again.
_UNKNOWN = 'unknown'

#: Of runs and of targets: True is good, False is bad, any other may change.
STATES = (
    (_Phase.COMPLETE.value, True),
    (_Phase.FAILED.value, False),
    (_Phase.TIMED_OUT.value, False),
    (_Phase.CANCELLED.value, True),
    (_State.SKIPPED.value, True),
    ('not-started', True),
    ('unreadable', False),
)


def detail_url(run_id):
    return urls.reverse('horizon:project:runs:detail', args=[run_id])


def target_url(run_id, number):
    place = 'horizon:project:runs:target'
    return urls.reverse(place, args=[run_id, number])


class RunRequest(shared.Request):
    """A request of a run that is in one of some states."""

    policy_rules = cloud.CHANGE_RUNS
    states = ()

    def allowed(self, request, run=None):
        return run is None or run.state in self.states


class ApproveRun(RunRequest):
    name, icon = 'approve', 'check'
    present, past = _('Approve Run'), _('Approved')
    help_text = _('The canaries have succeeded; all other targets follow.')
    states = (_Phase.APPROVAL.value,)

    def ask(self, request, obj_id):
        cloud.runs(request).resume(obj_id)


class PauseRun(RunRequest):
    name, icon = 'pause', 'pause'
    present, past = _('Pause Run'), _('Paused')
    help_text = _('What is in progress continues; nothing else starts.')
    states = (_Phase.RUNNING.value,)

    def ask(self, request, obj_id):
        cloud.runs(request).pause(obj_id)


class ResumeRun(RunRequest):
    name, icon = 'resume', 'play'
    present, past = _('Resume Run'), _('Resumed')
    states = (_Phase.PAUSED.value,)

    def ask(self, request, obj_id):
        cloud.runs(request).resume(obj_id)


class CancelRun(tables.LinkAction):
    """Opens a form, as Horizon's own question is lost when a row changes."""

    name, icon, action_type = 'cancel', 'stop', 'danger'
    verbose_name, classes = _('Cancel Run'), ('ajax-modal',)
    policy_rules = cloud.CHANGE_RUNS

    def allowed(self, request, run=None):
        return run is None or not run.ended

    def get_link_url(self, run):
        return urls.reverse('horizon:project:runs:cancel', args=[run.id])


class RetryRun(RunRequest):
    name, icon = 'retry', 'repeat'
    present, past = _('Retry Run'), _('Retried')
    help_text = _('It runs again where it has not succeeded.')
    states = (
        _Phase.FAILED.value,
        _Phase.TIMED_OUT.value,
        _Phase.CANCELLED.value,
    )

    def ask(self, request, obj_id):
        cloud.runs(request).retry(obj_id)


class DeleteRun(RunRequest):
    name, icon, action_type = 'delete', 'trash', 'danger'
    present, past = _('Delete Run'), _('Deleted')
    help_text = _('The outputs of its targets are deleted, too.')
    states = tuple(each.value for each in _Phase if each.ended)

    def ask(self, request, obj_id):
        cloud.runs(request).delete(obj_id)

    def get_success_url(self, request=None):
        # Its own page is gone.
        if request.resolver_match.url_name == 'detail':
            return urls.reverse('horizon:project:runs:index')
        return super().get_success_url(request)


class RunRow(tables.Row):
    ajax = True

    def get_data(self, request, obj_id):
        try:
            return cloud.runs(request).show(obj_id)
        except errors.NotFound as exc:
            # Takes the row out of the table.
            raise http.Http404 from exc
        except errors.Error as exc:
            return runs.Run(
                id=obj_id,
                action='',
                state=_UNKNOWN,
                reason=str(exc),
                created_at='',
            )


def progress(run):
    """Return the bar of a run."""
    done = run.targets * run.percent // 100
    return html.format_html(
        '<div class="progress" style="margin: 0; min-width: 6em">'
        '<div class="progress-bar{}" role="progressbar" aria-valuemin="0" '
        'aria-valuemax="100" aria-valuenow="{}" aria-label="{}" '
        'style="width: {}%"></div></div><small>{}</small>',
        ' progress-bar-danger' if run.failed else '',
        run.percent,
        _('Progress'),
        run.percent,
        ', '.join(f'{count} {name}' for name, count in run.counts.items())
        or f'{done} of {run.targets}',
    )


class RunsTable(tables.DataTable):
    run = tables.Column(
        lambda run: foreign.line(f'{run.action} {run.id[:8]}'),
        verbose_name=_('Run'),
        link=lambda run: detail_url(run.id),
    )
    state = tables.Column(
        'state', verbose_name=_('State'), status=True, status_choices=STATES
    )
    progress = tables.Column(progress, verbose_name=_('Targets'))
    stacks = tables.Column(
        lambda run: foreign.line(', '.join(run.stacks)),
        verbose_name=_('Stacks'),
        classes=shared.WIDE,
    )
    who = tables.Column(
        lambda run: foreign.line(run.created_by),
        verbose_name=_('Started by'),
        classes=shared.WIDE,
    )
    created = tables.Column(
        lambda run: cloud.local(run.created_at),
        verbose_name=_('Started'),
        classes=shared.WIDE,
    )
    duration = tables.Column(
        lambda run: summary.spell(run.duration),
        verbose_name=_('Duration'),
        classes=shared.WIDE,
    )

    class Meta:
        name = 'runs'
        verbose_name = _('Runs')
        no_data_message = _(
            'No runs to display. A run executes an action of your stacks, '
            'such as a backup, on their servers.'
        )
        pagination_param = 'after'
        status_columns = ('state',)
        row_class = RunRow
        multi_select = False
        row_actions = (
            ApproveRun,
            PauseRun,
            ResumeRun,
            CancelRun,
            RetryRun,
            DeleteRun,
        )

    def get_object_display(self, run):
        return foreign.line(f'{run.action} {run.id[:8]}')

    def get_object_by_id(self, lookup):
        # It may be on another page meanwhile.
        return cloud.runs(self.request).show(lookup)

    def get_marker(self):
        return self.data[-1].id if self.data else ''

    def get_pagination_string(self):
        # Of the filtered list.
        query = self.request.GET.copy()
        query[self._meta.pagination_param] = self.get_marker()
        return query.urlencode()


def _reason_of_run(run):
    likely = cloud.local(run.estimated_end)
    parts = [run.reason, likely and f'likely to end at {likely}']
    return foreign.line('; '.join(filter(None, parts)))


class RunTable(RunsTable):
    """The same with reasons, for the pages of a run and of a schedule."""

    reason = tables.Column(_reason_of_run, verbose_name=_('Reason'))

    class Meta(RunsTable.Meta):
        footer = False


class CancelTarget(CancelRun):
    name, verbose_name = 'cancel_target', _('Cancel Target')

    def allowed(self, request, target=None):
        return target is None or target.state in (
            each.value for each in _State if not each.ended
        )

    def get_link_url(self, target):
        place = 'horizon:project:runs:cancel_target'
        return urls.reverse(place, args=[self.table.run_id, target.number])


class TargetRow(tables.Row):
    ajax = True

    def get_data(self, request, obj_id):
        try:
            return cloud.runs(request).target(self.table.run_id, int(obj_id))
        except errors.NotFound as exc:
            raise http.Http404 from exc
        except errors.Error as exc:
            return runs.Target(
                number=int(obj_id),
                stack='',
                resource=f'#{obj_id}',
                server='',
                state=_UNKNOWN,
                reason=str(exc),
            )


def _reason(target):
    parts = [target.reason, target.message or '']
    if target.progress is not None:
        parts.insert(0, f'{target.progress:.0f} %')
    return foreign.line(' '.join(filter(None, parts)))


class TargetsTable(tables.DataTable):
    server = tables.Column(
        lambda target: foreign.line(
            target.server_name or target.server or target.resource
        ),
        verbose_name=_('Server'),
    )
    stack = tables.Column(
        lambda target: foreign.line(target.stack),
        verbose_name=_('Stack'),
        classes=shared.WIDE,
    )
    resource = tables.Column(
        lambda target: foreign.line(target.resource),
        verbose_name=_('Resource'),
        classes=shared.WIDE,
    )
    state = tables.Column(
        'state', verbose_name=_('State'), status=True, status_choices=STATES
    )
    started = tables.Column(
        lambda target: cloud.local(target.started_at),
        verbose_name=_('Started'),
        classes=shared.WIDE,
    )
    duration = tables.Column(
        lambda target: summary.spell(target.duration),
        verbose_name=_('Duration'),
        classes=shared.WIDE,
    )
    reason = tables.Column(_reason, verbose_name=_('Reason'))

    class Meta:
        name = 'targets'
        verbose_name = _('Targets')
        hidden_title = False
        pagination_param = 'first'
        status_columns = ('state',)
        row_class = TargetRow
        multi_select = False
        row_actions = (CancelTarget,)

    def __init__(self, request, data=None, run=None, **kwargs):
        self.run_id = str(run)
        super().__init__(request, data=data, **kwargs)
        self.columns['server'].link = lambda target: target_url(
            self.run_id, target.number
        )

    def get_object_id(self, target):
        return str(target.number)

    def get_object_display(self, target):
        return foreign.line(target.fault.name)

    def get_object_by_id(self, lookup):
        return cloud.runs(self.request).target(self.run_id, int(lookup))

    def get_pagination_string(self):
        query = self.request.GET.copy()
        query[self._meta.pagination_param] = self.data[-1].number + 1
        return query.urlencode()
