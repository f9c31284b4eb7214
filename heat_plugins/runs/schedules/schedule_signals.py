# SPDX-License-Identifier: Apache-2.0
"""What users ask of a schedule by a signal to its resource.

``{"do": "pause", "note": "…"}``, ``{"do": "resume"}``, ``{"do": "run"}``,
``{"do": "backfill", "from": "2026-11-20", "to": "2026-11-22T02:30"}``, with
local times of the schedule, or ``{"do": "stop-backfill"}``.

A backfill runs a schedule for times of the past: a range of times that were
missed, or that lie before the schedule existed, becomes runs, one after
another. The ID of each is made from the schedule and its time: what has run is
left out, however often a range is asked for.
"""

from collections import abc
import dataclasses
import itertools
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules

# The most times of the past that a schedule has to run.
_MOST = 50

_TOO_MANY = (
    f'The schedule has more than {_MOST} times of the past to run '
    '{}: backfill a shorter range first'
)

_Kept = schedule_deciding.KeptSchedule

DO, NOTE, FROM, TO = 'do', 'note', 'from', 'to'
PAUSE, RESUME, RUN = 'pause', 'resume', 'run'
BACKFILL, STOP_BACKFILL = 'backfill', 'stop-backfill'

_DONE = {
    PAUSE: 'the schedule is paused',
    RESUME: 'the schedule is resumed',
    RUN: 'the schedule runs its action now',
    BACKFILL: 'the schedule runs its action for times of the past',
    STOP_BACKFILL: 'the schedule runs nothing else for times of the past',
}

# What goes with each.
_WITH: abc.Mapping[str, tuple[str, ...]] = {
    PAUSE: (NOTE,),
    BACKFILL: (FROM, TO),
}

_EXAMPLE = (
    'the signal must be {"do": "pause", "note": "…"}, {"do": "resume"}, '
    '{"do": "run"}, {"do": "backfill", "from": "2026-11-20", "to": '
    '"2026-11-22"} or {"do": "stop-backfill"}'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleSignal:
    """What a user asks of a schedule.

    :ivar note: why to pause it.
    :ivar begin: the first time that a backfill may run.
    :ivar end: the last one.
    """

    do: str
    note: str = ''
    begin: str = ''
    end: str = ''

    @property
    def done(self) -> str:
        """What the event of the signal says."""
        return _DONE[self.do]

    def details(self) -> dict[str, str]:
        """Return it as it is sent."""
        given = {NOTE: self.note, FROM: self.begin, TO: self.end}
        return {DO: self.do, **{k: text for k, text in given.items() if text}}

    def check(self, shown: abc.Mapping[str, Any]) -> None:
        """Check whether attributes permit it.

        :raises errors.Refused: it makes no sense now.
        """
        if self.do == RUN and shown['last_outcome'] in ('starting', 'running'):
            raise errors.Refused(
                f'Run {shown["last_run"]} of the schedule has not ended; '
                'cancel it, or wait for its end'
            )

    def follow(self, kept: _Kept, now: int) -> _Kept:
        """Return the schedule after that, which counts it.

        :raises errors.Refused: it makes no sense now.
        """
        number = kept.record.signals + 1
        return self._followed(kept, now).with_record(signals=number)

    def _followed(self, kept: _Kept, now: int) -> _Kept:
        if self.do == RUN:
            record = schedule_deciding.run_now(kept.schedule, kept.record, now)
            return dataclasses.replace(kept, record=record)
        if self.do == BACKFILL:
            return with_backfill(kept, self.begin, self.end)
        if self.do == STOP_BACKFILL:
            # A run that was created continues.
            running, created = kept.record.running, kept.record.created
            if not kept.record.is_backfilled:
                return kept.with_record(backfill=())
            return kept.with_record(
                backfill=(running,) if created else (),
                running=running if created else None,
            )
        if self.do == PAUSE:
            return kept.with_record(paused=self.note or 'a signal paused it')
        if kept.schedule.paused:
            raise errors.Refused(
                'the template pauses the schedule: set "paused" to false and '
                'update the stack'
            )
        # What was due during the pause is decided before that ends.
        paused = kept.with_schedule(kept.schedule, now)
        return paused.with_record(paused='', failures=0)


def read(details: object) -> ScheduleSignal:
    """Read a signal.

    :raises errors.Refused: it is invalid.
    """
    if not isinstance(details, dict) or details.keys() - {DO, NOTE, FROM, TO}:
        raise errors.Refused(_EXAMPLE)
    given = {NOTE: '', FROM: '', TO: '', **details}
    do = given.pop(DO, None)
    if not isinstance(do, str) or do not in _DONE:
        raise errors.Refused(_EXAMPLE)
    for name, text in given.items():
        if not isinstance(text, str) or len(text) > bounds.PART:
            raise errors.Refused(
                f'"{name}" must be a text of at most {bounds.PART} characters'
            )
        if text and name not in _WITH.get(do, ()):
            goes = next(each for each in _WITH if name in _WITH[each])
            raise errors.Refused(f'"{name}" goes with "{goes}" alone')
    note, begin, end = given.values()
    if do == BACKFILL and not (begin and end):
        raise errors.Refused(f'"{BACKFILL}" needs "{FROM}" and "{TO}"')
    return ScheduleSignal(do=do, note=note, begin=begin, end=end)


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
    passed = [*itertools.islice(schedule.ticks(first - 1, last), _MOST + 1)]
    if not passed:
        raise errors.Refused(
            f'The schedule has no time from {begin} to {end} that has passed'
        )
    if len(passed) > _MOST:
        raise errors.Refused(_TOO_MANY.format(f'from {begin} to {end}'))
    return passed


def with_backfill(kept: _Kept, begin: str, end: str) -> _Kept:
    """Return a schedule that also runs the times of a range.

    Times that are not decided yet become runs anyway, as do those that run or
    wait now.

    :raises errors.Refused: there are none, or too many.
    """
    record = kept.record
    since = record.since + kept.schedule.delay
    found = ticks(kept.schedule, begin, end, since)
    own = {record.running, record.waiting}
    wanted = {tick.time for tick in found} - own | {*record.backfill}
    if len(wanted) > _MOST:
        raise errors.Refused(
            _TOO_MANY.format('with those that have not ended yet')
        )
    return kept.with_record(backfill=tuple(sorted(wanted)))
