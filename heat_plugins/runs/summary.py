# SPDX-License-Identifier: Apache-2.0
"""Times of runs as they are shown."""

import datetime
from typing import Any

_TIME = '%Y-%m-%dT%H:%M:%SZ'

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

# Each unit with the next smaller one; two of them are precise enough.
_UNITS = (
    ('d', 'h', _DAY, _HOUR),
    ('h', 'min', _HOUR, _MINUTE),
    ('min', 's', _MINUTE, 1),
)


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
