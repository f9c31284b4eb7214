# SPDX-License-Identifier: Apache-2.0
"""Cron triggers: as a template wants them, in Mistral, and in our records."""

import base64
from collections.abc import Mapping
import dataclasses
import datetime
import json
from typing import Any, Final
import zlib

from heat_plugins import absences
from heat_plugins import bounds
from heat_plugins import stored
from heat_plugins.mistral.executions import outcome
from heat_plugins.mistral.triggers import schedule

#: Between two requests some time passes, also on a busy cloud.
MARGIN: Final = datetime.timedelta(seconds=10)

# How late a trigger may fire: the periodic process polls at intervals.
_OVERDUE: Final = datetime.timedelta(minutes=5)

# Characters of a trigger's name in the text of an event.
_SHOWN: Final = 40


_CALLED: Final = ('name', 'input', 'params')


class TriggerRefused(ValueError):
    """A template asks for an impossible trigger; the message says why."""


def called(value: object) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return the name, the input and the params of a trigger's workflow.

    :param value: the name, or a map with these three.
    :raises TriggerRefused: it is neither.
    """
    if isinstance(value, str):
        value = {'name': value}
    if not isinstance(value, Mapping):
        raise TriggerRefused(
            'the workflow must be a text, or a map with "name".'
        )
    unknown = sorted(str(key) for key in value.keys() - set(_CALLED))
    if unknown:
        raise TriggerRefused(
            f'the workflow has no key "{bounds.shortened(unknown[0])}"; '
            f'known keys: {", ".join(_CALLED)}.'
        )
    name = value.get('name')
    if not isinstance(name, str) or not name:
        raise TriggerRefused('the workflow needs a "name".')
    for key in _CALLED[1:]:
        if not isinstance(value.get(key) or {}, Mapping):
            raise TriggerRefused(f'"{key}" of the workflow must be a map.')
    return (
        name,
        dict(value.get('input') or {}),
        dict(value.get('params') or {}),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LiveTrigger:
    """A trigger that exists in Mistral.

    :ivar next_time: of its next run, as Mistral writes it.
    :ivar remaining: how many runs remain; None for no limit.
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
    def from_row(cls, row: Mapping[str, Any]) -> 'LiveTrigger':
        """Read a row of Mistral's API."""
        return cls(
            id=row['id'],
            name=row['name'],
            workflow_name=row.get('workflow_name') or '',
            workflow_id=row.get('workflow_id') or '',
            input=outcome.mapping(row.get('workflow_input')),
            params=outcome.mapping(row.get('workflow_params')),
            pattern=row.get('pattern') or None,
            first_time=row.get('first_execution_time') or None,
            next_time=row.get('next_execution_time') or None,
            remaining=row.get('remaining_executions'),
        )

    def next(self) -> datetime.datetime | None:
        """Return the time of its next run."""
        return time(self.next_time)

    def again(self, now: datetime.datetime) -> 'TriggerOrder':
        """Return the order that restores this trigger later.

        Runs that it misses meanwhile become one run at the next minute, unless
        the pattern makes up for them; Mistral does the same when it is late.
        """
        first = time(self.first_time)
        if first is not None and first < now + schedule.NOTICE + MARGIN:
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

    def _order(self, first: datetime.datetime | None) -> 'TriggerOrder':
        return TriggerOrder(
            name=self.name,
            # By its name a workflow is found again that was deleted and
            # recreated in between.
            workflow=self.workflow_name or self.workflow_id,
            input=self.input,
            params=self.params,
            pattern=self.pattern,
            first_time=first_time_text(first),
            count=self.remaining,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TriggerOrder:
    """A trigger to create, from a template or a request to Mistral.

    :ivar first_time: as in "2030-12-31 23:59", in UTC.
    :ivar count: how many runs from now on; None for no limit.
    """

    name: str
    workflow: str
    input: Mapping[str, Any]
    params: Mapping[str, Any]
    pattern: str | None
    first_time: str | None
    count: int | None

    def first(self) -> datetime.datetime | None:
        """Read the first time.

        :raises schedule.ScheduleError: it is invalid.
        """
        if not self.first_time:
            return None
        return schedule.first_time(self.first_time)

    def matches(self, trigger: LiveTrigger) -> bool:
        """Say whether a trigger can be the result of this order.

        So a trigger is recognised whose creation got no answer.
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
class TriggerRecord:
    """The record of a trigger that was created.

    :ivar id: Mistral's, which no later trigger of that name has.
    :ivar wanted: the template's order.
    :ivar order: the order that Mistral got.
    :ivar made: when it was created, in ISO 8601.
    """

    id: str
    wanted: TriggerOrder
    order: TriggerOrder
    made: str

    def has_expired(self, now: datetime.datetime) -> bool:
        """Say whether it may already have had all of its runs."""
        return schedule.has_expired(
            self.order.pattern,
            self.order.first(),
            self.order.count,
            datetime.datetime.fromisoformat(self.made),
            now,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Note:
    """The change in progress of a trigger that is created or replaced.

    It is stored before any change in Mistral, so that an engine can resume the
    change after a crash.

    :ivar order: the trigger to create.
    :ivar wanted: the template's order for it.
    :ivar old: the trigger to remove first, and to restore on failure.
    """

    order: TriggerOrder
    wanted: TriggerOrder
    old: LiveTrigger | None = None


# Heat's database has 64 KB for it, and encryption takes a third of that.
_LONG: Final = 20000
_PACKED: Final = 'zlib:'


def dumps(value: TriggerRecord | Note) -> str:
    """Write a record or a note as text, compressed if it is long."""
    text = json.dumps(dataclasses.asdict(value), sort_keys=True)
    if len(text) < _LONG:
        return text
    return _PACKED + base64.b85encode(zlib.compress(text.encode())).decode()


def _loads(text: str) -> Any:
    if text.startswith(_PACKED):
        packed = base64.b85decode(text[len(_PACKED) :])
        text = zlib.decompress(packed).decode()
    return json.loads(text)


def read_record(text: str) -> TriggerRecord:
    """Read what :func:`dumps` has written."""
    return stored.read(TriggerRecord, _loads(text))


def read_note(text: str) -> Note:
    """Read what :func:`dumps` has written."""
    return stored.read(Note, _loads(text))


def time(text: str | None) -> datetime.datetime | None:
    """Read a time of Mistral, with or without seconds."""
    if not text:
        return None
    try:
        parsed = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed.replace(tzinfo=None)


def none_fires(row: Mapping[str, Any], now: datetime.datetime) -> str | None:
    """Return what the trigger that is due first tells of all, if it is bad.

    A periodic process of Mistral sets the time of a trigger forward even if
    its workflow cannot be started.

    :param row: of Mistral's API.
    :param now: in UTC, without a zone.
    :returns: the reason and the remedy; None if the trigger is not overdue.
    """
    due = time(row.get('next_execution_time'))
    if due is None or due + _OVERDUE > now:
        return None
    name = bounds.shortened(str(row.get('name')), _SHOWN)
    return absences.periodic_process(name, due)


def first_time_text(first: datetime.datetime | None) -> str | None:
    """Write a first time in Mistral's format."""
    if first is None:
        return None
    return first.strftime(schedule.FIRST_TIME_FORMAT)
