# SPDX-License-Identifier: Apache-2.0
"""The pages of the panel Runs."""

import itertools
import json
import re
import tempfile
import zipfile

from django import http
from django import shortcuts
from django import urls
from django.utils.translation import gettext_lazy as _
from horizon import forms as horizon_forms
from horizon import messages
from horizon import tables
from horizon import views
from horizon.utils import functions

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import wording
from heat_plugins.runs import overview
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_store
from heat_plugins.runs import summary
from heat_plugins_dashboard import cloud
from heat_plugins_dashboard.runs import forms
from heat_plugins_dashboard.runs import tables as run_tables

# The most targets that start without a check mark, and that a preview or a
# page shows.
_CONFIRMED, _SHOWN = 10, 100

# Stacks whose actions the form offers.
_ASKED = 20

_INDEX = urls.reverse_lazy('horizon:project:runs:index')


def _unavailable(request, exc):
    """Go back to the list, and say why."""
    messages.error(request, foreign.line(exc))
    return shortcuts.redirect(_INDEX)


class IndexView(tables.DataTableView):
    """The list of runs, the newest first."""

    table_class = run_tables.RunsTable
    template_name = 'heat_plugins_dashboard/runs.html'
    page_title = _('Runs')
    _more = False

    def get_data(self):
        # A page of Heat has one more, which says whether there are others.
        size = min(functions.get_page_size(self.request), run_store.PAGE - 1)
        after = self.request.GET.get(self.table_class._meta.pagination_param)
        query = forms.FilterForm(self.request.GET).query()
        listed = []
        with cloud.told(self.request):
            found = cloud.runs(self.request).list(
                after=after, limit=size + 1, **query
            )
            listed = [*itertools.islice(found, size + 1)]
        self._more = len(listed) > size
        return listed[:size]

    def has_more_data(self, table):
        return self._more

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        context['form'] = forms.FilterForm(self.request.GET)
        may_start = cloud.may(self.request, cloud.CHANGE_RUNS)
        context['may_start'] = may_start
        return context


class DetailView(tables.MultiTableView):
    """A run with its targets."""

    table_classes = (run_tables.RunTable, run_tables.TargetsTable)
    template_name = 'heat_plugins_dashboard/run.html'
    _more = False

    def dispatch(self, request, *args, **kwargs):
        try:
            self.run = cloud.runs(request).show(str(kwargs['run']))
            return super().dispatch(request, *args, **kwargs)
        except errors.Error as exc:
            return _unavailable(request, exc)

    def get_runs_data(self):
        return [self.run]

    def get_targets_data(self):
        first = self.request.GET.get('first', '0')
        found = cloud.runs(self.request).targets(
            self.run.id,
            state=self.request.GET.getlist('state'),
            first=int(first) if first.isdecimal() else 0,
            limit=_SHOWN + 1,
        )
        listed = [*itertools.islice(found, _SHOWN + 1)]
        self._more = len(listed) > _SHOWN
        return listed[:_SHOWN]

    def has_more_data(self, table):
        return self._more and table.name == 'targets'

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        run, table = self.run, context['runs_table']
        failed = []
        if run.failed:
            failed = cloud.runs(self.request).targets(
                run.id, state=('failed', 'timed-out'), limit=_SHOWN
            )
            failed = itertools.islice(failed, _SHOWN)
        context |= {
            'run': run,
            'page_title': table.get_object_display(run),
            'created': cloud.local(run.created_at),
            'ended': cloud.local(run.ended_at),
            'likely': cloud.local(run.estimated_end),
            'limits': _limits(run.limits),
            'states': overview.COUNTED,
            'failures': [
                foreign.line(each)
                for each in wording.lines(
                    [each.fault for each in failed], 'see the table'
                )
            ],
            'script': cloud.verbatim(foreign.block(run.script)),
            'requests': [
                {**each, 'at': cloud.local(each['at'])}
                for each in run.requests
            ],
        }
        return context


def _limits(limits):
    return ', '.join(
        f'{name.replace("_", " ")}: {value}'
        for name, value in limits.items()
        if value not in (None, False, 0, 'skip')
    )


class TargetView(views.HorizonTemplateView):
    """A target of a run, with its outputs."""

    template_name = 'heat_plugins_dashboard/target.html'

    def get(self, request, *args, **kwargs):
        try:
            return super().get(request, *args, **kwargs)
        except errors.Error as exc:
            return _unavailable(request, exc)

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        run_id, client = str(kwargs['run']), cloud.runs(self.request)
        run = client.show(run_id)
        target = client.target(run_id, kwargs['number'], outputs=True)
        return {
            **context,
            'run': run,
            'target': target,
            'page_title': foreign.line(target.fault.name),
            'run_title': foreign.line(f'{run.action} {run.id[:8]}'),
            'started': cloud.local(target.started_at),
            'ended': cloud.local(target.ended_at),
            'duration': summary.spell(target.duration),
            'outputs': _outputs(target.outputs, target.cut),
            'late': _outputs(target.late_result, {}),
            'attempts': [
                {**each, 'started_at': cloud.local(each['started_at'])}
                for each in target.attempts
                if each['attempt'] != target.attempt
            ],
        }


class CancelForm(horizon_forms.SelfHandlingForm):
    """Cancels a run, or one target of it."""

    def handle(self, request, data):
        run_id, number = self.initial['place']
        try:
            cloud.runs(request).cancel(run_id, number)
        except errors.Error as exc:
            messages.error(request, foreign.line(exc))
        return True


class CancelView(horizon_forms.ModalFormView):
    """Asks whether to cancel."""

    form_class = CancelForm
    template_name = 'heat_plugins_dashboard/cancel.html'
    ajax_template_name = 'heat_plugins_dashboard/_cancel.html'
    page_title = modal_header = submit_label = _('Cancel Run')
    cancel_label = _('Back')

    def dispatch(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_RUNS)
        self.submit_url = request.path
        self.cancel_url = run_tables.detail_url(kwargs['run'])
        self.success_url = self.cancel_url
        return super().dispatch(request, *args, **kwargs)

    def get_initial(self):
        return {'place': (str(self.kwargs['run']), self.kwargs.get('number'))}


def _outputs(outputs, cut):
    """Return names, texts and notes of outputs."""
    return [
        {
            'name': name,
            'text': cloud.verbatim(foreign.block(_text(value).rstrip())),
            'length': cut.get(name),
        }
        for name, value in (outputs or {}).items()
        if value not in (None, '')
    ]


def _text(value):
    return value if isinstance(value, str) else json.dumps(value)


def outputs(request, run):
    """Return all outputs of a run, long ones whole where they are kept."""
    client, store = cloud.runs(request), cloud.store(request)
    # Its last reference closes it, and the file is gone.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as archive:
            for target in client.targets(str(run), outputs=True):
                for name, value in _whole(store, str(run), target).items():
                    place = (f'{target.number}', target.stack, target.resource)
                    path = '/'.join(map(_file_name, (*place, name)))
                    if value not in (None, ''):
                        archive.writestr(path, _text(value))
    except errors.Error as exc:
        return _unavailable(request, exc)
    file.seek(0)
    return http.FileResponse(
        file, as_attachment=True, filename=f'run-{str(run)[:8]}.zip'
    )


def _whole(store, run_id, target):
    """Return the outputs of a target; without a store, the ends of some."""
    objects = run_objects.RunObjects(
        store, target.stack_id, run_id, target.number, target.attempt
    )
    try:
        return objects.outputs(target.outputs or {}, target.cut)
    except errors.NoObjectStore:
        return target.outputs or {}


def _file_name(text):
    """Return foreign text as a name that stays in its folder."""
    return re.sub(r'[^\w.-]|^\.+', '_', text)[:200] or '_'


class ChooseView(views.HorizonTemplateView):
    """The first page of a start: the stacks."""

    template_name = 'heat_plugins_dashboard/choose.html'
    page_title = _('Start Run: Stacks')

    def get(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_RUNS)
        try:
            names = cloud.heat(request).stack_names()
        except errors.Error as exc:
            return _unavailable(request, exc)
        self.form = forms.ChooseForm(names, request.GET or None)
        if self.form.is_bound and self.form.is_valid():
            url = urls.reverse('horizon:project:runs:start')
            return shortcuts.redirect(f'{url}?{request.GET.urlencode()}')
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs):
        return {**super().get_context_data(**kwargs), 'form': self.form}


class StartView(views.HorizonFormView):
    """The second page of a start: the action, its inputs and limits.

    Its first answer is a preview. What was previewed starts if it is sent
    again as it is. The name of a button cannot tell the two apart: Horizon's
    script disables buttons before the browser sends a form.
    """

    template_name = 'heat_plugins_dashboard/start.html'
    form_class = forms.StartForm
    page_title = _('Start Run')
    selection = None

    def dispatch(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_RUNS)
        self.stacks = request.GET.getlist('stack')
        self.tags = [*filter(None, request.GET.getlist('tag'))]
        if not (self.stacks or self.tags):
            return shortcuts.redirect('horizon:project:runs:choose')
        self.client = cloud.runs(request)
        try:
            self.offers = [*self._offers()]
        except errors.Error as exc:
            return _unavailable(request, exc)
        return super().dispatch(request, *args, **kwargs)

    def _offers(self):
        tagged = [
            each
            for tag in self.tags
            for each in cloud.heat(self.request).stack_ids(tag)
        ]
        for stack in [*self.stacks, *tagged][:_ASKED]:
            yield from self.client.actions(stack)

    def get_form_kwargs(self):
        return {**super().get_form_kwargs(), 'offers': self.offers}

    def form_valid(self, form):
        given = form.cleaned_data
        order = {**form.order(), 'stacks': self.stacks, 'tags': self.tags}
        self.seen = forms.digest(order)
        try:
            if given['seen'] != self.seen or not given['expected']:
                self.selection = self.client.select(**order)
                context = self.get_context_data(form=form)
                return self.render_to_response(context)
            run = self.client.start(
                run_id=str(given['run_id']),
                expected=given['expected'],
                **order,
            )
        except errors.Error as exc:
            form.add_error(None, foreign.line(exc))
            return self.form_invalid(form)
        targets = wording.counted(run.targets, 'target')
        messages.success(
            self.request, foreign.line(f'{run.action} started on {targets}')
        )
        return shortcuts.redirect(run_tables.detail_url(run.id))

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        context['where'] = [
            *self.stacks,
            *(f'all with the tag {tag}' for tag in self.tags),
        ]
        chosen = self.selection
        if chosen:
            context['selection'] = chosen
            context['seen'] = self.seen
            context['has_changed'] = bool(self.request.POST.get('seen'))
            context['targets'] = [e for e in chosen.rows if e['is_target']]
            context['left_out'] = [
                each for each in chosen.rows if not each['is_target']
            ]
            context['shown'] = _SHOWN
            context['needs_confirmation'] = chosen.targets > _CONFIRMED
        return context
