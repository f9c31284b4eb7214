# SPDX-License-Identifier: Apache-2.0
"""How runs look: one helper feeds every command that shows some."""

import json

from cliff import columns

from heat_plugins import foreign
from heat_plugins.osc import common
from heat_plugins.runs import summary

HEADERS = (
    'ID',
    'Resource',
    'Action',
    'State',
    'Started',
    'Duration',
    'Reason',
)


class Outputs(columns.FormattableColumn):
    """Values by name; each on lines of its own for people."""

    def human_readable(self):
        return '\n'.join(
            f'{foreign.line(name)}: {text(value)}'
            for name, value in (self._value or {}).items()
            if value not in (None, '')
        )

    def machine_readable(self):
        return None if self._value is None else dict(self._value)


class Value(columns.FormattableColumn):
    """Any value; a text as it is, and others in JSON, for people."""

    def human_readable(self):
        return '' if self._value is None else text(self._value)

    def machine_readable(self):
        return self._value


class Names(columns.FormattableColumn):
    """A list of names."""

    def human_readable(self):
        return ', '.join(map(foreign.line, self._value))

    def machine_readable(self):
        return list(self._value)


class Lines(Names):
    """A list of sentences, each on a line of its own for people."""

    def human_readable(self):
        return '\n'.join(text(one) for one in self._value)


def text(value):
    """Return a value as people read it, and harmless for a terminal."""
    shown = value if isinstance(value, str) else json.dumps(value)
    return foreign.block(shown.rstrip())


def many(found):
    """Return columns and rows of runs."""
    return HEADERS, [_row(run) for run in found]


def one(run):
    """Return columns and values of one run, with all that may be shown."""
    shown = summary.of(run)
    shown['inputs'] = Names(shown['inputs'])
    for name in ('outputs', 'cut', 'late_result'):
        shown[name] = Outputs(shown[name])
    return tuple(shown), common.One(shown.values())


def _row(run):
    return (
        run.id,
        run.resource,
        run.action,
        run.state.value,
        summary.time(run.started_at),
        summary.duration(run),
        run.reason,
    )
