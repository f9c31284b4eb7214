# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger."""

from collections import abc
import dataclasses
from typing import Any, ClassVar, TypeAlias

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine.resources.openstack.mistral import cron_trigger

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral import outcome
from heat_plugins.mistral import triggers
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_calls

_Base: TypeAlias = cron_trigger.CronTrigger


@dataclasses.dataclass
class _Replacement:
    """An update of a trigger, which Mistral cannot change.

    :ivar order: the trigger to create, as mistralclient takes it.
    :ivar keeps_count: whether the remaining runs go on.
    :ivar former: the order that creates the deleted trigger again.
    """

    budget: calling.RetryBudget
    order: dict[str, Any]
    keeps_count: bool
    former: dict[str, Any] | None = None
    has_deleted: bool = False


class CronTrigger(mistral_calls.MistralObject, _Base):
    """Runs a workflow by the clock.

    ``pattern`` is a pattern of crontab, ``first_time`` the first run or,
    without a pattern, the only one, and ``count`` the number of runs. All
    times are UTC.

    It extends Heat's own class: the workflow may be a text, and have params.
    An update replaces the trigger. If it has a ``name``, heat-engine deletes
    it in Mistral and creates another one of that name; an unchanged count
    keeps the remaining runs, and if Mistral refuses the new trigger,
    heat-engine creates the former one again. With a pattern, a first time that
    has passed is ignored. After the last run Mistral deletes the trigger, and
    the resource stays complete.
    """

    KIND = 'cron trigger'

    UPCOMING_EXECUTIONS = 'upcoming_executions'

    properties_schema = {
        _Base.NAME: bases.text(
            _(
                'Name of the cron trigger, unique in the project. Default: a '
                'generated name.'
            )
        ),
        _Base.PATTERN: bases.text(
            _(
                'When to run, in UTC: minute, hour, day of month, month and '
                'day of week, as in crontab.'
            ),
            constraints=[constraints.CustomConstraint('cron_expression')],
        ),
        # The map is checked below, as Heat's own class does it.
        _Base.WORKFLOW: bases.CALLED,
        _Base.FIRST_TIME: bases.text(
            _(
                'Time of the first run in UTC, in format "YYYY-MM-DD HH:MM", '
                'at least a minute ahead. Without a pattern it is the only '
                'run. With a pattern, updates ignore a time that has passed.'
            )
        ),
        _Base.COUNT: bases.number(
            _(
                'Number of runs. An update that does not change it keeps the '
                'remaining runs; one that changes it starts the count again.'
            ),
            constraints=[constraints.Range(min=1)],
        ),
    }

    # Heat must not cache attributes that change by themselves.
    _ATTRIBUTES: ClassVar = {
        _Base.NEXT_EXECUTION_TIME: bases.live(
            attributes.Schema.STRING,
            _(
                'Time of the next run in UTC, in format "YYYY-MM-DD '
                'HH:MM:SS"; null when there is none.'
            ),
        ),
        _Base.REMAINING_EXECUTIONS: bases.live(
            attributes.Schema.INTEGER,
            _(
                'Number of remaining runs; 0 after the last one, null '
                'without a count.'
            ),
        ),
        UPCOMING_EXECUTIONS: bases.live(
            attributes.Schema.LIST,
            _(
                'Times of up to three next runs, in UTC, as in "2030-12-31 '
                '23:59 UTC".'
            ),
        ),
    }

    attributes_schema = bases.AttributesSchema(
        _Base.attributes_schema, _ATTRIBUTES
    )

    def validate(self) -> None:
        """Validate as Heat does, then check the workflow.

        :raises StackValidationFailed: it is invalid, or does not exist.
        """
        super().validate()
        self.validate_called(self.WORKFLOW)

    def needs_replace_with_prop_diff(
        self,
        changed_properties_set: abc.Collection[str],
        after_props: heat_types.Properties,
        before_props: heat_types.Properties,
    ) -> bool:
        """Say whether an update replaces the trigger."""
        # A replacement is created before the former trigger is deleted, but
        # cannot have its name.
        return bool(changed_properties_set) and (
            self.NAME in changed_properties_set or not after_props[self.NAME]
        )

    def _order(self, props: heat_types.Properties) -> dict[str, Any]:
        """Return the arguments of Mistral's client to create the trigger."""
        workflow, given, params = triggers.called(props[self.WORKFLOW])
        pattern, first_time = props[self.PATTERN], props[self.FIRST_TIME]
        return {
            'name': props[self.NAME] or self.physical_resource_name(),
            'workflow_identifier': workflow,
            'workflow_input': given,
            'workflow_params': params,
            'pattern': pattern or None,
            'first_time': _future(first_time) if pattern else first_time,
            'count': props[self.COUNT],
        }

    def check_create_complete(self, budget: calling.RetryBudget) -> bool:
        """Make the cron trigger in Mistral."""
        order = self._order(self.properties)
        self.make(budget, order['name'], **order)
        return True

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: abc.Mapping[str, object],
    ) -> _Replacement | None:
        """Plan to replace the trigger, which Mistral cannot change."""
        if not prop_diff and self._state_before[1] != self.FAILED:
            return None
        budget, after = super().handle_update(
            json_snippet, tmpl_diff, prop_diff
        )
        return _Replacement(
            budget=budget,
            order=self._order(after),
            keeps_count=self.COUNT not in prop_diff,
        )

    def check_update_complete(self, update: _Replacement | None) -> bool:
        """Delete the trigger and create another one of its name.

        If Mistral refuses that one, create the former one again.
        """
        if update is None:
            return True
        if not update.has_deleted:
            row = self.row(update.budget, self.resource_id)
            if row is not None:
                update.former = _again(row)
                if update.keeps_count and update.order['count'] is not None:
                    update.order['count'] = row.remaining_executions
            super().check_delete_complete(update.budget)
            update.has_deleted = True
        try:
            self.make(update.budget, update.order['name'], **update.order)
        except errors.ServiceError as exc:
            if update.former is None:
                raise
            try:
                self.make(
                    calling.RetryBudget(0),
                    update.former['name'],
                    **update.former,
                )
                text = 'The former trigger has been created again.'
            except errors.ServiceError as lost:
                text = (
                    f'The former trigger is deleted, and {lost} The next '
                    'update of the stack creates the trigger.'
                )
            raise type(exc)(f'{exc} {text}', exc.status) from exc
        return True

    def check_check_complete(self, budget: calling.RetryBudget) -> bool:
        return self._is_finite() or super().check_check_complete(budget)

    def _is_finite(self) -> bool:
        """Say whether Mistral deletes the trigger itself, after its runs."""
        props = self.properties
        return props[self.COUNT] is not None or not props[self.PATTERN]

    def attribute(self, name: str, row: mistral_api.Row | None) -> object:
        """Return an attribute; of a trigger that has gone, what is known."""
        if row is None:
            missing: dict[str, object] = {self.UPCOMING_EXECUTIONS: []}
            if self._is_finite():
                missing[self.REMAINING_EXECUTIONS] = 0
            return missing.get(name)
        if name == self.UPCOMING_EXECUTIONS:
            return triggers.upcoming(
                row.pattern,
                triggers.time(row.next_execution_time),
                row.remaining_executions,
            )
        return getattr(row, name)


def _future(first_time: str | None) -> str | None:
    """Return a first time unless it has passed: Mistral refuses it then."""
    time = triggers.time(first_time)
    return None if time and time <= triggers.now() else first_time


def _again(row: mistral_api.Row) -> dict[str, Any]:
    """Return the order that creates a trigger again."""
    first_time = row.first_execution_time
    first_time = first_time[:16] if first_time else None
    return {
        'name': row.name,
        'workflow_identifier': row.workflow_id,
        'workflow_input': outcome.mapping(row.workflow_input),
        'workflow_params': outcome.mapping(row.workflow_params),
        'pattern': row.pattern,
        'first_time': _future(first_time) if row.pattern else first_time,
        'count': row.remaining_executions,
    }
