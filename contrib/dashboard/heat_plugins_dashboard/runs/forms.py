# SPDX-License-Identifier: Apache-2.0
"""The forms of the panel Runs."""

import hashlib
import html
import json
import re
import uuid

from django import forms
from django.utils.translation import gettext_lazy as _

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.configs import actions
from heat_plugins.runs import run_records
from heat_plugins_dashboard import cloud

# An input whose name says that it is a secret, such as "db_password".
_SECRET = re.compile('passw|secret|token|credential|private', re.IGNORECASE)

# The choice of a script of the user's own, and the field of its text.
_SCRIPT = 'script'

_AGES = (
    ('', _('any time')),
    ('1', _('the last hour')),
    ('24', _('the last day')),
    ('168', _('the last week')),
    ('720', _('the last 30 days')),
)


class _Verbatim:
    """A widget that shows again exactly what was typed."""

    def __init__(self, attrs=None, **kwargs):
        unbound = {'ng-non-bindable': 'ng-non-bindable'}
        super().__init__({**unbound, **(attrs or {})}, **kwargs)

    def format_value(self, value):
        shown = super().format_value(value)
        return shown and cloud.verbatim(shown)


class _Text(_Verbatim, forms.TextInput):
    pass


class _Secret(_Verbatim, forms.PasswordInput):
    pass


class _Lines(_Verbatim, forms.Textarea):
    pass


class FilterForm(forms.Form):
    """Which runs to list."""

    state = forms.ChoiceField(
        label=_('State'),
        required=False,
        choices=[('', _('any')), ('bad', _('failed or timed out'))]
        + [(each.value, each.value) for each in run_records.Phase],
    )
    action = forms.CharField(label=_('Action'), required=False)
    stack = forms.CharField(label=_('Stack'), required=False)
    who = forms.CharField(label=_('Started by'), required=False)
    since = forms.ChoiceField(label=_('Since'), required=False, choices=_AGES)

    def query(self):
        """Return it as the client of runs takes it."""
        given = self.cleaned_data if self.is_valid() else {}
        query = {name: value for name, value in given.items() if value}
        if state := query.pop('state', None):
            bad = (run_records.Phase.FAILED, run_records.Phase.TIMED_OUT)
            query['state'] = (
                [each.value for each in bad] if state == 'bad' else [state]
            )
        if age := query.pop('since', None):
            query['since'] = cloud.since(age)
        return query


class ChooseForm(forms.Form):
    """On which stacks to run something."""

    stack = forms.MultipleChoiceField(
        label=_('Stacks'),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    tag = forms.CharField(
        label=_('Or all stacks with the tag'), required=False
    )

    def __init__(self, names, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields['stack'].choices = [
            (name, foreign.line(name)) for name in names
        ]

    def clean(self):
        given = super().clean()
        if not (given.get('stack') or given.get('tag')):
            raise forms.ValidationError(_('Choose a stack, or name a tag'))
        return given


class StartForm(forms.Form):
    """What to run there, and how.

    :param offers: what can run, as the client of runs has it.
    """

    run_id = forms.UUIDField(widget=forms.HiddenInput)
    seen = forms.CharField(required=False, widget=forms.HiddenInput)
    expected = forms.IntegerField(required=False, widget=forms.HiddenInput)
    action = forms.ChoiceField(
        label=_('What to run'),
        widget=forms.Select(
            attrs={'class': 'switchable', 'data-slug': 'action'}
        ),
    )
    resources = forms.CharField(
        label=_('Only these resources'),
        required=False,
        help_text=_('Paths or patterns, such as "db*"; commas between them'),
    )
    max_concurrent = forms.CharField(
        label=_('At a time, at most'),
        required=False,
        help_text=_('A number or a percentage; {} if empty').format(
            run_records.CONCURRENT
        ),
    )
    max_errors = forms.CharField(
        label=_('Failures to allow'),
        required=False,
        help_text=_(
            'A number or a percentage; after more, nothing else starts; '
            '0 if empty'
        ),
    )
    canary = forms.IntegerField(
        label=_('Canaries'),
        required=False,
        min_value=0,
        help_text=_('Targets to run on first; all of them must succeed'),
    )
    approve_after_canary = forms.BooleanField(
        label=_('Wait for approval after the canaries'), required=False
    )
    pause = forms.IntegerField(
        label=_('Seconds between two batches'), required=False, min_value=0
    )
    timeout = forms.IntegerField(
        label=_('Seconds for each target'),
        required=False,
        min_value=1,
        help_text=_('As its deployment says if empty'),
    )
    deadline = forms.IntegerField(
        label=_('Seconds for the whole run'),
        required=False,
        min_value=1,
        help_text=_('No limit if empty'),
    )

    def __init__(self, offers, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields['run_id'].initial = uuid.uuid4()
        # A name may hold what an attribute cannot, so choices bear numbers.
        self._actions = sorted(
            {
                name
                for offer in offers
                for name in offer.actions
                if name not in actions.LIFECYCLE
            }
        )
        self.fields['action'].choices = [
            *(
                (f'a{number}', foreign.line(name))
                for number, name in enumerate(self._actions)
            ),
            (_SCRIPT, _('a script of my own')),
        ]
        self._inputs = []
        self._add_inputs(offers)
        self._add_script()

    def _add_inputs(self, offers):
        """Add a field for each input, shown with the actions that take it."""
        declared, takers = {}, {}
        for offer in offers:
            for each in offer.inputs:
                declared.setdefault(each['name'], each)
                takers.setdefault(each['name'], set()).update(
                    self._actions.index(action)
                    for action in offer.actions
                    if action in self._actions
                )
        for name, each in declared.items():
            choices = {f'a{number}' for number in takers[name]}
            if choices:
                self._inputs.append((name, choices))
                self._switch(
                    f'input{len(self._inputs) - 1}',
                    _input_field(each),
                    choices,
                )

    def _add_script(self):
        script = forms.CharField(
            label=_('Script'),
            required=False,
            widget=_Lines({'rows': 6, 'spellcheck': 'false'}),
            initial='#!/bin/sh\n',
            strip=False,
        )
        hook = forms.CharField(
            label=_('Hook'),
            required=False,
            initial='script',
            help_text=_('What runs it on the servers'),
        )
        names = forms.CharField(
            label=_('Outputs'),
            required=False,
            help_text=_('Names of outputs; commas between them'),
        )
        for name, field in (
            (_SCRIPT, script),
            ('hook', hook),
            ('outputs', names),
        ):
            self._switch(name, field, {_SCRIPT})

    def _switch(self, name, field, choices):
        """Add a field that is shown with some choices of an action."""
        attributes = field.widget.attrs
        attributes |= {'class': 'switched', 'data-switch-on': 'action'}
        for choice in choices:
            # Horizon's script makes HTML of it.
            label = html.escape(str(field.label))
            attributes[f'data-action-{choice}'] = label
        self.fields[name] = field

    def what(self):
        """Return the fields that say what runs."""
        inputs = [f'input{number}' for number in range(len(self._inputs))]
        return [
            self[name]
            for name in ('action', *inputs, _SCRIPT, 'hook', 'outputs')
        ]

    def limits(self):
        """Return the fields of the limits, and of which targets."""
        names = ('resources', *run_records.LIMIT_NAMES)
        return [self[name] for name in names if name in self.fields]

    def has_limits(self):
        """Say whether any of those is filled in."""
        return any(field.value() for field in self.limits())

    def clean(self):
        given = super().clean()
        limits = {
            name: value
            for name in run_records.LIMIT_NAMES
            if (value := given.get(name))
        }
        for name, value in limits.items():
            try:
                run_records.RunLimits.asked({name: value})
            except errors.Refused as exc:
                self.add_error(name, foreign.line(exc))
        if given.get('approve_after_canary') and not given.get('canary'):
            self.add_error('canary', _('An approval needs canaries'))
        return {**given, 'limits': limits}

    def order(self):
        """Return it as the client of runs takes it, without the stacks."""
        given = self.cleaned_data
        order = {
            'limits': given['limits'],
            'resources': _split(given['resources']),
        }
        if given['action'] == _SCRIPT:
            config = {
                'config': given[_SCRIPT].replace('\r\n', '\n'),
                'group': given['hook'] or 'script',
                'inputs': [],
                'outputs': [
                    {'name': name, 'type': 'String'}
                    for name in _split(given['outputs'])
                ],
            }
            return {**order, 'config': config}
        inputs = {
            name: value
            for number, (name, choices) in enumerate(self._inputs)
            if given['action'] in choices
            and (value := given[f'input{number}'])
        }
        action = self._actions[int(given['action'][1:])]
        return {**order, 'action': action, 'inputs': inputs}


def digest(order):
    """Return what tells an order apart from any other one."""
    text = json.dumps(order, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _input_field(declared):
    """Return the field of an input; empty, the stack's own value holds."""
    kind = declared.get('type') or 'String'
    name, default = declared['name'], declared.get('default')
    is_secret = bool(_SECRET.search(name))
    widget = _Text()
    if kind == 'Boolean':
        choices = [('', _("the stack's own")), ('true', 'true')]
        widget = forms.Select(choices=[*choices, ('false', 'false')])
    elif is_secret:
        # Rendered again, so that a preview does not ask for it twice.
        widget = _Secret(render_value=True)
    elif kind in ('Json', 'CommaDelimitedList'):
        widget = _Lines({'rows': 3})
    widget.attrs['autocomplete'] = 'off'
    parts = [kind, declared.get('description') or '']
    if default not in (None, '') and not is_secret:
        parts.append(_('default: {}').format(default))
        widget.attrs['placeholder'] = foreign.line(default)
    return forms.CharField(
        label=foreign.line(name),
        required=False,
        widget=widget,
        strip=False,
        help_text=foreign.line('; '.join(filter(None, map(str, parts)))),
    )


def _split(text):
    return [each for each in map(str.strip, text.split(',')) if each]
