# SPDX-License-Identifier: Apache-2.0
"""What a cron trigger is, in a template and in Mistral, and how to change it.

Mistral cannot change a trigger. What can be done is to remove it and to
make it again; :func:`plan` says whether that is needed, and with what, so
that neither runs nor the trigger itself get lost on the way.
"""

from collections.abc import Mapping
import dataclasses
import datetime
import json
from typing import Any, Final

from heat_plugins.workflows import schedule

# Between two requests some time passes, also on a busy cloud.
_MARGIN: Final = datetime.timedelta(seconds=10)

# A run that is late by more than this will hardly begin soon.
_PATIENCE: Final = datetime.timedelta(minutes=2)

# How soon to look again for a run that is about to begin.
_SOON: Final = 2


class Refused(ValueError):
    """What a template asks for cannot be done; says why."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wanted:
    """A trigger as a template has it.

    :ivar count: how many runs in all; None for no limit.
    """

    name: str
    workflow: str
    input: Mapping[str, Any]
    params: Mapping[str, Any]
    pattern: str | None
    first_time: str | None
    count: int | None

    def first(self) -> datetime.datetime | None:
        """Read the first time."""
        if not self.first_time:
            return None
        return schedule.first_time(self.first_time)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trigger:
    """A trigger as Mistral has it.

    :ivar next_time: of its next run, as Mistral writes it.
    :ivar remaining: how many runs it has left; None for no limit.
    """

    id: str
    name: str
    workflow_name: str
    workflow_id: str
    input: Mapping[str, Any]
    params: Mapping[str, Any]
    pattern: str | None
    first_time: str | None
    next_time: str | None
    remaining: int | None

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> 'Trigger':
        """Read what Mistral's API answers."""
        return cls(
            id=row['id'],
            name=row['name'],
            workflow_name=row.get('workflow_name') or '',
            workflow_id=row.get('workflow_id') or '',
            input=_map(row.get('workflow_input')),
            params=_map(row.get('workflow_params')),
            pattern=row.get('pattern') or None,
            first_time=row.get('first_execution_time') or None,
            next_time=row.get('next_execution_time') or None,
            remaining=row.get('remaining_executions'),
        )

    def next(self) -> datetime.datetime | None:
        """Return when it runs next."""
        return _time(self.next_time)

    def again(self, now: datetime.datetime) -> 'Order':
        """Return how to make this trigger again, later on.

        What it would have run meanwhile it runs once, at the next minute,
        where no pattern makes up for it; so does Mistral when it lags.
        """
        first = _time(self.first_time)
        if first is not None and first < now + schedule.NOTICE + _MARGIN:
            if self.pattern:
                first = None
            else:
                at = max(first, now + datetime.timedelta(seconds=20))
                if at != first:
                    at += datetime.timedelta(minutes=1)
                return dataclasses.replace(
                    self._order(None),
                    pattern=f'{at.minute} {at.hour} {at.day} {at.month} *',
                    count=1,
                )
        return self._order(first)

    def _order(self, first: datetime.datetime | None) -> 'Order':
        return Order(
            name=self.name,
            # By its name a workflow is found again that was deleted and
            # made anew in between.
            workflow=self.workflow_name or self.workflow_id,
            input=self.input,
            params=self.params,
            pattern=self.pattern,
            first_time=_text(first),
            count=self.remaining,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """What Mistral is asked to make.

    :ivar count: how many runs from now on.
    """

    name: str
    workflow: str
    input: Mapping[str, Any]
    params: Mapping[str, Any]
    pattern: str | None
    first_time: str | None
    count: int | None

    def filled(self, declared: Any, defaults: Mapping[str, Any]) -> 'Order':
        """Return the order with the defaults of what is not given.

        :param declared: as for :func:`check_input`.
        """
        if not isinstance(declared, list):
            return self
        names = {
            name
            for one in declared
            for name in (one if isinstance(one, Mapping) else [one])
        }
        known = {k: v for k, v in defaults.items() if k in names}
        return dataclasses.replace(self, input={**known, **self.input})

    def matches(self, trigger: Trigger) -> bool:
        """Say whether a trigger can be what came of this order.

        That is how a trigger is recognised whose making was not answered.
        """
        left = trigger.remaining
        return (
            trigger.name == self.name
            and self.workflow in (trigger.workflow_name, trigger.workflow_id)
            and trigger.input == self.input
            and trigger.params == self.params
            and trigger.pattern == self.pattern
            and (trigger.first_time or '')[:16] == (self.first_time or '')
            and (
                self.count is None or (left is not None and left <= self.count)
            )
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """What is remembered of a trigger that was made.

    :ivar id: Mistral's, which no later trigger of that name has.
    :ivar wanted: what the template said.
    :ivar order: what Mistral was asked for.
    :ivar made: when, as ISO 8601.
    """

    id: str
    wanted: Wanted
    order: Order
    made: str

    def has_run_out(self, now: datetime.datetime) -> bool:
        """Say whether it may have had all of its runs by now."""
        first = self.order.first_time
        return schedule.has_run_out(
            self.order.pattern,
            schedule.first_time(first) if first else None,
            self.order.count,
            datetime.datetime.fromisoformat(self.made),
            now,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Note:
    """What is going on while a trigger is made, or made again.

    It is written down before anything changes in Mistral, so that whoever
    finds it after a crash knows how to go on.

    :ivar order: what is going to be made.
    :ivar wanted: what the template says about that.
    :ivar old: what has to be removed before, and put back if need be.
    """

    order: Order
    wanted: Wanted
    old: Trigger | None = None


def dumps(value: Record | Note) -> str:
    """Write a record or a note down."""
    return json.dumps(dataclasses.asdict(value), sort_keys=True)


def read_record(text: str) -> Record:
    """Read what :func:`dumps` has written."""
    found = json.loads(text)
    return Record(
        id=found['id'],
        wanted=Wanted(**found['wanted']),
        order=Order(**found['order']),
        made=found['made'],
    )


def read_note(text: str) -> Note:
    """Read what :func:`dumps` has written."""
    found = json.loads(text)
    old = found['old']
    return Note(
        order=Order(**found['order']),
        wanted=Wanted(**found['wanted']),
        old=Trigger(**old) if old else None,
    )


@dataclasses.dataclass(frozen=True)
class Keep:
    """The trigger is as it should be."""


@dataclasses.dataclass(frozen=True)
class Done:
    """All runs have been; there is nothing to make."""


@dataclasses.dataclass(frozen=True)
class Wait:
    """A run is about to begin; look again in so many seconds."""

    seconds: int


Plan = Keep | Done | Wait | Order


def plan(
    wanted: Wanted,
    before: Wanted | None,
    live: Trigger | None,
    now: datetime.datetime,
    *,
    lost: Trigger | None = None,
    ran_out: bool = False,
    anew: bool = False,
) -> Plan:
    """Decide what becomes of a trigger.

    :param before: what the template said when the trigger was made.
    :param live: the trigger in Mistral, if it is there.
    :param lost: what was there, and could not be put back.
    :param ran_out: it is not there because its last run has been.
    :param anew: make it again even if nothing has changed.
    :raises Refused: if the template asks for what cannot be.
    :raises schedule.ScheduleError: likewise.
    """
    if live is not None and wanted == before and not anew:
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
        if live is not None and first < now + schedule.NOTICE + _MARGIN:
            if first < now - _PATIENCE:
                raise Refused(
                    f'the run that was due at {schedule.show(first)} has '
                    f'not begun; does the cron of Mistral run?'
                )
            return Wait(_SOON)
        if live is None and first <= now:
            return Done()
    if first is not None:
        ahead = _first(wanted, first, live, now, fresh)
        if isinstance(ahead, Wait):
            return ahead
        first = ahead
    if wanted.pattern:
        schedule.upcoming(wanted.pattern, now)
    if live is not None and _about_to_run(live, count, now):
        return Wait(_SOON)
    return Order(
        name=wanted.name,
        workflow=wanted.workflow,
        input=wanted.input,
        params=wanted.params,
        pattern=wanted.pattern,
        first_time=_text(first),
        count=count,
    )


def _count(
    wanted: Wanted,
    before: Wanted | None,
    known: Trigger | None,
    ran_out: bool,
) -> int | None:
    """Return how many runs are left; an unchanged count is carried on."""
    if wanted.count is None or before is None or before.count != wanted.count:
        return wanted.count
    if known is not None and known.remaining is not None:
        return known.remaining
    return 0 if ran_out else wanted.count


def _first(
    wanted: Wanted,
    first: datetime.datetime,
    live: Trigger | None,
    now: datetime.datetime,
    fresh: bool,
) -> datetime.datetime | Wait | None:
    """Return the first time to ask for; None if the pattern will do."""
    margin = _MARGIN if live is not None else datetime.timedelta()
    if first >= now + schedule.NOTICE + margin:
        return first
    if wanted.pattern:
        if first <= now:
            return None
        if schedule.upcoming(wanted.pattern, now, 1) == (first,):
            return None
        if live is not None and not fresh:
            return Wait(_SOON)
    raise Refused(
        f'the first time {schedule.show(first)} '
        + ('has passed' if first <= now else 'is less than a minute ahead')
        + f' (it is {schedule.show(now)}); Mistral wants to know it at '
        f'least a minute before' + _what_else(wanted, now)
    )


def _what_else(wanted: Wanted, now: datetime.datetime) -> str:
    if not wanted.pattern:
        return '.'
    coming = schedule.show(*schedule.upcoming(wanted.pattern, now))
    return f'. By the pattern alone the next runs would be {coming}.'


def _about_to_run(
    live: Trigger, count: int | None, now: datetime.datetime
) -> bool:
    """Say whether removing it now might lose or repeat a run."""
    due = live.next()
    if count is None or live.remaining is None or due is None:
        return False
    if live.pattern:
        # Where it always is about to run, waiting helps nobody.
        (after,) = schedule.upcoming(live.pattern, due, 1)
        if after - due < _MARGIN * 3:
            return False
    # What is long overdue waits for a Mistral that lags, not for us.
    return -_MARGIN < due - now <= schedule.EARLY


def _map(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        value = json.loads(value) if value else {}
    return value if isinstance(value, Mapping) else {}


def _time(text: str | None) -> datetime.datetime | None:
    """Read a time that Mistral writes, with or without its seconds."""
    if not text:
        return None
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=None)


def _text(first: datetime.datetime | None) -> str | None:
    if first is None:
        return None
    return first.strftime(schedule.FIRST_TIME_FORMAT)


def check_input(
    workflow: str, declared: Any, given: Mapping[str, Any]
) -> None:
    """Check an input against what a workflow declares.

    :param declared: the list of its inputs, as in its definition: a name,
        or a map from the name to a default.
    :raises Refused: as Mistral would, when it is too late.
    """
    if not isinstance(declared, list):
        return
    required = {one for one in declared if isinstance(one, str)}
    optional = {
        name for one in declared if isinstance(one, Mapping) for name in one
    }
    missing = sorted(required - given.keys())
    if missing:
        raise Refused(
            f'the workflow "{workflow}" needs the input '
            f'{_quoted(missing)}, which is not given.'
        )
    unknown = sorted(given.keys() - required - optional)
    if unknown:
        raise Refused(
            f'the workflow "{workflow}" has no input {_quoted(unknown)}; '
            f'it has {_quoted(sorted(required | optional)) or "none"}.'
        )


def _quoted(names: list[str]) -> str:
    return ', '.join(f'"{name}"' for name in names)
