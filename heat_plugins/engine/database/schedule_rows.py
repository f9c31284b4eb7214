# SPDX-License-Identifier: Apache-2.0
"""Where Heat's database keeps schedules: in the data of their resources.

Engines change a schedule by comparing it with what they have read. So one of
several that decide a tick does so, and a schedule that is not due costs no
request to any service.
"""

from collections import abc
import contextlib
import dataclasses
import threading
import time

from heat.objects import event
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import metrics
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules

#: The key in a resource's data.
KEY = 'heat_plugins_schedule'

# Attempts to change what others change, too.
_TRIES = 10

# Seconds after which a tick starts late, as metrics count it.
_LATE = 60

_Kept = schedule_deciding.KeptSchedule

#: Set once a schedule has changed, or a run has ended, in this process.
woken = threading.Event()
# The numbers of the schedules, and the IDs of the runs.
_changed: set[int | str] = set()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleRow:
    """A schedule.

    :ivar number: of its resource, in the database.
    :ivar id: of the schedule; that of its resource.
    :ivar text: see `schedule_deciding.KeptSchedule`.
    """

    number: int
    id: str
    name: str
    stack_id: str
    stack_name: str
    project_id: str
    text: str


def wake(changed: int | str) -> None:
    """Let this process read a schedule now.

    :param changed: the number of its resource; or the ID of a run that has
        ended, which may be of a schedule.
    """
    if isinstance(changed, str) and not cfg.CONF.heat_plugins.rescue_interval:
        # This process keeps no schedules.
        return
    _changed.add(changed)
    woken.set()


def take_changed() -> abc.Iterator[int | str]:
    """Yield each schedule and run that has changed in this process, once."""
    woken.clear()
    while _changed:
        yield _changed.pop()


def kept(
    context: heat_types.Context, numbers: abc.Collection[int] | None = None
) -> list[ScheduleRow]:
    """Return the schedules of all projects but those that rest.

    :param numbers: those that are wanted; None for all, which reads the data
        of all resources.
    """
    return [
        ScheduleRow(**row._mapping)
        for row in resources.active_data(context, KEY, numbers)
    ]


def with_missed(
    context: heat_types.Context, most: int
) -> list[tuple[str, str]]:
    """Return projects and stacks with schedules that did not start or cannot.

    These are those whose last tick was missed, also if no engine has recorded
    that yet, or that have a reason why the next one cannot start.
    """
    now, named = time.time(), set()
    for row in kept(context):
        # The engine that keeps schedules warns of others.
        with contextlib.suppress(Exception):
            known = _Kept.read(row.text)
            record = schedule_deciding.due(
                known.schedule, known.record, now
            ).record
            if record.reason or record.outcome == schedule_deciding.MISSED:
                named.add((row.project_id, row.stack_name))
    return sorted(named)[:most]


def all_stacks(
    context: heat_types.Context, most: int
) -> list[tuple[str, str]]:
    """Return projects and stacks with schedules."""
    named = {(row.project_id, row.stack_name) for row in kept(context)}
    return sorted(named)[:most]


def replace(
    context: heat_types.Context, number: int, before: str, after: str
) -> bool:
    """Write a schedule unless another process has changed it."""
    statement = resources.replacing_datum(number, KEY, before, after)
    return rows.write(context, statement) == [1]


def read(context: heat_types.Context, number: int) -> str | None:
    """Return the schedule of a resource; None if it has none."""
    return resources.datum(context, number, KEY)


def change(
    context: heat_types.Context,
    number: int,
    changed: abc.Callable[[_Kept], _Kept],
) -> bool:
    """Change the schedule of a resource, if it has one; say if that did so.

    :param changed: takes what there is and returns what to write; it may be
        called several times.
    :raises ValueError: what there is, is unreadable.
    :raises errors.Unavailable: others change it each time.
    """
    for _ in range(_TRIES):
        text = resources.datum(context, number, KEY)
        if text is None:
            return False
        before = _Kept.read(text)
        after = changed(before).noticed(before)
        if after == before:
            return False
        if replace(context, number, text, after.text()):
            count(before, after)
            return True
    raise errors.Unavailable('Other processes change the schedule')


def count(before: _Kept, after: _Kept) -> None:
    """Count the ticks that a recorded change has settled, for metrics."""
    former, record = before.record, after.record
    if record.created and not former.created:
        is_late = former.acted > before.start + _LATE
        metrics.count(metrics.TICKS, 'late' if is_late else 'started')
    metrics.count(metrics.TICKS, 'missed', record.missed - former.missed)
    metrics.count(metrics.TICKS, 'skipped', record.skipped - former.skipped)


def add_event(
    context: heat_types.Context,
    row: ScheduleRow,
    why: str,
    kind: heat_values.EventKind = heat_values.EventKind.NOT_TRIGGERED,
) -> None:
    """Write an event of a failure of a schedule, without its stack.

    :param why: safe to show.
    """
    values = {
        'stack_id': row.stack_id,
        'resource_name': row.name,
        'physical_resource_id': row.id,
        'resource_type': schedules.TYPE,
        'resource_action': 'SIGNAL',
        'resource_status': 'FAILED',
        'resource_status_reason': heat_values.event_reason(
            kind, foreign.stored(why)
        ),
    }
    event.Event.create(context, values)
