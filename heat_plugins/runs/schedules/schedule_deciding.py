# SPDX-License-Identifier: Apache-2.0
"""The next step of a schedule: a pure decision over its record.

The keeper calls `KeptSchedule.settled` and `due`, stores the record that they
return, and only then acts. The run of `ScheduleRecord.running` is stored with
the record that says so in one transaction, see `created`: until then a
successor of an engine that dies starts it.

- Each tick is decided once: it starts, waits, or is skipped or missed.
- At most one tick runs at a time, and at most one waits. While the run of a
  tick could not be created yet, the next one waits, as it may start in its
  place.
- After an outage at most one tick starts late.
- Ticks of the past that a user has asked for start one after another. One
  that is due meanwhile waits, and starts before the next of them.

Times are in seconds since the epoch; `schedules.Tick.time` names a tick.
"""

from collections import abc
import dataclasses
import enum
import itertools
import json
import math
import operator
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedules

# Missed ticks that are counted, and named, at a time.
_COUNTED = 1000

# Seconds by which a record may be ahead of the clock of who decides.
_AHEAD = 86400

# Seconds between two checks whether a schedule can run, if it can, and if it
# cannot; and until what failed is retried, at first and at most.
_DAY, _HOUR, _RETRY, _LONGEST = 86400, 3600, 15.0, 60.0

_Schedule = schedules.Schedule

#: The outcome of a tick whose run could not be created.
MISSED: Final = 'missed'

#: Why, if nothing else is known.
LATE: Final = 'No engine could start it in time'


class Passed(enum.StrEnum):
    """The reason why a tick does not start."""

    MISSED = 'missed'
    PAUSED = 'paused'
    RUNNING = 'another one is running'
    WAITING = 'another one is waiting'
    REPLACED = 'a later one replaced it'
    CUT_OFF = 'its cut-off has passed while it waited'


class Needed(enum.Enum):
    """A task of an engine for a schedule, in the words of messages."""

    START = 'start the run of'
    CANCEL = 'cancel the run of'
    CHECK = 'find the targets of'


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScheduleRecord:
    """The record of a schedule.

    :ivar since: the last tick that is decided, or when the schedule began.
    :ivar running: the tick whose run has not ended.
    :ivar created: whether that run was created.
    :ivar create_until: when it is too late to create it.
    :ivar waiting: the tick that starts after that.
    :ivar forced: whether a user has asked for that tick: a pause does not
        stop it.
    :ivar backfill: ticks of the past that a user has asked for and that have
        not ended, in their order; the first of them may be the one that runs.
    :ivar acted: when an engine began with what its run needs now; 0 if none
        has.
    :ivar last: the last tick whose run was created; one of a backfill if none
        is later.
    :ivar outcome: how its run ended, or that the last tick was missed.
    :ivar missed: how many ticks were missed.
    :ivar missed_last: the last of those that were found missed last.
    :ivar skipped: how many did not start for the sake of another one, or of
        the cut-off.
    :ivar failures: how many runs failed in a row, without backfills.
    :ivar paused: why it is paused, other than by its template; empty if it
        is not.
    :ivar reason: why the last tick has no run, or the next one can have none;
        empty if nothing is known against it.
    :ivar checked: when that was checked last.
    :ivar signals: how many signals it has followed.
    :ivar backfilled: how the last run of a backfill ended.
    """

    since: int
    running: int | None = None
    created: bool = False
    create_until: int = 0
    forced: bool = False
    acted: int = 0
    waiting: int | None = None
    last: int | None = None
    outcome: str = ''
    missed: int = 0
    missed_last: int | None = None
    skipped: int = 0
    failures: int = 0
    paused: str = ''
    reason: str = ''
    checked: int = 0
    backfill: tuple[int, ...] = ()
    signals: int = 0
    backfilled: str = ''

    @property
    def is_backfilled(self) -> bool:
        """Whether the tick that runs is of the past, as a user has asked."""
        return self.running is not None and self.running in self.backfill

    @property
    def backfill_left(self) -> tuple[int, ...]:
        """The ticks of a backfill without the one that runs."""
        return tuple(tick for tick in self.backfill if tick != self.running)


@dataclasses.dataclass(frozen=True, kw_only=True)
class KeptSchedule:
    """A schedule with its record, as it is stored.

    :ivar rules: whether, and of what, a webhook is told.
    :ivar book: the notices for that.
    """

    # Engines of the release of version 1 leave one of version 2 to others.
    VERSION = 2

    schedule: _Schedule
    record: ScheduleRecord
    rules: notifying.NoticeRules | None = None
    book: notifying.NoticeBook = dataclasses.field(
        default_factory=notifying.NoticeBook
    )

    @classmethod
    def read(cls, text: str) -> 'KeptSchedule':
        """Read a schedule from its text in JSON.

        What a former release has started continues without the schedule.

        :raises ValueError: it is something else, or of a later release.
        """
        values = bounds.read_json(text)
        try:
            kept = stored.read(cls, values)
        except errors.Invalid as exc:
            raise ValueError(str(exc)) from exc
        if values.get('version') == cls.VERSION:
            return kept
        record = kept.record
        if record.created or record.acted:
            left = record.backfill_left
            kept = kept.with_record(running=None, created=False, backfill=left)
        is_missed = record.outcome == MISSED
        return kept.with_record(last=None, outcome=MISSED if is_missed else '')

    def text(self) -> str:
        return json.dumps(stored.versioned(type(self), stored.dump(self)))

    def with_record(self, **changed: Any) -> 'KeptSchedule':
        """Return it with another record."""
        return dataclasses.replace(
            self, record=dataclasses.replace(self.record, **changed)
        )

    def tried(
        self, notice: notifying.Notice, now: int
    ) -> tuple[notifying.Notice, 'KeptSchedule']:
        """Return a notice and the schedule before an attempt to send it."""
        tried = notice.tried(now)
        book = self.book.replaced(notice, tried)
        return tried, dataclasses.replace(self, book=book)

    def told(
        self, notice: notifying.Notice, why: str, now: float
    ) -> 'KeptSchedule':
        """Return it after such an attempt; see `notifying.NoticeBook`."""
        return dataclasses.replace(self, book=self.book.told(notice, why, now))

    def noticed(self, before: 'KeptSchedule') -> 'KeptSchedule':
        """Return it with the notices of a change of its record."""
        rules, record, former = self.rules, self.record, before.record
        if rules is None:
            return dataclasses.replace(self, book=notifying.NoticeBook())
        book = self.book
        if record.missed > former.missed:
            notice = notifying.Notice(
                event=notifying.NoticeEvent.MISSED,
                tick=record.missed_last or 0,
                number=record.missed,
            )
            book = book.with_notice(rules, notice)
        ended, is_past = former.running, former.is_backfilled
        if former.created and ended not in (None, record.running):
            book = book.with_end(
                rules,
                record.backfilled if is_past else record.outcome,
                ended or 0,
                record.failures,
                is_past=is_past,
            )
        return dataclasses.replace(self, book=book)

    def with_notices(
        self, before: 'KeptSchedule', now: float
    ) -> 'KeptSchedule':
        """Return it with all notices that are due."""
        kept, tick = self.noticed(before), self.record.running
        if kept.rules is None or tick is None or kept.is_held:
            return kept
        book = kept.book.with_wait(kept.rules, tick, kept.asked_at, now)
        return dataclasses.replace(kept, book=book)

    @property
    def notice_time(self) -> float:
        """The time of the next notice; infinite for never.

        What a pause keeps from being created does not wait.
        """
        at, tick = self.book.next_try, self.record.running
        if self.rules is None or tick is None or self.is_held:
            return at
        return min(at, self.book.waits_until(self.rules, tick, self.asked_at))

    @property
    def asked_at(self) -> int:
        """The time at which the running tick was due, or asked for."""
        return self.record.create_until - self.schedule.lateness

    def with_schedule(self, schedule: _Schedule, now: int) -> 'KeptSchedule':
        """Return it with another schedule, which is due from now on.

        What was due before is decided by the former one.
        """
        record = due(self.schedule, self.record, now).record
        delay = schedule.delay
        named = operator.attrgetter('cron', 'at', 'timezone', 'exclude')
        if named(schedule) == named(self.schedule):
            # What the former jitter delays has not started yet.
            delay = max(delay, self.schedule.delay)
        kept = dataclasses.replace(self, schedule=schedule, record=record)
        return kept.due_from(now, delay)

    def due_from(self, now: int, delay: int) -> 'KeptSchedule':
        """Return it without the ticks that were due before a time.

        A tick that is decided stays so.

        :param delay: seconds by which the jitter delays.
        """
        return self.with_record(
            since=max(now - delay, min(self.record.since, now))
        )

    def resumed_stack(self, now: int) -> 'KeptSchedule':
        """Return it after a suspension of its stack: no tick waits."""
        created = self.record.created
        kept = self.due_from(now, self.schedule.delay)
        return kept.with_record(
            waiting=None, running=self.record.running if created else None
        )

    @property
    def why_paused(self) -> str:
        """The reason of a pause; empty if the schedule is not paused."""
        if self.record.paused or not self.schedule.paused:
            return self.record.paused
        return self.schedule.note or 'its template pauses it'

    @property
    def is_held(self) -> bool:
        """Whether a pause keeps the tick that runs from being created."""
        is_open = self.record.created or self.record.forced
        return bool(self.why_paused) and not is_open

    @property
    def start(self) -> int:
        """The time at which the running tick was due, or asked for."""
        if self.record.forced or self.record.is_backfilled:
            return self.asked_at
        return self.schedule.start_of(self.record.running or 0)

    def settled(
        self, head: run_records.Head | None, now: float
    ) -> 'KeptSchedule':
        """Return it with the state of the tick that runs.

        :param head: how its run stands; None if there is none.
        """
        record = self.record
        if record.running is None:
            return self
        if not record.created:
            is_over = self.is_held or now > record.create_until
            return self.given_up() if is_over else self
        phase = run_records.Phase.CANCELLED
        reason = 'Its run was deleted before its end was recorded'
        if head is not None:
            phase = head.state or run_records.Phase.FAILED
            reason = '' if head.state else head.reason
        if not phase.ended:
            return self
        return dataclasses.replace(
            self, record=ended(self.schedule, record, phase, reason)
        )

    def given_up(self) -> 'KeptSchedule':
        """Return it once the tick that runs is too late to create."""
        if self.is_held:
            return self.with_record(running=None)
        kept = self.with_record(
            running=None,
            backfill=self.record.backfill_left,
            reason=self.record.reason or LATE,
        )
        if self.record.is_backfilled:
            # It was missed before, or the schedule did not exist.
            return kept
        return kept.with_record(
            missed=self.record.missed + 1,
            missed_last=self.record.running,
            outcome=MISSED,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
    """The next step of a schedule.

    :ivar record: what to record before anything else.
    :ivar cancel: the tick whose run to cancel.
    :ivar passed: ticks that do not start, and why; not all that
        were missed in a long outage.
    :ivar next_time: when to decide again, at the latest; None for never. The
        end of the run is another reason to do so.
    """

    record: ScheduleRecord
    cancel: int | None = None
    passed: tuple[tuple[int, Passed], ...] = ()
    next_time: int | None = None


def due(schedule: _Schedule, record: ScheduleRecord, now: float) -> Decision:
    """Decide the next step of a schedule."""
    if record.since > now + _AHEAD:
        # The clock of another engine was wrong.
        record = dataclasses.replace(record, since=int(now))
    ticks, more = _started(schedule, record.since, now)
    decision = Decision(record=record)
    if ticks:
        decision = _recorded(decision, since=ticks[-1].time)
    if schedule.paused or record.paused:
        decision = _drop(decision, Passed.PAUSED)
        paused = (tick.time for tick in ticks)
        decision = _pass(decision, paused, Passed.PAUSED)
    else:
        decision = _recorded(decision, missed=record.missed + more)
        decision = _decided(schedule, decision, ticks, now)
        record = decision.record
        if record.backfill and record.running is None:
            first = record.backfill[0]
            decision = _start(schedule, decision, first, int(now))
    upcoming = schedule.next(1, decision.record.since)
    return dataclasses.replace(
        decision, next_time=upcoming[0].start if upcoming else None
    )


def created(record: ScheduleRecord) -> ScheduleRecord:
    """Return the record once the run of the tick that runs is there.

    Whether a reason still holds is checked after the end of that run.
    """
    last = record.running
    if record.is_backfilled and last is not None:
        last = max(last, record.last or 0)
    return dataclasses.replace(
        record,
        created=True,
        last=last,
        acted=0,
        reason='',
        checked=0 if record.reason else record.checked,
    )


def ended(
    schedule: _Schedule,
    record: ScheduleRecord,
    phase: run_records.Phase,
    reason: str = '',
) -> ScheduleRecord:
    """Return the record after the run in progress has ended.

    :param phase: how it ended; what was cancelled is no failure.
    :param reason: why that is not known better; empty if it is.
    """
    after = dataclasses.replace(
        record,
        running=None,
        created=False,
        backfill=record.backfill_left,
        reason=reason,
    )
    if not record.is_backfilled or record.last == record.running:
        after = dataclasses.replace(after, outcome=phase.value)
    if record.is_backfilled:
        return dataclasses.replace(after, backfilled=phase.value)
    failures = record.failures
    if phase is run_records.Phase.COMPLETE:
        failures = 0
    elif phase is not run_records.Phase.CANCELLED:
        failures += 1
    most = schedule.pause_after_failures
    paused = record.paused
    if most and failures >= most and not paused:
        paused = f'{failures} failures in a row'
    return dataclasses.replace(after, failures=failures, paused=paused)


def run_now(
    schedule: _Schedule, record: ScheduleRecord, now: int
) -> ScheduleRecord:
    """Return the record after a user has asked for a run at once.

    :raises errors.Refused: a run of the schedule has not ended, or started
        in this second: its time makes its ID.
    """
    if record.running is not None:
        raise errors.Refused(
            'a run of the schedule has not ended; cancel it, or send the '
            'signal again when it has ended'
        )
    if record.waiting is not None or now == record.last:
        raise errors.Refused(
            'another time of the schedule is about to start; send the signal '
            'again later'
        )
    return dataclasses.replace(
        record,
        running=now,
        created=False,
        forced=True,
        acted=0,
        create_until=now + schedule.lateness,
    )


def _started(
    schedule: _Schedule, since: int, now: float
) -> tuple[list[schedules.Tick], int]:
    """Return the ticks to decide, and how many more were missed.

    After a long outage some are neither counted nor returned: at most
    `_COUNTED` are counted, and of those and of later ones only the last one
    and what may start is returned.
    """

    def after(time: int) -> abc.Iterator[schedules.Tick]:
        # A jitter does not change their order.
        return itertools.takewhile(
            lambda tick: tick.start <= now, schedule.ticks(time, now)
        )

    ticks = list(itertools.islice(after(since), _COUNTED))
    if len(ticks) < _COUNTED:
        return ticks, 0
    recent = int(now) - schedule.lateness - schedule.jitter - 1
    rest = list(after(max(ticks[-1].time, recent)))
    return ([ticks[-1], *rest], _COUNTED - 1) if rest else (ticks, 0)


def _decided(
    schedule: _Schedule,
    decision: Decision,
    ticks: abc.Sequence[schedules.Tick],
    now: float,
) -> Decision:
    """Decide on ticks; of several, the last one alone may start."""
    in_time = [t for t in ticks[-1:] if now <= t.start + schedule.lateness]
    missed = [tick.time for tick in ticks[: len(ticks) - len(in_time)]]
    record = decision.record
    if missed and (record.running is None or record.created):
        # What is known against it is of another time.
        decision = _recorded(decision, reason='')
    decision = _pass(decision, missed, Passed.MISSED)
    if in_time and _overlap(schedule, record) is schedules.Overlap.CANCEL:
        decision = _drop(decision, Passed.REPLACED)
    decision = _wait(schedule, decision, now)
    for tick in in_time:
        decision = _admit(schedule, decision, tick.time)
    record = decision.record
    is_to_end = record.waiting is not None and record.created
    if is_to_end and _overlap(schedule, record) is schedules.Overlap.CANCEL:
        # Each time: who decided it first may have died before it did that.
        decision = dataclasses.replace(decision, cancel=record.running)
    return decision


def _overlap(schedule: _Schedule, record: ScheduleRecord) -> schedules.Overlap:
    """Return the rule for an overlap: a tick waits for one of the past."""
    if record.is_backfilled:
        return schedules.Overlap.QUEUE
    return schedule.overlap


def _wait(schedule: _Schedule, decision: Decision, now: float) -> Decision:
    """Start the tick that waits if it can, unless its time is over."""
    record = decision.record
    if record.waiting is None:
        return decision
    start = schedule.start_of(record.waiting)
    skips = _overlap(schedule, record) is schedules.Overlap.SKIP
    if schedule.cut_off is not None and now >= start + schedule.cut_off:
        return _drop(decision, Passed.CUT_OFF)
    if skips and record.created:
        return _drop(decision, Passed.RUNNING)
    if record.running is not None:
        return decision
    if skips and now > start + schedule.lateness:
        return _drop(decision, Passed.MISSED)
    return _start(
        schedule,
        _recorded(decision, waiting=None),
        record.waiting,
        start if skips else int(now),
    )


def _admit(schedule: _Schedule, decision: Decision, tick: int) -> Decision:
    """Start a tick, or follow the rule of the schedule for an overlap."""
    record = decision.record
    if tick == record.running:
        # A user has asked for a run in the same second.
        return decision
    if record.running is None:
        return _start(schedule, decision, tick, schedule.start_of(tick))
    if not record.created:
        decision = _drop(decision, Passed.MISSED)
    elif _overlap(schedule, record) is schedules.Overlap.SKIP:
        return _pass(decision, [tick], Passed.RUNNING)
    elif record.waiting is not None:
        return _pass(decision, [tick], Passed.WAITING)
    return _recorded(decision, waiting=tick)


def _drop(decision: Decision, why: Passed) -> Decision:
    """Let the tick that waits, if there is one, pass."""
    waiting = decision.record.waiting
    if waiting is None:
        return decision
    return _pass(_recorded(decision, waiting=None), [waiting], why)


def _start(
    schedule: _Schedule, decision: Decision, tick: int, start: int
) -> Decision:
    """Start a tick.

    :param start: from when on it counts as late.
    """
    return _recorded(
        decision,
        running=tick,
        created=False,
        create_until=start + schedule.lateness,
        forced=False,
        acted=0,
    )


def _pass(
    decision: Decision, ticks: abc.Iterable[int], why: Passed
) -> Decision:
    """Note times that pass without a run, and why."""
    new = [(tick, why) for tick in ticks]
    passed, record = (*decision.passed, *new), decision.record
    if new and why is Passed.MISSED:
        decision = _recorded(
            decision,
            missed=record.missed + len(new),
            missed_last=max(t for t, each in passed if each is why),
            outcome=MISSED,
            reason=record.reason or LATE,
        )
    elif why is not Passed.PAUSED:
        decision = _recorded(decision, skipped=record.skipped + len(new))
    return dataclasses.replace(decision, passed=passed)


def _recorded(decision: Decision, **changed: Any) -> Decision:
    """Return a decision with changes of the schedule's record."""
    return dataclasses.replace(
        decision, record=dataclasses.replace(decision.record, **changed)
    )


def needed(
    kept: KeptSchedule, decision: Decision, now: int, poll: float
) -> tuple[Needed | None, float]:
    """Return the next task of an engine for a schedule, and its next time.

    :param poll: seconds until the run in progress is checked.
    """
    record, next_time = kept.record, decision.next_time or math.inf
    if record.running is None:
        # A clock may have been wrong, here as below.
        interval = between_checks(record)
        is_late = abs(now - record.checked) >= interval
        if is_late and not kept.why_paused:
            return Needed.CHECK, min(next_time, now + _LONGEST)
        check = max(record.checked + interval, now + _LONGEST)
        return None, min(next_time, check)
    step: Needed | None = None
    if not record.created:
        step = Needed.START
    elif decision.cancel is not None:
        step = Needed.CANCEL
    acted = record.acted if record.acted <= now + _LONGEST else 0
    until = acted + _pause(kept, acted)
    if step is not None and until > now:
        return None, min(next_time, until)
    pause = poll if step is None else _pause(kept, now)
    return step, min(next_time, now + pause)


def between_checks(record: ScheduleRecord) -> int:
    """Return the seconds between two checks whether a schedule can run."""
    # A check does not withdraw the reason of a tick that was missed.
    is_missed = record.outcome == MISSED
    return _HOUR if record.reason and not is_missed else _DAY


def _pause(kept: KeptSchedule, acted: float) -> float:
    """Return the seconds until something is retried: a late start later.

    :param acted: when an engine began with it.
    """
    if kept.record.created:
        return _RETRY
    begun = kept.record.create_until - kept.schedule.lateness
    return min(_LONGEST, _RETRY + max(0, acted - begun) / 4)
