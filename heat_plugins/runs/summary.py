# SPDX-License-Identifier: Apache-2.0
"""A run as it is shown to people and programs, whichever way they ask."""

from collections import abc
import datetime
from typing import Any

from heat_plugins.runs import runs

_TIME = '%Y-%m-%dT%H:%M:%SZ'

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

# Each unit with the next smaller one; two of them are precise enough.
_UNITS = (
    ('d', 'h', _DAY, _HOUR),
    ('h', 'min', _HOUR, _MINUTE),
    ('min', 's', _MINUTE, 1),
)


def _late(run: runs.Run) -> dict[str, Any] | None:
    late = run.late
    if late is None:
        return None
    return {
        'at': time(late.at),
        'status': late.status,
        'reason': late.reason,
        **{name: value for name, value in late.outputs.items() if value},
    }


# What may be shown of a run, in JSON's types.
_SHOWN: dict[str, abc.Callable[[runs.Run], Any]] = {
    'id': lambda run: run.id,
    'stack': lambda run: run.stack_name,
    'resource': lambda run: run.resource,
    'action': lambda run: run.action,
    'operation': lambda run: run.operation,
    'state': lambda run: run.state.value,
    'reason': lambda run: run.reason,
    'server': lambda run: run.server_id,
    'server_name': lambda run: run.server_name,
    'started_at': lambda run: time(run.started_at),
    'started_by': lambda run: run.started_by,
    'reported_at': lambda run: time(run.reported_at),
    'progress': lambda run: run.progress,
    'message': lambda run: run.message,
    'ended_at': lambda run: time(run.ended_at),
    'duration': lambda run: run.duration,
    'timeout': lambda run: run.timeout,
    'cancelled_by': lambda run: run.cancelled_by,
    'repeats': lambda run: run.repeats,
    'inputs': lambda run: sorted(run.inputs),
    'outputs': lambda run: dict(run.outputs),
    'cut': lambda run: dict(run.cut),
    'late_result': _late,
}

#: The names of all that is shown of a run.
KEYS = tuple(_SHOWN)


def of(run: runs.Run) -> dict[str, Any]:
    """Return all that may be shown of a run: `KEYS` with values.

    Times are texts in UTC. Of the inputs only the names are there: the
    values may be secrets.
    """
    return {name: value(run) for name, value in _SHOWN.items()}


def spell(seconds: float | None) -> str:
    """Return a duration as people read it, such as ``1 h 5 min``.

    :param seconds: how long it is; None, for unknown, has no text.
    """
    if seconds is None:
        return ''
    if seconds < _MINUTE:
        return f'{seconds:.1f} s' if seconds % 1 else f'{seconds:.0f} s'
    rounded = round(seconds)
    name, smaller, unit, part = next(
        each for each in _UNITS if rounded >= each[2]
    )
    rest = rounded % unit // part
    return f'{rounded // unit} {name}' + (f' {rest} {smaller}' if rest else '')


def time(seconds: int | None) -> str | None:
    """Return a time as ISO 8601 has it."""
    if seconds is None:
        return None
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.strftime(_TIME)


def in_zone(value: Any) -> Any:
    """Return a time, as `time` has it, in this machine's time zone.

    :param value: what is no such time is returned as it is.
    """
    try:
        when = datetime.datetime.strptime(value, _TIME)
    except (TypeError, ValueError):
        return value
    return when.replace(tzinfo=datetime.UTC).astimezone().isoformat()
