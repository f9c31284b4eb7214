# SPDX-License-Identifier: Apache-2.0
"""Create or replace a cron trigger."""

from collections import abc
import contextlib
import dataclasses
from typing import Any, NoReturn, TypeAlias

from heat_plugins import errors
from heat_plugins.mistral import calling
from heat_plugins.mistral.executions import outcome
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule
from heat_plugins.mistral.triggers import trigger_plan
from heat_plugins.mistral.triggers import trigger_steps

#: Returns the next one, or None at the end.
_Stage: TypeAlias = abc.Callable[[], Any]


class TriggerChange(trigger_steps.Steps):
    """Creates or replaces a trigger."""

    def __init__(
        self,
        resource: calling.Caller,
        wanted: cron_triggers.TriggerOrder,
        before: cron_triggers.TriggerOrder | None = None,
        recreate: bool = False,
    ) -> None:
        """Prepare the change.

        :param recreate: replace the trigger even if nothing has changed.
        """
        super().__init__(resource, before)
        self._wanted = wanted
        self._recreate = recreate
        self._stage: _Stage | None = self._begin
        # Of `_make`, for `_restore`.
        self._error: errors.ServiceError | cron_triggers.TriggerRefused

    def step(self) -> bool:
        """Take the next step; return whether all is done."""
        while self._stage is not None:
            self._stage = self._stage()
        return True

    def give_up(self) -> None:
        """Restore the former trigger, in one attempt at most."""
        if self.note is None or self.note.old is None:
            return
        if self._stage in (self._make, self._restore):
            self.budget = calling.RetryBudget(0)
            self.recover()

    @property
    def _noted(self) -> cron_triggers.Note:
        """The note; each stage but the first has one."""
        if self.note is None:
            raise RuntimeError(
                'The record of the change in progress is missing'
            )
        return self.note

    def _begin(self) -> _Stage | None:
        lost = None
        try:
            live = self.recover()
        except errors.ServiceError as exc:
            if isinstance(exc, errors.Unavailable) or not self.note:
                raise
            # The former trigger is lost, and this update replaces it.
            live, lost = None, self.note.old
        plan = trigger_plan.plan(
            self._wanted,
            self.before,
            live,
            schedule.now(),
            lost=lost,
            ran_out=live is None and self.has_expired(),
            recreate=self._recreate,
        )
        if isinstance(plan, trigger_plan.WaitForRun):
            self.resource.pause(plan.seconds)
        if isinstance(plan, cron_triggers.TriggerOrder):
            return self._prepare(plan, live, lost)
        if live is not None:
            if self.record is None:
                # Heat's own class has made it.
                order = dataclasses.replace(self._wanted, count=live.remaining)
                self.made(live, order, self._wanted)
            return None
        self._remember_end()
        return None

    def _remember_end(self) -> None:
        record = self.record
        self.save(
            cron_triggers.TriggerRecord(
                id=record.id if record else '',
                wanted=self._wanted,
                order=record.order if record else self._wanted,
                made=record.made if record else _since(self.resource),
            )
        )
        self._tell('all runs are in the past; no trigger is created')

    def _prepare(
        self,
        order: cron_triggers.TriggerOrder,
        live: cron_triggers.LiveTrigger | None,
        lost: cron_triggers.LiveTrigger | None,
    ) -> _Stage:
        """Check all that is possible while the old trigger still exists."""
        workflow = self.resource.find(
            self.budget,
            'cannot read the workflow',
            self.resource.client().workflows.get,
            order.workflow,
        )
        if workflow is None:
            raise cron_triggers.TriggerRefused(
                f'there is no workflow "{order.workflow}".'
            )
        trigger_plan.check_input(
            order.workflow, declared(workflow), order.input
        )
        ours = live is not None and live.name == order.name
        if not ours and self.by_name(order.name) is not None:
            raise cron_triggers.TriggerRefused(_taken(order.name))
        if live is not None:
            refused = self.resource.trust_refusal()
            if refused:
                raise errors.ServiceError(refused)
        self.write(
            cron_triggers.Note(
                order=order, wanted=self._wanted, old=live or lost
            )
        )
        return self._make if live is None else self._remove

    def _remove(self) -> _Stage:
        old = self._noted.old
        if old is not None:
            self.resource.find(
                self.budget,
                'cannot remove the old cron trigger',
                self.calls.delete,
                old.id,
            )
        return self._make

    def _make(self) -> _Stage | None:
        order = self._noted.order
        try:
            # A former attempt may have succeeded although its answer got lost.
            trigger = self.by_name(order.name)
            if trigger is None:
                trigger = self.post('cannot create the cron trigger', order)
            elif not order.matches(trigger):
                raise cron_triggers.TriggerRefused(_taken(order.name))
        except (errors.ServiceError, cron_triggers.TriggerRefused) as exc:
            self._error = exc
            return self._restore
        self.made(trigger, order, self._wanted)
        coming = schedule.next_runs(
            order.pattern,
            order.first(),
            order.count if order.pattern else 1,
            schedule.now(),
        )
        self._tell(
            f'next runs: {schedule.show(*coming)}'
            if coming
            else 'no more runs'
        )
        self._tell_if_none_fires()
        return None

    def _tell_if_none_fires(self) -> None:
        """Write an event if another trigger shows that none fires here."""
        # The change is done; what goes wrong now is no failure of it.
        budget, self.budget = self.budget, calling.RetryBudget(0)
        with contextlib.suppress(errors.ServiceError):
            if reason := self.none_fires():
                self.resource.tell(reason)
        self.budget = budget

    def _restore(self) -> NoReturn:
        error, note = self._error, self._noted
        reason = str(error).rstrip('.')
        passing = isinstance(error, errors.Unavailable)
        if note.old is None:
            # If its creation is uncertain, the deletion finds out.
            if not passing:
                self.forget_note()
            raise error
        if passing:
            # The wait has taken long enough.
            self.budget = calling.RetryBudget(0)
        try:
            self.put_back(note, note.old)
        except errors.ServiceError as exc:
            raise type(exc)(
                f'{reason}. The former trigger could not be restored ({exc}); '
                'the next update or check of this resource restores it.',
                exc.status,
            ) from error
        raise errors.ServiceError(
            f'{reason}. The former trigger is restored.'
        ) from error

    def _tell(self, text: str) -> None:
        self.resource.tell(f'Cron trigger: {text}'[:255])


def declared(workflow: object) -> Any:
    """Return the declared inputs of a workflow; None if unknown."""
    interface = getattr(workflow, 'interface', None)
    return outcome.mapping(interface).get('input')


def _since(resource: calling.Caller) -> str:
    made = resource.created_time or schedule.now()
    return made.replace(tzinfo=None).isoformat()


def _taken(name: str) -> str:
    return (
        f'this project already has another cron trigger "{name}"; choose '
        'another name, or leave "name" out.'
    )
