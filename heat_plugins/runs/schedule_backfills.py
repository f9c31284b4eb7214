# SPDX-License-Identifier: Apache-2.0
"""Backfills: what a schedule runs for times of the past.

A range of times that were missed, or that lie before the schedule existed,
becomes operations, one after another. The ID of each is made from the
schedule and its time: what has run is left out, however often a range is
asked for.
"""

import itertools
from typing import Final

from heat_plugins import errors
from heat_plugins.runs import schedule_deciding
from heat_plugins.runs import schedules

#: The most times of the past that a schedule has to run.
MOST: Final = 50

_Kept = schedule_deciding.KeptSchedule


def ticks(
    schedule: schedules.Schedule, begin: str, end: str, now: float
) -> list[schedules.Tick]:
    """Return the times of a range that have passed.

    :param begin: the first one, a local time; a day is its beginning.
    :param end: the last one; a day is its end.
    :raises errors.Refused: there is none, or there are too many.
    :raises errors.Invalid: one of the two is no time.
    """
    first = schedule.instant(begin)
    last = min(schedule.instant(end, is_end=True), int(now) - schedule.delay)
    passed = [*itertools.islice(schedule.ticks(first - 1, last), MOST + 1)]
    if not passed:
        raise errors.Refused(
            f'The schedule has no time from {begin} to {end} that has passed'
        )
    if len(passed) > MOST:
        raise errors.Refused(_too_many(f'from {begin} to {end}'))
    return passed


def add(kept: _Kept, begin: str, end: str) -> _Kept:
    """Return a schedule that also runs the times of a range.

    Times that are not decided yet become operations anyway, as do those that
    run or wait now.

    :raises errors.Refused: there are none, or too many.
    """
    record = kept.record
    since = record.since + kept.schedule.delay
    found = ticks(kept.schedule, begin, end, since)
    own = {record.running, record.waiting}
    wanted = {tick.time for tick in found} - own | {*record.backfill}
    if len(wanted) > MOST:
        raise errors.Refused(_too_many('with those that have not ended yet'))
    return kept.with_record(backfill=tuple(sorted(wanted)))


def stop(kept: _Kept) -> _Kept:
    """Return a schedule that runs nothing else of the past.

    An operation that was created continues.
    """
    record = kept.record
    if not record.is_backfilled:
        return kept.with_record(backfill=())
    if not record.created:
        return kept.with_record(backfill=(), running=None)
    return kept.with_record(backfill=(record.running,))


def _too_many(where: str) -> str:
    return (
        f'The schedule has more than {MOST} times of the past to run {where}: '
        'backfill a shorter range first'
    )
