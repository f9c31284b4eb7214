# SPDX-License-Identifier: Apache-2.0
"""Decide how to change a cron trigger.

Mistral cannot change a trigger, only delete and create it. :func:`plan` says
whether that is needed, and with which values, so that neither runs nor the
trigger get lost.
"""

from collections.abc import Mapping
import dataclasses
import datetime
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule

# A run that is later than this will probably not start soon.
_LATE: Final = datetime.timedelta(minutes=2)

# Seconds to the next poll for a run that is about to start.
_SOON: Final = 2


@dataclasses.dataclass(frozen=True)
class Keep:
    """The trigger needs no change."""


@dataclasses.dataclass(frozen=True)
class Done:
    """The trigger has had all its runs; create none."""


@dataclasses.dataclass(frozen=True)
class WaitForRun:
    """A run is about to start; poll again in `seconds`."""

    seconds: int


Plan = Keep | Done | WaitForRun | cron_triggers.TriggerOrder


def plan(
    wanted: cron_triggers.TriggerOrder,
    before: cron_triggers.TriggerOrder | None,
    live: cron_triggers.LiveTrigger | None,
    now: datetime.datetime,
    *,
    lost: cron_triggers.LiveTrigger | None = None,
    ran_out: bool = False,
    recreate: bool = False,
) -> Plan:
    """Decide what happens to a trigger.

    :param before: the template's order when the trigger was created.
    :param live: the trigger in Mistral, if it exists.
    :param lost: a former trigger that could not be restored.
    :param ran_out: whether it is missing because it has had its last run.
    :param recreate: replace it even if nothing has changed.
    :raises cron_triggers.TriggerRefused: the template asks for the impossible.
    :raises schedule.ScheduleError: likewise.
    """
    if live is not None and wanted == before and not recreate:
        return Keep()
    first = wanted.first()
    fresh = before is None or before.first_time != wanted.first_time
    count = _count(wanted, before, live or lost, ran_out)
    if count == 0:
        if not (fresh and first and first > now):
            return Done()
        # A new first time is a new beginning.
        count = wanted.count
    if not wanted.pattern and not fresh and first is not None:
        if (
            live is not None
            and first < now + schedule.NOTICE + cron_triggers.MARGIN
        ):
            if first < now - _LATE:
                raise cron_triggers.TriggerRefused(
                    f'the run that was due at {schedule.show(first)} has not '
                    'started; ask the operator whether a periodic process of '
                    'Mistral runs.'
                )
            return WaitForRun(_SOON)
        if live is None and first <= now:
            return Done()
    if first is not None:
        ahead = _first(wanted, first, live, now, fresh)
        if isinstance(ahead, WaitForRun):
            return ahead
        first = ahead
    if wanted.pattern:
        schedule.upcoming(wanted.pattern, now)
    if live is not None and _about_to_run(live, count, now):
        return WaitForRun(_SOON)
    return dataclasses.replace(
        wanted, first_time=cron_triggers.first_time_text(first), count=count
    )


def _count(
    wanted: cron_triggers.TriggerOrder,
    before: cron_triggers.TriggerOrder | None,
    known: cron_triggers.LiveTrigger | None,
    ran_out: bool,
) -> int | None:
    """Return how many runs remain; an unchanged count continues."""
    if wanted.count is None or before is None or before.count != wanted.count:
        return wanted.count
    if known is not None and known.remaining is not None:
        return known.remaining
    return 0 if ran_out else wanted.count


def _first(
    wanted: cron_triggers.TriggerOrder,
    first: datetime.datetime,
    live: cron_triggers.LiveTrigger | None,
    now: datetime.datetime,
    fresh: bool,
) -> datetime.datetime | WaitForRun | None:
    """Return the first time to request; None if the pattern is enough."""
    margin = cron_triggers.MARGIN if live is not None else datetime.timedelta()
    if first >= now + schedule.NOTICE + margin:
        return first
    if wanted.pattern:
        if first <= now:
            return None
        if schedule.upcoming(wanted.pattern, now, 1) == (first,):
            return None
        if live is not None and not fresh:
            return WaitForRun(_SOON)
    raise cron_triggers.TriggerRefused(
        f'the first time {schedule.show(first)} '
        + ('has passed' if first <= now else 'is less than a minute ahead')
        + f' (it is {schedule.show(now)}); Mistral needs at least a minute'
        + _what_else(wanted, now)
    )


def _what_else(
    wanted: cron_triggers.TriggerOrder, now: datetime.datetime
) -> str:
    if not wanted.pattern:
        return '.'
    coming = schedule.show(*schedule.upcoming(wanted.pattern, now))
    return f'. By the pattern alone the next runs would be {coming}.'


def _about_to_run(
    live: cron_triggers.LiveTrigger, count: int | None, now: datetime.datetime
) -> bool:
    """Say whether removing it now might lose or repeat a run."""
    due = live.next()
    if count is None or live.remaining is None or due is None:
        return False
    if live.pattern:
        # If a run is always about to start, waiting does not help.
        (after,) = schedule.upcoming(live.pattern, due, 1)
        if after - due < cron_triggers.MARGIN * 3:
            return False
    # What is long overdue waits for a Mistral that lags, not for us.
    return -cron_triggers.MARGIN < due - now <= schedule.EARLY


def check_input(
    workflow: str, declared: Any, given: Mapping[str, Any]
) -> None:
    """Check an input against the declaration of a workflow.

    :param declared: the list of its inputs, as in its definition: a name, or a
        map from the name to a default.
    :raises cron_triggers.TriggerRefused: Mistral would refuse it later.
    """
    if not isinstance(declared, list):
        return
    required = {
        declaration for declaration in declared if isinstance(declaration, str)
    }
    optional = {
        name
        for declaration in declared
        if isinstance(declaration, Mapping)
        for name in declaration
    }
    missing = sorted(required - given.keys())
    if missing:
        raise cron_triggers.TriggerRefused(
            f'the workflow "{workflow}" needs the input '
            f'{_quoted(missing)}, which is not given.'
        )
    unknown = sorted(given.keys() - required - optional)
    if unknown:
        raise cron_triggers.TriggerRefused(
            f'the workflow "{workflow}" has no input {_quoted(unknown)}; '
            f'it has {_quoted(sorted(required | optional)) or "none"}.'
        )


def _quoted(names: list[str]) -> str:
    return bounds.listed([f'"{bounds.shortened(name)}"' for name in names])
