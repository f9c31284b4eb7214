# SPDX-License-Identifier: Apache-2.0
"""How runs look: one helper feeds every command that shows some."""

import datetime
import json

from cliff import columns

from heat_plugins.osc import common

HEADERS = (
    'ID',
    'Resource',
    'Action',
    'State',
    'Started',
    'Duration',
    'Reason',
)


class Time(columns.FormattableColumn):
    """Seconds since the epoch."""

    def human_readable(self):
        return _time(self._value) or ''

    def machine_readable(self):
        return _time(self._value)


class Outputs(columns.FormattableColumn):
    """Values by name; each on lines of its own for people."""

    def human_readable(self):
        return '\n'.join(
            f'{name}: {text(value)}'
            for name, value in (self._value or {}).items()
            if value not in (None, '')
        )

    def machine_readable(self):
        return None if self._value is None else dict(self._value)


class Names(columns.FormattableColumn):
    """A list of names."""

    def human_readable(self):
        return ', '.join(self._value)

    def machine_readable(self):
        return list(self._value)


def text(value):
    """Return a value as people read it, and harmless for a terminal."""
    shown = value if isinstance(value, str) else json.dumps(value)
    return ''.join(
        c if c.isprintable() or c in '\n\t' else '?' for c in shown.rstrip()
    )


def many(found):
    """Return columns and rows of runs."""
    return HEADERS, [_row(run) for run in found]


def one(run):
    """Return columns and values of one run, with all that is known of it.

    Of the inputs only the names are shown: the values may be secrets.
    """
    late = None
    if run.late is not None:
        late = {
            'at': _time(run.late.at),
            'status': run.late.status,
            'reason': run.late.reason,
            **{k: v for k, v in run.late.outputs.items() if v},
        }
    shown = {
        'id': run.id,
        'stack': run.stack_name,
        'resource': run.resource,
        'action': run.action,
        'state': run.state.value,
        'reason': run.reason,
        'server': run.server_id,
        'started_at': Time(run.started_at),
        'started_by': run.started_by,
        'reported_at': Time(run.reported_at),
        'progress': run.progress,
        'message': run.message,
        'ended_at': Time(run.ended_at),
        'duration': duration(run),
        'timeout': run.timeout,
        'cancelled_by': run.cancelled_by,
        'repeats': run.repeats,
        'inputs': Names(sorted(run.inputs)),
        'outputs': Outputs(run.outputs),
        'cut': Outputs(run.cut),
        'late_result': Outputs(late),
    }
    return tuple(shown), common.One(shown.values())


def duration(run):
    """Return how many seconds a run has taken; None if it goes on."""
    return None if run.ended_at is None else run.ended_at - run.started_at


def _row(run):
    return (
        run.id,
        run.resource,
        run.action,
        run.state.value,
        Time(run.started_at),
        duration(run),
        run.reason,
    )


def _time(seconds):
    if seconds is None:
        return None
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.strftime('%Y-%m-%dT%H:%M:%SZ')
