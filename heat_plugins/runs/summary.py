# SPDX-License-Identifier: Apache-2.0
"""A run as it is shown to people and programs, whichever way they ask."""

import datetime
from typing import Any

from heat_plugins.runs import run as runs

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

# Each unit with the next smaller one; two of them are precise enough.
_UNITS = (
    ('d', 'h', _DAY, _HOUR),
    ('h', 'min', _HOUR, _MINUTE),
    ('min', 's', _MINUTE, 1),
)


def of(run: runs.Run) -> dict[str, Any]:
    """Return all that may be shown of a run, in JSON's types.

    Times are texts in UTC. Of the inputs only the names are there: the
    values may be secrets.
    """
    late = run.late
    return {
        'id': run.id,
        'stack': run.stack_name,
        'resource': run.resource,
        'action': run.action,
        'state': run.state.value,
        'reason': run.reason,
        'server': run.server_id,
        'started_at': time(run.started_at),
        'started_by': run.started_by,
        'reported_at': time(run.reported_at),
        'progress': run.progress,
        'message': run.message,
        'ended_at': time(run.ended_at),
        'duration': duration(run),
        'timeout': run.timeout,
        'cancelled_by': run.cancelled_by,
        'repeats': run.repeats,
        'inputs': sorted(run.inputs),
        'outputs': dict(run.outputs),
        'cut': dict(run.cut),
        'late_result': late
        and {
            'at': time(late.at),
            'status': late.status,
            'reason': late.reason,
            **{name: value for name, value in late.outputs.items() if value},
        },
    }


def duration(run: runs.Run) -> int | None:
    """Return how many seconds a run has taken; None if it goes on."""
    return None if run.ended_at is None else run.ended_at - run.started_at


def spell(seconds: float | None) -> str:
    """Return a duration as people read it, such as ``1 h 5 min``.

    :param seconds: how long it is; None, for unknown, has no text.
    """
    if seconds is None:
        return ''
    if seconds < _MINUTE:
        return f'{seconds:.1f} s' if seconds % 1 else f'{seconds:.0f} s'
    whole = round(seconds)
    name, smaller, unit, part = next(one for one in _UNITS if whole >= one[2])
    rest = whole % unit // part
    return f'{whole // unit} {name}' + (f' {rest} {smaller}' if rest else '')


def time(seconds: int | None) -> str | None:
    """Return a time as ISO 8601 has it."""
    if seconds is None:
        return None
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.strftime('%Y-%m-%dT%H:%M:%SZ')
