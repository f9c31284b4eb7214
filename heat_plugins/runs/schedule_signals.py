# SPDX-License-Identifier: Apache-2.0
"""What users ask of a schedule by a signal to its resource.

``{"do": "pause", "note": "…"}``, ``{"do": "resume"}`` or ``{"do": "run"}``.
"""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.runs import schedule_deciding

DO, NOTE = 'do', 'note'
PAUSE, RESUME, RUN = 'pause', 'resume', 'run'

_DONE = {
    PAUSE: 'the schedule is paused',
    RESUME: 'the schedule is resumed',
    RUN: 'the schedule runs its action now',
}

_EXAMPLE = (
    'the signal must be {"do": "pause", "note": "…"}, {"do": "resume"} or '
    '{"do": "run"}'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleSignal:
    """What a user asks of a schedule.

    :ivar note: why to pause it.
    """

    do: str
    note: str = ''

    @property
    def done(self) -> str:
        """What the event of the signal says."""
        return _DONE[self.do]

    def details(self) -> dict[str, str]:
        """Return it as it is sent."""
        return {DO: self.do, **({NOTE: self.note} if self.note else {})}

    def check(self, shown: abc.Mapping[str, Any]) -> None:
        """Check whether attributes permit it.

        :raises errors.Refused: it makes no sense now.
        """
        if self.do == RUN and shown['last_outcome'] in ('starting', 'running'):
            raise errors.Refused(
                f'Operation {shown["last_operation"]} of the schedule has not '
                'ended; cancel it, or wait for its end'
            )

    def is_followed(
        self, before: abc.Mapping[str, Any], shown: abc.Mapping[str, Any]
    ) -> bool:
        """Say whether attributes show that an engine has followed it."""
        if self.do == RUN:
            return bool(shown['last_operation'] != before['last_operation'])
        if self.do == RESUME:
            return not shown['paused']
        return bool(shown['paused'] and self.note in shown['paused'])

    def follow(
        self, kept: schedule_deciding.KeptSchedule, now: int
    ) -> schedule_deciding.KeptSchedule:
        """Return the schedule after that.

        :raises errors.Refused: it makes no sense now.
        """
        if self.do == RUN:
            record = schedule_deciding.run_now(kept.schedule, kept.record, now)
            return dataclasses.replace(kept, record=record)
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
    if not isinstance(details, dict) or details.keys() - {DO, NOTE}:
        raise errors.Refused(_EXAMPLE)
    do, note = details.get(DO), details.get(NOTE, '')
    if not isinstance(do, str) or do not in _DONE:
        raise errors.Refused(_EXAMPLE)
    if not isinstance(note, str) or len(note) > bounds.PART:
        raise errors.Refused(
            f'"note" must be a text of at most {bounds.PART} characters'
        )
    if note and do != PAUSE:
        raise errors.Refused(f'"note" goes with "{PAUSE}" alone')
    return ScheduleSignal(do=do, note=note)
