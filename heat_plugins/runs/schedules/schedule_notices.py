# SPDX-License-Identifier: Apache-2.0
"""When a schedule has something to tell; see `notifying`.

It is decided by what is recorded before and after a change. Everything here is
pure.
"""

import dataclasses
import math

from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedule_deciding

_Kept = schedule_deciding.KeptSchedule
_Event = notifying.NoticeEvent

_OF_PHASE = {
    run_records.Phase.FAILED.value: _Event.FAILURE,
    run_records.Phase.TIMED_OUT.value: _Event.TIMEOUT,
    run_records.Phase.COMPLETE.value: _Event.RECOVERY,
}


def noticed(before: _Kept, after: _Kept) -> _Kept:
    """Return a schedule with the notices of what a change has recorded."""
    rules, record = after.rules, after.record
    if rules is None:
        return dataclasses.replace(after, book=notifying.NoticeBook())
    book, former = after.book, before.record
    if record.missed > former.missed:
        tick = record.missed_last or 0
        notice = notifying.Notice(
            event=_Event.MISSED, tick=tick, number=record.missed
        )
        book = book.with_notice(rules, notice)
    is_past = former.is_backfilled
    event = _OF_PHASE.get(record.backfilled if is_past else record.outcome)
    ended = former.running if former.created else None
    has_ended = ended is not None and record.running != ended
    if event is _Event.RECOVERY:
        # What a time of the past shows of others is unknown.
        is_told = not is_past
    else:
        is_told = is_past or record.failures >= rules.after
    if has_ended and event is not None and is_told:
        notice = notifying.Notice(
            event=event, tick=ended or 0, number=record.failures
        )
        book = book.with_notice(rules, notice)
    return dataclasses.replace(after, book=book)


def changed(before: _Kept, after: _Kept, now: float) -> _Kept:
    """Return a schedule with all notices that are due."""
    kept, tick = noticed(before, after), after.record.running
    if kept.rules is None or tick is None or now < _waits_until(kept):
        return kept
    notice = notifying.Notice(event=_Event.WAITING, tick=tick)
    book = kept.book.with_notice(kept.rules, notice)
    return dataclasses.replace(
        kept, book=dataclasses.replace(book, waited=tick)
    )


def next_time(kept: _Kept) -> float:
    """Return when a notice is due at the latest; infinite for never."""
    return min(kept.book.next_try, _waits_until(kept))


def _waits_until(kept: _Kept) -> float:
    """Return when the tick that runs does so for too long; or infinity.

    What a pause keeps from being created does not.
    """
    record, rules = kept.record, kept.rules
    if rules is None or not rules.waits or kept.is_held:
        return math.inf
    if record.running is None or record.running == kept.book.waited:
        return math.inf
    # A user may have asked for it now, whatever its time is.
    return record.create_until - kept.schedule.lateness + rules.waits
