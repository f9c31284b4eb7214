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
from django.utils import functional
from django.utils import http as url_text
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
from heat_plugins_dashboard import tables as shared
from heat_plugins_dashboard.runs import forms
from heat_plugins_dashboard.runs import tables as run_tables

# The most targets that start without a check mark, and that a preview or a
# page shows.
_CONFIRMED, _SHOWN = 10, 100

# Stacks whose actions the form offers.
_ASKED = 20

_INDEX = urls.reverse_lazy('horizon:project:runs:index')


class _Page(shared.ErrorsOnIndex):
    index = _INDEX


class IndexView(_Page, tables.DataTableView):
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


class DetailView(_Page, tables.MultiTableView):
    """A run with its targets."""

    table_classes = (run_tables.RunTable, run_tables.TargetsTable)
    template_name = 'heat_plugins_dashboard/run.html'
    _more = False

    @functional.cached_property
    def run(self):
        # An update of a row does without it.
        return cloud.runs(self.request).show(str(self.kwargs['run']))

    def get_runs_data(self):
        return [self.run]

    def get_targets_data(self):
        first = self.request.GET.get('first', '0')
        found = cloud.runs(self.request).targets(
            str(self.kwargs['run']),
            state=self.request.GET.getlist('state'),
            first=int(first) if re.fullmatch('[0-9]{1,9}', first) else 0,
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
            'limits': _limits(run.limits),
            'states': [
                each
                for each in overview.COUNTED
                if each in run.counts or not run.ended
            ],
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
        f'{name.replace("_", " ")}: {"yes" if value is True else value}'
        for name, value in limits.items()
        if value not in (None, False, 0, 'skip')
    )


class TargetView(_Page, views.HorizonTemplateView):
    """A target of a run, with its outputs."""

    template_name = 'heat_plugins_dashboard/target.html'

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
        # Any error is one of the page.
        cloud.runs(request).cancel(run_id, number)
        named = self.initial['named']
        messages.success(request, foreign.line(f'Cancelled: {named}'))
        return True


class CancelView(_Page, horizon_forms.ModalFormView):
    """Asks whether to cancel."""

    form_class = CancelForm
    template_name = 'heat_plugins_dashboard/cancel.html'
    ajax_template_name = 'heat_plugins_dashboard/_cancel.html'
    cancel_label = _('Back')

    def dispatch(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_RUNS)
        self.submit_url = request.path
        self.success_url = run_tables.detail_url(kwargs['run'])
        return super().dispatch(request, *args, **kwargs)

    def get_initial(self):
        run_id, number = str(self.kwargs['run']), self.kwargs.get('number')
        client = cloud.runs(self.request)
        run, named = client.show(run_id), _('Cancel Run')
        called = f'{run.action} {run_id[:8]}'
        if number is not None:
            named = _('Cancel Target')
            called = f'{client.target(run_id, number).fault.name}, {called}'
        self.page_title = self.modal_header = self.submit_label = named
        return {'place': (run_id, number), 'named': called}

    def get_context_data(self, **kwargs):
        context = super().get_context_data(**kwargs)
        context['named'] = foreign.line(context['form'].initial['named'])
        return context


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
    # Its last reference closes it, and the file is gone.
    file = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        client, store = cloud.runs(request), cloud.store(request)
        with zipfile.ZipFile(file, 'w', zipfile.ZIP_DEFLATED) as archive:
            for target in client.targets(str(run), outputs=True):
                for name, value in _whole(store, str(run), target).items():
                    place = (f'{target.number}', target.stack, target.resource)
                    path = '/'.join(map(_file_name, (*place, name)))
                    if value not in (None, ''):
                        archive.writestr(path, _text(value))
    except errors.Error as exc:
        messages.error(request, foreign.line(exc))
        return shortcuts.redirect(run_tables.detail_url(run))
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


class ChooseView(_Page, views.HorizonTemplateView):
    """The first page of a start: the stacks."""

    template_name = 'heat_plugins_dashboard/choose.html'
    page_title = _('Start Run: Stacks')

    def get(self, request, *args, **kwargs):
        cloud.require(request, cloud.CHANGE_RUNS)
        names = cloud.heat(request).stack_names()
        self.form = forms.ChooseForm(names, request.GET or None)
        if self.form.is_bound and self.form.is_valid():
            url = urls.reverse('horizon:project:runs:start')
            return shortcuts.redirect(f'{url}?{request.GET.urlencode()}')
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs):
        return {**super().get_context_data(**kwargs), 'form': self.form}


class StartView(_Page, views.HorizonFormView):
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
        chosen = {'stack': self.stacks, 'tag': self.tags}
        self.chosen = url_text.urlencode(chosen, doseq=True)
        self.client = cloud.runs(request)
        self.is_preview = 'preview' in request.GET
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            request.POST = _masked(request.POST)

    def _offers(self):
        tagged = [
            each
            for tag in self.tags
            for each in cloud.heat(self.request).stack_ids(tag)
        ]
        for stack in [*self.stacks, *tagged][:_ASKED]:
            yield from self.client.actions(stack)

    def get_form_kwargs(self):
        return {**super().get_form_kwargs(), 'offers': [*self._offers()]}

    def form_valid(self, form):
        given = form.cleaned_data
        order = {**form.order(), 'stacks': self.stacks, 'tags': self.tags}
        self.seen = forms.digest(order)
        try:
            if (
                self.is_preview
                or given['seen'] != self.seen
                or not given['expected']
            ):
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
        context['chosen'] = self.chosen
        chosen = self.selection
        if chosen:
            context['selection'] = chosen
            context['seen'] = self.seen
            sent = self.request.POST.get('seen')
            context['has_changed'] = sent and not self.is_preview
            context['targets'] = [e for e in chosen.rows if e['is_target']]
            context['left_out'] = [
                each for each in chosen.rows if not each['is_target']
            ]
            context['shown'] = _SHOWN
            context['needs_confirmation'] = chosen.targets > _CONFIRMED
        return context


def _masked(sent):
    """Return the fields of a form for Horizon's log of operations.

    That log does not know which of these hold secrets.
    """
    shown = sent.copy()
    for name in sent:
        if name.startswith(('input', 'script', 'seen')):
            shown[name] = '***'
    return shown
