# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::EventTrigger."""

import json

from heat.common.i18n import _
from heat.engine import constraints
from heat.engine import properties

from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral import triggers
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_calls

_COLUMN = constraints.Length(min=1, max=80)


class EventTrigger(mistral_calls.MistralObject):
    """Runs a workflow when a service of the cloud sends a notification.

    Mistral's event engine receives notifications of services over the
    message broker, and runs the workflow for those of the stack's project.
    The workflow reads the event in its ``event_params``. An update changes
    the name, the workflow, its input and its params in place; other changes
    replace the trigger.
    """

    support_status = mistral_calls.NOT_HEATS

    entity = 'event_triggers'

    KIND = 'event trigger'

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
        NAME: bases.text(
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
        WORKFLOW: bases.CALLED,
    }

    def validate(self) -> None:
        """Validate as Heat does, then check that the workflow exists.

        :raises StackValidationFailed: it does not, or the properties are
            invalid.
        """
        super().validate()
        self.validate_called(self.WORKFLOW)

    def check_create_complete(self, budget: calling.RetryBudget) -> bool:
        return self._create(budget, self.properties)

    def _create(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> bool:
        """Create the event trigger, once."""
        what = 'cannot create the event trigger'
        values = self._values(budget, props)
        place = {name: props[name] for name in self.PLACE}
        row: mistral_api.Row | None = None
        if budget.is_retrying(what):
            # The answer to an earlier attempt may have got lost. Triggers of
            # other projects that are public are in the list, too.
            wanted = {
                'project_id': self.context.project_id,
                'workflow_id': values['workflow_id'],
                'name': values['name'],
                **place,
            }
            # Mistral 23 answers 500 to every filter.
            rows = self.ask(
                budget, 'cannot list the event triggers', self.calls.list
            )
            row = next(
                (r for r in rows if wanted.items() <= r.to_dict().items()),
                None,
            )
        if row is None:
            row = self.ask(budget, what, self.calls.create, **values, **place)
        self.resource_id_set(row.id)
        return True

    def check_update_complete(self, update: mistral_calls.Update) -> bool:
        """Change the event trigger in Mistral, or make it if it is gone."""
        budget, after = update
        if self.row(budget, self.resource_id) is None:
            return self._create(budget, after)
        values = self._values(budget, after)
        self.ask(
            budget,
            'cannot change the event trigger',
            self.calls.update,
            self.resource_id,
            {
                **values,
                'workflow_input': json.dumps(values['workflow_input']),
                'workflow_params': json.dumps(values['workflow_params']),
            },
        )
        return True

    def _values(
        self, budget: calling.RetryBudget, props: heat_types.Properties
    ) -> dict[str, object]:
        """Return the changeable values of a trigger."""
        name, given, params = triggers.called(props[self.WORKFLOW])
        workflow = self.ask(
            budget,
            'cannot read the workflow',
            self.client().workflows.get,
            name,
        )
        return {
            'name': props[self.NAME] or self.physical_resource_name(),
            'workflow_id': workflow.id,
            'workflow_input': given,
            'workflow_params': params,
        }
