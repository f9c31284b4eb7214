# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger."""

from collections import abc
from typing import ClassVar, TypeAlias

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine.resources.openstack.mistral import cron_trigger

from heat_plugins.engine import heat_types
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule
from heat_plugins.mistral.triggers import trigger_change
from heat_plugins.mistral.triggers import trigger_steps
from heat_plugins.resources import schemas
from heat_plugins.resources.workflows import mistral_calls

_Base: TypeAlias = cron_trigger.CronTrigger


class CronTrigger(mistral_calls.TrustingCalls, mistral_calls.Mended, _Base):
    """Runs a workflow by the clock.

    ``pattern`` is a pattern of crontab, ``first_time`` the first run or,
    without a pattern, the only one, and ``count`` the number of runs. All
    times are UTC.

    It extends Heat's own class: the workflow may be a text, and have params.
    An update deletes the trigger in Mistral and creates another one.
    heat-engine first checks all that it can; if Mistral refuses the new
    trigger, it restores the old one, after a crash with the next action. An
    unchanged count keeps the remaining runs. With a pattern, a first time that
    has passed is ignored. After the last run Mistral deletes the trigger, and
    the resource stays complete.
    """

    ATTRIBUTES = (*_Base.ATTRIBUTES, 'upcoming_executions')
    UPCOMING_EXECUTIONS = 'upcoming_executions'

    properties_schema = {
        _Base.NAME: schemas.text(
            _(
                'Name of the cron trigger, unique in the project. Default: a '
                'generated name.'
            )
        ),
        _Base.PATTERN: schemas.text(
            _(
                'When to run, in UTC: minute, hour, day of month, month and '
                'day of week, as in crontab.'
            )
        ),
        # The map is checked below, as Heat's own class does it.
        _Base.WORKFLOW: schemas.CALLED,
        _Base.FIRST_TIME: schemas.text(
            _(
                'Time of the first run in UTC, in format "YYYY-MM-DD HH:MM", '
                'at least a minute ahead. Without a pattern it is the only '
                'run. With a pattern, updates ignore a time that has passed.'
            )
        ),
        _Base.COUNT: schemas.number(
            _(
                'Number of runs. An update that does not change it keeps the '
                'remaining runs; one that changes it starts the count again.'
            ),
            constraints=[constraints.Range(min=1)],
        ),
    }

    # Heat must not cache attributes that change by themselves.
    _ATTRIBUTES: ClassVar = {
        _Base.NEXT_EXECUTION_TIME: schemas.live(
            attributes.Schema.STRING,
            _(
                'Time of the next run in UTC, in format "YYYY-MM-DD '
                'HH:MM:SS"; null when there is none.'
            ),
        ),
        _Base.REMAINING_EXECUTIONS: schemas.live(
            attributes.Schema.INTEGER,
            _(
                'Number of remaining runs; 0 after the last one, null '
                'without a count.'
            ),
        ),
        UPCOMING_EXECUTIONS: schemas.live(
            attributes.Schema.LIST,
            _(
                'Times of up to three next runs, in UTC, as in "2030-12-31 '
                '23:59 UTC".'
            ),
        ),
    }

    attributes_schema = schemas.AttributesSchema(
        _Base.attributes_schema, _ATTRIBUTES
    )

    # What the template says -----------------------------------------------

    def validate(self) -> None:
        """Validate as Heat does, then check the schedule and the workflow.

        :raises StackValidationFailed: they are invalid.
        """
        super().validate()
        try:
            called = cron_triggers.called(self.properties[self.WORKFLOW])
        except cron_triggers.TriggerRefused as exc:
            if not self.pending(self.WORKFLOW):
                raise self.invalid(self.WORKFLOW, exc) from exc
            called = None
        self._validate_schedule()
        if called:
            # Its input is checked when the trigger is made: this very
            # update may be about to change what the workflow takes.
            self.validate_workflow(self.WORKFLOW, called[0])

    def _validate_schedule(self) -> None:
        pattern = self.properties[self.PATTERN]
        first_time = self.properties[self.FIRST_TIME]
        count = self.properties[self.COUNT]
        prop = self.PATTERN
        try:
            if pattern:
                schedule.upcoming(pattern, schedule.now())
            prop = self.FIRST_TIME
            if first_time:
                schedule.first_time(first_time)
        except schedule.ScheduleError as exc:
            if not self.pending(prop):
                raise self.invalid(prop, exc) from exc
        many = not pattern and count is not None and count > 1
        if many and not self.pending(self.PATTERN, self.COUNT):
            raise self.invalid(
                self.COUNT,
                f'{count} runs need a pattern; a first time without a '
                'pattern gives one run.',
            )

    def _wanted(
        self, props: heat_types.Properties
    ) -> cron_triggers.TriggerOrder:
        """Return the trigger that properties describe."""
        name, given, params = cron_triggers.called(props[self.WORKFLOW])
        return cron_triggers.TriggerOrder(
            name=props[self.NAME] or self.physical_resource_name(),
            workflow=name,
            input=given,
            params=params,
            pattern=props[self.PATTERN] or None,
            first_time=props[self.FIRST_TIME] or None,
            count=props[self.COUNT],
        )

    # What is done ---------------------------------------------------------

    def handle_create(self) -> trigger_change.TriggerChange:
        return trigger_change.TriggerChange(
            self,
            self._wanted(self.properties),
        )

    def check_create_complete(
        self, change: trigger_change.TriggerChange
    ) -> bool:
        return change.step()

    def handle_create_cancel(
        self, change: trigger_change.TriggerChange
    ) -> None:
        change.give_up()

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: abc.Mapping[str, object],
    ) -> trigger_change.TriggerChange:
        after = json_snippet.properties(self.properties_schema, self.context)
        return trigger_change.TriggerChange(
            self,
            self._wanted(after),
            before=self._before(),
            recreate=self._state_before == (self.CHECK, self.FAILED),
        )

    def check_update_complete(
        self, change: trigger_change.TriggerChange
    ) -> bool:
        return change.step()

    def handle_update_cancel(
        self, change: trigger_change.TriggerChange
    ) -> None:
        change.give_up()

    def handle_check(self) -> trigger_steps.Check:
        return trigger_steps.Check(self, before=self._before())

    def check_check_complete(self, check: trigger_steps.Check) -> bool:
        return check.step()

    def handle_delete(self) -> trigger_steps.TriggerRemoval:
        return trigger_steps.TriggerRemoval(self, before=self._before())

    def check_delete_complete(
        self, removal: trigger_steps.TriggerRemoval | None
    ) -> bool:
        return removal is None or removal.step()

    def _before(self) -> cron_triggers.TriggerOrder | None:
        """Return the order of the existing trigger, be it by Heat's class."""
        if self.resource_id is None:
            return None
        try:
            return self._wanted(self.properties)
        except (cron_triggers.TriggerRefused, ValueError):
            return None

    # What is seen ---------------------------------------------------------

    def _resolve_attribute(self, name: str) -> object:
        if self.resource_id is None:
            return None
        seen = trigger_steps.find_live(self, self._before())
        if seen is None:
            return None
        trigger, ran_out = seen
        if name == self.REMAINING_EXECUTIONS:
            if trigger is None:
                return 0 if ran_out else None
            return trigger.remaining
        if name == self.NEXT_EXECUTION_TIME:
            return trigger.next_time if trigger else None
        return trigger_steps.upcoming(trigger) if trigger else []
