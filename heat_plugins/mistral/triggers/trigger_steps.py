# SPDX-License-Identifier: Apache-2.0
"""The steps of a cron trigger's actions in Mistral.

A step may be repeated while Mistral fails. The resource's data outlive it: a
record of the trigger that was created, and, during a creation, a note of the
wanted trigger and of the former one.
"""

from collections import abc
import datetime
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.mistral import calling
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule

LOG = foreign.logger(__name__)

_RECORD = 'trigger'
_NOTE = 'trigger_note'


class Steps:
    """The part that all actions share.

    :ivar record: of the trigger that was created last, or None.
    :ivar note: of the change in progress, or None.
    """

    def __init__(
        self,
        resource: calling.Caller,
        before: cron_triggers.TriggerOrder | None = None,
    ) -> None:
        """Read the record and the note.

        :param before: the trigger's order where there is no record: Heat's own
            class writes none.
        """
        self.resource = resource
        self.budget = resource.retry_budget()
        self.before = before
        self.record: cron_triggers.TriggerRecord | None = None
        self.note: cron_triggers.Note | None = None
        self._load()

    def _load(self) -> None:
        data = self.resource.data()
        if _RECORD in data:
            self.record = cron_triggers.read_record(data[_RECORD])
            self.before = self.record.wanted
        note = data.get(_NOTE)
        self.note = cron_triggers.read_note(note) if note else None

    def save(self, record: cron_triggers.TriggerRecord) -> None:
        """Store the record."""
        # It may hold secrets, as inputs do.
        text = cron_triggers.dumps(record)
        self.resource.data_set(_RECORD, text, redact=True)
        self.record = record
        self.before = record.wanted

    def write(self, note: cron_triggers.Note) -> None:
        """Store the note, before any change in Mistral."""
        text = cron_triggers.dumps(note)
        self.resource.data_set(_NOTE, text, redact=True)
        self.note = note

    def forget_note(self) -> None:
        """Delete the note: the change has ended."""
        if self.note is not None:
            self.resource.data_delete(_NOTE)
            self.note = None

    @property
    def calls(self) -> Any:
        """Return mistralclient's manager of cron triggers."""
        return self.resource.client().cron_triggers

    def _ask(
        self,
        what: str,
        call: abc.Callable[..., Any],
        *arguments: Any,
        **named: Any,
    ) -> Any:
        return self.resource.ask(self.budget, what, call, *arguments, **named)

    def _by_id(self, identifier: str) -> cron_triggers.LiveTrigger | None:
        row = self.resource.find(
            self.budget,
            'cannot read the cron trigger',
            self.calls.get,
            identifier,
        )
        return (
            None
            if row is None
            else cron_triggers.LiveTrigger.from_row(vars(row))
        )

    def by_name(self, name: str) -> cron_triggers.LiveTrigger | None:
        """Return the trigger of a name, by any creator, or None."""
        rows = self._ask(
            'cannot list the cron triggers', self.calls.list, name=f'eq:{name}'
        )
        for row in rows:
            # Public ones of other projects are among them.
            if row.name == name and _is_ours(self.resource, row):
                return cron_triggers.LiveTrigger.from_row(vars(row))
        return None

    def none_fires(self) -> str | None:
        """Return why no trigger fires, if the one that is due first tells.

        :raises errors.ServiceError: Mistral does not list it.
        """
        rows = self._ask(
            'cannot list the cron triggers',
            self.calls.list,
            limit=1,
            sort_keys='next_execution_time',
            sort_dirs='asc',
        )
        now = schedule.now()
        return cron_triggers.none_fires(vars(rows[0]), now) if rows else None

    def known(self) -> cron_triggers.LiveTrigger | None:
        """Return the trigger that was created last, if it still exists."""
        if self.record is not None:
            return self._by_id(self.record.id) if self.record.id else None
        if self.resource.resource_id is not None:
            return self.by_name(self.resource.resource_id)
        return None

    def recover(self) -> cron_triggers.LiveTrigger | None:
        """Return the trigger; restore it if a crash has left none.

        :raises errors.ServiceError: Mistral refuses that.
        """
        note = self.note
        if note is None:
            return self.known()
        trigger = self.by_name(note.order.name)
        if (
            trigger is not None
            and not (note.old and trigger.id == note.old.id)
            and note.order.matches(trigger)
        ):
            self.made(trigger, note.order, note.wanted)
            return trigger
        old = self.known()
        if old is not None or note.old is None:
            self.forget_note()
            return old
        return self.put_back(note, note.old)

    def put_back(
        self, note: cron_triggers.Note, old: cron_triggers.LiveTrigger
    ) -> cron_triggers.LiveTrigger:
        """Restore the former trigger of the note."""
        order = old.again(schedule.now())
        trigger = self.by_name(order.name)
        if not trigger or not order.matches(trigger):
            trigger = self.post('cannot restore the cron trigger', order)
        self.made(trigger, order, self.before or note.wanted)
        return trigger

    def post(
        self, what: str, order: cron_triggers.TriggerOrder
    ) -> cron_triggers.LiveTrigger:
        """Create a trigger in Mistral."""
        row = self._ask(
            what,
            self.calls.create,
            order.name,
            order.workflow,
            workflow_input=dict(order.input),
            workflow_params=dict(order.params),
            pattern=order.pattern,
            first_time=order.first_time,
            count=order.count,
        )
        return cron_triggers.LiveTrigger.from_row(vars(row))

    def made(
        self,
        trigger: cron_triggers.LiveTrigger,
        order: cron_triggers.TriggerOrder,
        wanted: cron_triggers.TriggerOrder,
    ) -> None:
        """Record a trigger that was created."""
        # Its first run may be over already.
        since = schedule.now()
        due = trigger.next()
        if due is not None:
            since = min(since, due - datetime.timedelta(seconds=1))
        self.save(
            cron_triggers.TriggerRecord(
                id=trigger.id,
                wanted=wanted,
                order=order,
                made=since.isoformat(),
            )
        )
        self.resource.resource_id_set(trigger.name)
        self.forget_note()

    def has_expired(self) -> bool:
        """Say whether a missing trigger has had all its runs."""
        if self.note is not None:
            return False
        now = schedule.now()
        if self.record is not None:
            return self.record.has_expired(now)
        made = self.resource.updated_time or self.resource.created_time
        before = self.before
        if before is None or made is None:
            return False
        try:
            return schedule.has_expired(
                before.pattern,
                before.first(),
                before.count,
                made.replace(tzinfo=None),
                now,
            )
        except schedule.ScheduleError:
            return False


class Check(Steps):
    """Checks that the trigger exists, or has had its runs."""

    def step(self) -> bool:
        """Take the next step; return whether all is done."""
        if self.recover() is None and not self.has_expired():
            raise errors.ServiceError(
                'the cron trigger is no longer in Mistral, and has runs '
                'left; an update of the stack creates it again.'
            )
        return True


class TriggerRemoval(Steps):
    """Deletes the trigger; Mistral then deletes its trust."""

    def step(self) -> bool:
        """Take the next step; return whether all is done."""
        note = self.note
        if note is not None:
            trigger = self.by_name(note.order.name)
            if trigger and note.order.matches(trigger):
                self._delete(trigger.id)
            if note.old is not None:
                self._delete(note.old.id)
        if self.record is None:
            trigger = self.known()
            if trigger is not None:
                self._delete(trigger.id)
        elif self.record.id:
            self._delete(self.record.id)
        self.forget_note()
        return True

    def _delete(self, identifier: str) -> None:
        self.resource.find(
            self.budget,
            'cannot delete the cron trigger',
            self.calls.delete,
            identifier,
        )


def find_live(
    resource: calling.Caller, before: cron_triggers.TriggerOrder | None
) -> tuple[cron_triggers.LiveTrigger | None, bool] | None:
    """Return the trigger and whether it has expired; None: unknown."""
    steps = Check(resource, before)
    steps.budget = calling.RetryBudget(0)
    try:
        return steps.known(), steps.has_expired()
    except errors.ServiceError as exc:
        LOG.warning('%s: %s', resource, exc)
        return None


def upcoming(trigger: cron_triggers.LiveTrigger) -> list[str]:
    """Return the times of a trigger's next runs, for people."""
    due = trigger.next()
    if due is None:
        return []
    times = schedule.next_runs(trigger.pattern, due, trigger.remaining, due)
    return [schedule.show(time) for time in times]


def _is_ours(resource: calling.Caller, row: Any) -> bool:
    project = getattr(row, 'project_id', None)
    return project in (None, resource.project_id) or (
        getattr(row, 'scope', 'private') == 'private'
    )
