# SPDX-License-Identifier: Apache-2.0
"""Signals of users to a schedule's resource, and its attributes.

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
import time
from typing import Any, Final, TypeAlias

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules
from heat_plugins.runs.targets import stack_tree

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
    """A request of a user to a schedule.

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
        """The reason of the event of the signal."""
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
        kept = kept.with_record(signals=kept.record.signals + 1)
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
    passed = ticks(kept.schedule, begin, end, since)
    own = {record.running, record.waiting}
    wanted = {tick.time for tick in passed} - own | {*record.backfill}
    if len(wanted) > _MOST:
        raise errors.Refused(
            _TOO_MANY.format('with those that have not ended yet')
        )
    return kept.with_record(backfill=tuple(sorted(wanted)))


#: What is known of each.
KEYS: Final = (
    'stack',
    'schedule',
    'id',
    'when',
    'timezone',
    'next_at',
    'next_times',
    'last_at',
    'last_run',
    'last_outcome',
    'missed',
    'skipped',
    'paused',
    'reason',
    'backfill',
    'notify',
    'notify_error',
)

# Seconds to wait until an engine has followed a signal, and between two polls.
_PATIENCE, _POLL = 20.0, 0.5

# The root stack, and the schedule in it.
_Located: TypeAlias = tuple[heat_values.Stack, stack_tree.Place]


class Schedules:
    """The schedules of the stacks of a project.

    :param clock: seconds, monotonic.
    """

    def __init__(
        self,
        heat: stack_tree.Orchestration,
        pool: pools.Pool,
        *,
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._heat = heat
        self._pool = pool
        self._clock = clock
        self._sleep = sleep

    def list(self, stack: str | None = None) -> abc.Sequence[dict[str, Any]]:
        """Return the schedules of a stack, or of all of the project.

        What cannot be read of a stack, or of a schedule, is the reason of a
        row and hides no other; a stack that is deleted meanwhile has none.

        :raises errors.NotFound: there is no such stack.
        """
        if stack is not None:
            return self._pool.each(self._try_to_show, self._of(stack))
        parts = self._pool.each(self._try_of, self._heat.stack_ids())
        return [row for part in parts for row in part]

    def _of(self, stack: str) -> abc.Sequence[_Located]:
        """Return the schedules of a stack, with the stack."""
        root = stack_tree.root(self._heat, stack)
        return [
            (root, place)
            for place in stack_tree.find(self._heat, root)
            if place.resource.type == schedules.TYPE
        ]

    def _try_of(self, stack: str) -> abc.Sequence[dict[str, Any]]:
        """Return the schedules of a stack; an error is a row."""
        try:
            return [self._try_to_show(each) for each in self._of(stack)]
        except errors.NotFound:
            return []
        except errors.Error as exc:
            return [_unread(stack, None, exc)]

    def _try_to_show(self, located: _Located) -> dict[str, Any]:
        """Return a schedule; an error is its reason."""
        stack, place = located
        try:
            return self._described(stack, place)
        except errors.Error as exc:
            return _unread(stack.name, place.path, exc)

    def show(self, stack: str, path: str) -> dict[str, Any]:
        """Return a schedule of a stack.

        :raises errors.NotFound: there is none.
        """
        return self._described(*self._find(stack, path))

    def times(self, stack: str, path: str) -> tuple[schedules.Schedule, float]:
        """Return the times of a schedule, and since when it exists.

        :raises errors.NotFound: there is none.
        :raises errors.Unavailable: heat-engine does not say that.
        """
        _, place = self._find(stack, path)
        try:
            times = self._known(place)['times']
            since = heat_values.moment(place.resource.created_at)
            return stored.read(schedules.Schedule, times), since
        except (KeyError, TypeError, ValueError) as exc:
            raise errors.Unavailable(
                f'heat-engine does not say when {path} is due; upgrade '
                'heat-plugins there'
            ) from exc

    def signal(
        self, stack: str, path: str, wanted: ScheduleSignal
    ) -> dict[str, Any]:
        """Pause, resume or run a schedule; return it as it is then.

        :raises errors.Refused: it makes no sense now.
        :raises errors.Failed: no engine has followed that, or it refuses it.
        """
        root, place = self._find(stack, path)
        wanted.check(self._described(root, place))
        before = self._known(place).get('signals')
        self._heat.signal(place.resource, wanted.details())
        until = self._clock() + _PATIENCE
        while self._clock() < until:
            if self._known(place).get('signals') != before:
                return self._described(root, place)
            self._sleep(_POLL)
        raise errors.Failed(
            f'heat-engine has not followed "{wanted.do}" within '
            f'{_PATIENCE:.0f} s. "openstack stack event list {root.name}" '
            'says why if it refuses that'
        )

    def run(self, stack: str, path: str) -> dict[str, Any]:
        """Run the action of a schedule now; return it once the run is there.

        If no engine creates the run in time, the last outcome is "starting"
        or "missed", and the reason says why.

        :raises errors.Error: see `signal`.
        """
        former = self.show(stack, path)['reason']
        shown = self.signal(stack, path, ScheduleSignal(do=RUN))
        until = self._clock() + _PATIENCE
        while (
            shown['last_outcome'] == 'starting'
            and shown['reason'] in ('', former)
            and self._clock() < until
        ):
            self._sleep(_POLL)
            shown = self.show(stack, path)
        return shown

    def _find(self, stack: str, path: str) -> _Located:
        """Return a schedule by its path in the stack, or its ID."""
        listed = self._of(stack)
        for root, place in listed:
            if path in (place.path, place.resource.physical_id):
                return root, place
        known = [place.path for _, place in listed]
        raise errors.NotFound(
            f'Stack {stack_tree.root(self._heat, stack).name} has no schedule '
            f'{bounds.shortened(path)}; there are: '
            f'{bounds.listed(known) or "none"}'
            + bounds.did_you_mean(path, known)
        )

    def _known(self, place: stack_tree.Place) -> abc.Mapping[str, Any]:
        """Return the attributes of a schedule; {} if there are none."""
        shown = self._heat.attribute(place.resource, 'show')
        return shown if isinstance(shown, dict) else {}

    def _described(
        self, stack: heat_values.Stack, place: stack_tree.Place
    ) -> dict[str, Any]:
        """Return a schedule as users read it."""
        known = self._known(place)
        upcoming = known.get('next_times') or []
        return {
            **{key: known.get(key) for key in KEYS},
            'stack': stack.name,
            'schedule': place.path,
            'id': place.resource.physical_id,
            'next_at': upcoming[0] if upcoming else None,
            'last_at': known.get('last_time'),
        }


def _unread(
    stack: str, schedule: str | None, exc: errors.Error
) -> dict[str, Any]:
    """Return the row of an unreadable schedule, with the reason."""
    row: dict[str, Any] = dict.fromkeys(KEYS)
    reason = f'Cannot read it: {exc}'
    return {**row, 'stack': stack, 'schedule': schedule, 'reason': reason}
