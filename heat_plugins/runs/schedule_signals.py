# SPDX-License-Identifier: Apache-2.0
"""What users ask of a schedule by a signal to its resource.

``{"do": "pause", "note": "…"}``, ``{"do": "resume"}``, ``{"do": "run"}``,
``{"do": "backfill", "from": "2026-11-20", "to": "2026-11-22T02:30"}``, with
local times of the schedule, or ``{"do": "stop-backfill"}``.
"""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.runs import schedule_backfills
from heat_plugins.runs import schedule_deciding

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
                f'Operation {shown["last_operation"]} of the schedule has not '
                'ended; cancel it, or wait for its end'
            )

    def follow(
        self, kept: schedule_deciding.KeptSchedule, now: int
    ) -> schedule_deciding.KeptSchedule:
        """Return the schedule after that, which counts it.

        :raises errors.Refused: it makes no sense now.
        """
        number = kept.record.signals + 1
        return self._followed(kept, now).with_record(signals=number)

    def _followed(
        self, kept: schedule_deciding.KeptSchedule, now: int
    ) -> schedule_deciding.KeptSchedule:
        if self.do == RUN:
            record = schedule_deciding.run_now(kept.schedule, kept.record, now)
            return dataclasses.replace(kept, record=record)
        if self.do == BACKFILL:
            return schedule_backfills.add(kept, self.begin, self.end)
        if self.do == STOP_BACKFILL:
            return schedule_backfills.stop(kept)
        if self.do == PAUSE:
            return kept.with_record(paused=self.note or 'a signal paused it')
        if kept.schedule.paused:
            raise errors.Refused(
                'the template pauses the schedule: set "paused" to false and '
                'update the stack'
            )
        # What was due during the pause is decided before that ends.
        paused = kept.with_schedule(kept.schedule, now)
        return dataclasses.replace(
            paused, record=schedule_deciding.resumed(paused.record)
        )


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
