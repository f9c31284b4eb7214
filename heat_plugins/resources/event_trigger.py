# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::EventTrigger."""

from collections import abc
import json

from heat.common.i18n import _
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral.executions import outcome
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import trigger_change
from heat_plugins.mistral.triggers import trigger_plan
from heat_plugins.resources import schemas
from heat_plugins.resources.workflows import mistral_calls

# That Mistral was asked for it, and has not answered.
_BEGUN = 'begun'

_COLUMN = constraints.Length(min=1, max=80)


class EventTrigger(
    mistral_calls.Stepwise, mistral_calls.TrustingCalls, resource.Resource
):
    """Runs a workflow when a service of the cloud sends a notification.

    Mistral's event engine receives notifications of services over the
    message broker, and runs the workflow for those of the stack's project.
    The workflow reads the event in its ``event_params``. An update changes
    the name, the workflow, its input and its params in place; other changes
    replace the trigger.
    """

    support_status = mistral_calls.NOT_HEATS

    entity = 'event_triggers'

    # What Mistral has room for.
    physical_resource_name_limit = 200

    PROPERTIES = (NAME, EXCHANGE, TOPIC, EVENT, WORKFLOW) = (
        'name',
        'exchange',
        'topic',
        'event',
        'workflow',
    )

    #: What there is one trigger of, for one workflow of a project.
    PLACE = (EXCHANGE, TOPIC, EVENT)

    properties_schema = {
        NAME: schemas.text(
            _(
                'Name of the event trigger; it need not be unique. Default: '
                'a generated name.'
            ),
            constraints=[constraints.Length(min=1, max=200)],
        ),
        EXCHANGE: properties.Schema(
            properties.Schema.STRING,
            _(
                'Exchange of the message broker to which the service sends: '
                'its control_exchange, such as "nova".'
            ),
            required=True,
            constraints=[_COLUMN],
        ),
        TOPIC: properties.Schema(
            properties.Schema.STRING,
            _(
                'Topic of the notifications, such as "notifications": one of '
                "the service's [oslo_messaging_notifications] topics."
            ),
            required=True,
            constraints=[_COLUMN],
        ),
        EVENT: properties.Schema(
            properties.Schema.STRING,
            _('Type of the event, such as "compute.instance.create.end".'),
            required=True,
            constraints=[_COLUMN],
        ),
        WORKFLOW: schemas.CALLED,
    }

    def validate(self) -> None:
        """Validate as Heat does, then check that the workflow exists.

        :raises StackValidationFailed: it does not, or the properties are
            invalid.
        """
        super().validate()
        try:
            name, _, _ = cron_triggers.called(self.properties[self.WORKFLOW])
        except cron_triggers.TriggerRefused as exc:
            if not self.pending(self.WORKFLOW):
                raise self.invalid(self.WORKFLOW, exc) from exc
            return
        self.validate_workflow(self.WORKFLOW, name)

    # What is done ---------------------------------------------------------

    def check_create_complete(self, budget: calling.RetryBudget) -> bool:
        return self._make(budget, self.properties)

    def check_update_complete(
        self, begun: tuple[calling.RetryBudget, heat_types.Properties]
    ) -> bool:
        budget, after = begun
        if self._mine(budget) is None:
            return self._make(budget, after)
        values = self._values(budget, after)
        self.ask(
            budget,
            'cannot change the event trigger',
            # mistralclient has no name for it.
            self._calls._update,
            f'/event_triggers/{self.resource_id}',
            {
                **values,
                'workflow_input': json.dumps(values['workflow_input']),
                'workflow_params': json.dumps(values['workflow_params']),
            },
        )
        return True

    def check_check_complete(self, budget: calling.RetryBudget) -> bool:
        if self._mine(budget) is None:
            raise errors.ServiceError(
                'the event trigger is no longer in Mistral; an update of '
                'the stack creates it again.'
            )
        return True

    def check_delete_complete(self, budget: calling.RetryBudget) -> bool:
        identifier = self.resource_id
        if identifier is None and _BEGUN in self.data():
            identifier = self._begun(budget)
        if identifier is not None:
            self.find(
                budget,
                'cannot delete the event trigger',
                self._calls.delete,
                identifier,
            )
        return True

    def _begun(self, budget: calling.RetryBudget) -> str | None:
        """Return the ID of a trigger whose creation got no answer."""
        try:
            values = self._values(budget, self.properties)
        except cron_triggers.TriggerRefused:
            return None
        row = self._same(budget, self.properties, values)
        if row is None or not _matches(row, values):
            return None
        return str(row.id)

    def _make(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> bool:
        values = self._values(budget, props)
        row = self._same(budget, props, values)
        if row is None:
            self.data_set(_BEGUN, 'yes')
            try:
                row = self.ask(
                    budget,
                    'cannot create the event trigger',
                    self._calls.create,
                    **values,
                    **{name: props[name] for name in self.PLACE},
                )
            except errors.ServiceError as exc:
                if not isinstance(exc, errors.Unavailable):
                    self.data_delete(_BEGUN)
                raise
        elif _BEGUN not in self.data() or not _matches(row, values):
            raise cron_triggers.TriggerRefused(
                f'the event trigger "{row.name}" of this project already '
                'runs the workflow on this event; Mistral refuses a second '
                'one.'
            )
        self.resource_id_set(row.id)
        self.data_delete(_BEGUN)
        return True

    def _values(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> dict[str, object]:
        """Return the changeable values of a trigger, checked."""
        name, given, params = cron_triggers.called(props[self.WORKFLOW])
        workflow = self.find(
            budget,
            'cannot read the workflow',
            self.client().workflows.get,
            name,
        )
        if workflow is None:
            raise cron_triggers.TriggerRefused(
                f'there is no workflow "{name}".'
            )
        trigger_plan.check_input(
            name, trigger_change.declared(workflow), given
        )
        return {
            'name': props[self.NAME] or self.physical_resource_name(),
            'workflow_id': workflow.id,
            'workflow_input': given,
            'workflow_params': params,
        }

    # What is seen ---------------------------------------------------------

    @property
    def _calls(self) -> mistral_api.Manager:
        return self.client().event_triggers

    def _mine(self, budget: calling.RetryBudget) -> mistral_api.Row | None:
        """Return the trigger, if it exists."""
        if self.resource_id is None:
            return None
        return self.find(
            budget,
            'cannot read the event trigger',
            self._calls.get,
            self.resource_id,
        )

    def _same(
        self,
        budget: calling.RetryBudget,
        props: heat_types.Properties,
        values: abc.Mapping[str, object],
    ) -> mistral_api.Row | None:
        """Return the project's trigger for an event and a workflow."""
        rows = self.ask(
            budget,
            'cannot list the event triggers',
            # Mistral 23 answers 500 to every filter.
            self._calls.list,
        )
        wanted = {
            # Public ones of other projects are among them.
            'project_id': self.context.project_id,
            'workflow_id': values['workflow_id'],
            **{name: props[name] for name in self.PLACE},
        }
        for row in rows:
            if wanted.items() <= vars(row).items():
                return row
        return None


def _matches(row: mistral_api.Row, values: abc.Mapping[str, object]) -> bool:
    """Say whether a trigger has the requested values."""
    return bool(
        row.name == values['name']
        and outcome.mapping(row.workflow_input) == values['workflow_input']
        and outcome.mapping(row.workflow_params) == values['workflow_params']
    )
