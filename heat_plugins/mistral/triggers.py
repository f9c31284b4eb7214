# SPDX-License-Identifier: Apache-2.0
"""Cron triggers: what they run, and when. Every time here is UTC."""

from collections.abc import Mapping
import datetime
import itertools
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import cron_patterns

# How late a trigger may fire: the periodic process polls at intervals.
_OVERDUE: Final = datetime.timedelta(minutes=5)

# Characters of a trigger's name in the text of an event.
_SHOWN: Final = 40

_CALLED: Final = frozenset({'name', 'input', 'params'})


class InvalidCall(ValueError):
    """A template does not say which workflow to run; the message says why."""


def called(value: object) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the name, the input and the params of a trigger's workflow.

    :param value: the name, or a map with these three.
    :raises InvalidCall: it is neither.
    """
    if isinstance(value, str):
        return value, {}, {}
    if not isinstance(value, Mapping) or not isinstance(
        value.get('name'), str
    ):
        raise InvalidCall('the workflow must be a text, or a map with "name".')
    if unknown := sorted(str(key) for key in value.keys() - _CALLED):
        raise InvalidCall(
            f'the workflow has no key {bounds.listed(unknown)}; known keys: '
            'name, input, params.'
        )
    given, params = value.get('input') or {}, value.get('params') or {}
    if not isinstance(given, Mapping) or not isinstance(params, Mapping):
        raise InvalidCall('"input" and "params" of the workflow must be maps.')
    return value['name'], dict(given), dict(params)


def now() -> datetime.datetime:
    """Return the present time, without a zone, as Mistral writes times."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def time(text: str | None) -> datetime.datetime | None:
    """Read a time, as in "2030-12-31 23:59"; None if it is none."""
    try:
        return datetime.datetime.fromisoformat(text or '')
    except ValueError:
        return None


def upcoming(
    pattern: str | None, due: datetime.datetime | None, remaining: int | None
) -> list[str]:
    """Return the times of a trigger's next runs, at most three, for people.

    :param due: the time of its next run.
    :param remaining: how many runs remain; None for no limit.
    """
    if due is None:
        return []
    times = [due]
    if pattern:
        times += itertools.islice(cron_patterns.times(pattern, due), 2)
    return [f'{run:%Y-%m-%d %H:%M} UTC' for run in times[:remaining]]


def none_fires(row: Mapping[str, Any], at: datetime.datetime) -> str | None:
    """Return why no trigger fires, judged by the one that is due first.

    A periodic process of Mistral sets the time of a trigger forward even if
    its workflow cannot be started.

    :param row: of Mistral's API.
    :param at: the time by Mistral's clock.
    :returns: the reason and the remedy; None if the trigger is not overdue.
    """
    due = time(row.get('next_execution_time'))
    if due is None or due + _OVERDUE > at:
        return None
    name = bounds.shortened(str(row.get('name')), _SHOWN)
    # An event of Heat holds 255 characters, and this fits.
    return (
        f'No cron trigger fires: "{name}" was due at {due} UTC. The operator '
        'must run "mistral-server --server periodic" (in older releases, '
        'run_in_api = true in [cron_trigger] serves), and end maintenance mode'
    )
