# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow."""

from collections import abc
import contextlib
import dataclasses

from heat.common import exception
from heat.engine import resource
from heat.engine.resources.openstack.mistral import workflow
from heat.objects import resource as resource_objects
from oslo_utils import timeutils

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.clients import heat_mistral
from heat_plugins.clients import mistral_workflows
from heat_plugins.deployments import signallers
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.mistral import calling
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.definitions import publishing
from heat_plugins.mistral.definitions import structured
from heat_plugins.mistral.executions import ending
from heat_plugins.mistral.executions import workflow_requests
from heat_plugins.resources.workflows import mistral_calls
from heat_plugins.resources.workflows import workflow_schema
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

#: The key of a resource's data for what it has in Mistral.
RECORD = 'workflows'

_EXECUTION_KEYS = (
    'id',
    'workflow_name',
    'state',
    'state_info',
    'input',
    'output',
    'created_at',
    'updated_at',
)


class Workflow(mistral_calls.NeedsMistral, workflow_schema.WorkflowChecks):
    """One or several workflows of Mistral, or a workbook.

    Write them either in Mistral's own language, in ``definition``, or in the
    properties of Heat's class. The same as Heat's class, but

    - heat-engine finds mistakes, with their line, when it validates the stack;
    - each signal has an event, with the ID of the execution or the reason why
      there is none;
    - an update changes the workflows in place, and running executions
      continue;
    - a delete cancels the executions that the resource has started.
    """

    default_client_name = heat_mistral.CLIENT_NAME

    properties_schema = workflow_schema.PROPERTIES

    attributes_schema = workflow_schema.ATTRIBUTES

    #: The most executions that the attribute lists.
    EXECUTIONS_LIMIT = 20

    #: The most bytes of JSON that they take together.
    EXECUTIONS_BYTES = 1000000

    #: Seconds for which passing errors of Mistral are ridden out in a call
    #: that a thread waits for. A delete goes by the operator's option.
    RETRY_SECONDS = 15

    # Definition -----------------------------------------------------------

    def _definition(
        self, props: heat_types.Properties
    ) -> definition_reading.Definition:
        """Return the definition, from its text or from the properties.

        :raises DefinitionError: it is invalid.
        """
        text = props[workflow_schema.DEFINITION]
        if text is None:
            text = structured.definition(self._own_name(props), props)
        return definition_reading.read(text)

    def _own_name(self, props: heat_types.Properties) -> str:
        # While a stack is validated that it is not part of yet, it has none.
        physical = self.physical_resource_name() or self.name
        name: str = props[self.NAME] or physical
        return name

    def _wanted(
        self, props: heat_types.Properties
    ) -> definition_records.WantedDefinition:
        definition = self._definition(props)
        explicit = props[self.NAME]
        if props[workflow_schema.DEFINITION] is None:
            explicit = self._own_name(props)
        return definition_records.WantedDefinition.of(
            definition,
            self.stack.name,
            self.name,
            explicit,
            props[self.INPUT],
        )

    def _service(self) -> mistral_workflows.Workflows:
        return mistral_workflows.Workflows(
            self.client(),
            self.context.project_id,
            self.properties[workflow_schema.NAMESPACE] or '',
        )

    # Life -----------------------------------------------------------------

    def _record(self) -> definition_records.DefinitionRecord:
        """Return the record of the resource's objects in Mistral."""
        text = self.data().get(RECORD)
        record = definition_records.DefinitionRecord.read(text)
        if text is None and self.resource_id is not None:
            # It was made by Heat's own class.
            names = {self.resource_id: self.resource_id}
            record = dataclasses.replace(record, names=names)
        if not record.mark:
            record = dataclasses.replace(record, mark=self._mark())
        return record

    def _mark(self) -> str:
        # The same in every engine.
        return (self.uuid or '').replace('-', '')[:12]

    def _save(self, record: definition_records.DefinitionRecord) -> None:
        self.data_set(RECORD, record.write())

    def _deployer(self) -> publishing.Publisher:
        return publishing.Publisher(
            self._service(), self._save, self.RETRY_SECONDS, self._own_triggers
        )

    def _own_triggers(self, names: abc.Collection[str]) -> set[str]:
        """Return which cron triggers of these names belong to this stack.

        In Heat a cron trigger's physical name is its name in Mistral. The
        stack includes all nested ones.
        """
        resources = resource_objects.Resource.get_all_by_root_stack(
            self.context,
            self.stack.root_stack_id(),
            {'physical_resource_id': list(names)},
        )
        return {
            owner.physical_resource_id
            for owner in resources.values()
            if owner.id != self.id
        }

    def _bring(self, props: heat_types.Properties) -> None:
        self._check(props)
        wanted = self._wanted(props)
        record = self._deployer().bring(self._record(), wanted)
        if record.left:
            self._tell_left(record)
        self.resource_id_set(self._id_of(record, wanted))

    def _tell_left(self, record: definition_records.DefinitionRecord) -> None:
        message = (
            'Executions or cron triggers still use former workflows; a later '
            'check or update of the stack removes them: '
            f'{bounds.listed(record.left)}'
        )
        reason = bounds.shortened(message, kinds.LIMIT)
        self._add_event(self.action, self.status, reason)

    @staticmethod
    def _id_of(
        record: definition_records.DefinitionRecord,
        wanted: definition_records.WantedDefinition,
    ) -> str:
        names = list(record.names.values())
        if len(names) == 1:
            return names[0]
        return wanted.book or names[0].rpartition('.')[0] or names[0]

    def handle_create(self) -> None:
        """Create the workflows, all or none."""
        super(workflow.Workflow, self).handle_create()
        self._bring(self.properties)

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: abc.Mapping[str, object],
    ) -> None:
        """Change the workflows in place, create new ones, remove others."""
        self._bring(
            json_snippet.properties(self.properties_schema, self.context)
        )

    def needs_replace_failed(self) -> bool:
        """Never replace: an update creates missing workflows again."""
        return False

    def _needs_update(self, *args: object, **kwargs: object) -> bool:
        # After a failure something may be missing, also if the template
        # has not changed.
        needed = super()._needs_update(*args, **kwargs)
        return bool(needed) or self.status == self.FAILED

    def get_live_resource_data(self) -> None:
        """Return None: an update creates what is missing in Mistral."""

    def handle_check(self) -> None:
        """Check that all workflows exist, and remove dropped ones."""
        record = self._record()
        if record.left or record.left_books:
            self._deployer().tidy(record)
        names = record.names.values()
        workflows = self._service().find(names)
        if missing := [name for name in names if name not in workflows]:
            raise exception.Error(
                'no longer in Mistral; an update of the stack creates them '
                f'again: {", ".join(missing)}'
            )

    def handle_delete(self) -> calling.RetryBudget:
        """Record the removal of all objects."""
        if self.data().get(RECORD) or self.resource_id is not None:
            self._save(self._record().dropped())
        return mistral_calls.retry_budget()

    def check_delete_complete(self, budget: calling.RetryBudget) -> bool:
        """End executions, remove workflows, then the user for signals."""
        record = self._record()
        try:
            if not self._remove(record):
                budget.reset()
                return False
        except errors.ServiceError as error:
            delay = budget.delay(error)
            if delay is None:
                raise
            LOG.info('%s cannot be deleted yet; retrying: %s', self, error)
            raise resource.PollDelay(delay) from error
        # What is left to Heat's own class is the user and its keys: the
        # workflow is gone, and its name may be that of a public one.
        self.resource_id_set(None)
        self.data_delete(self.EXECUTIONS)
        super().handle_delete()
        return True

    def _remove(self, record: definition_records.DefinitionRecord) -> bool:
        if not (record.all_names or record.left_books):
            return True
        service = self._service()
        if kept := publishing.refuse_if_triggered(
            service, record.left, self._own_triggers
        ):
            # They go with the stack, and may take their time.
            raise errors.Unavailable(publishing.explain_triggers(kept))
        if not self._end_executions(service, record):
            return False
        publishing.Publisher(service, self._save, 0).sweep(record)
        # Some may have started in between.
        return self._end_executions(service, record)

    def _end_executions(
        self,
        service: mistral_workflows.Workflows,
        record: definition_records.DefinitionRecord,
    ) -> bool:
        on_delete = ending.OnDelete(
            self.properties[workflow_schema.EXECUTIONS_ON_DELETE]
        )
        heats = self.data().get(self.EXECUTIONS) or ''
        return ending.end(service, record, on_delete, heats.split(','))

    # Signals --------------------------------------------------------------

    def handle_signal(self, details: object = None) -> str:
        """Run a workflow; the event names its execution, or the error."""
        entry: dict[str, object] = {
            'time': timeutils.utcnow().strftime('%Y-%m-%dT%H:%M:%SZ'),
            'workflow': None,
            'execution_id': None,
            'error': None,
            'ignored': [],
        }
        try:
            # The URL of an alarm is signed as the servers' signals are.
            signallers.check_may_start(
                callers.of(self.stack), servers_may=True
            )
            result = self._start_execution(details, entry)
        except (
            definition_reading.DefinitionError,
            workflow_requests.RunError,
            errors.Refused,
            errors.ServiceError,
        ) as error:
            entry['error'] = str(error)
            self._remember(entry)
            # Heat writes no event when a signal fails.
            reason = kinds.reason(
                kinds.EventKind.SIGNAL_FAILED, foreign.line(error)
            )
            self._add_event('SIGNAL', self.FAILED, reason)
            raise exception.Error(str(error)) from error
        self._remember(entry)
        # Heat puts a word before it.
        return bounds.shortened(result, kinds.LIMIT - len('Signal: '))

    def _start_execution(self, body: object, entry: dict[str, object]) -> str:
        record = self._record()
        props = self.properties
        definition = self._definition(props)
        run = workflow_requests.asked(
            body,
            workflow_requests.WorkflowOffer(
                workflows=definition.workflows,
                names=record.names,
                inputs=props[self.INPUT] or {},
                params=props[self.PARAMS] or {},
                body_is_input=bool(props[self.USE_REQUEST_BODY_AS_INPUT]),
                default=props[workflow_schema.DEFAULT_WORKFLOW],
            ),
        )
        name = record.names.get(run.workflow)
        if name is None:
            raise workflow_requests.RunError(
                f'Mistral does not have the workflow "{run.workflow}" yet; '
                'send the signal again when the resource is complete'
            )
        execution_id = record.execution_id()
        entry['workflow'] = name
        entry['ignored'] = list(run.ignored)
        self._deployer().persist(
            self._service().start,
            *(execution_id, name, run.input, run.params, run.description),
        )
        entry['execution_id'] = execution_id
        result = f'execution {execution_id} of {name} has started'
        LOG.info('%s: %s, by a signal', self, result)
        if run.ignored:
            result += f'; ignored: {bounds.listed(run.ignored)}'
        return result

    def _remember(self, entry: abc.Mapping[str, object]) -> None:
        try:
            self.data_set(
                workflow_requests.log_key(), workflow_requests.write_log(entry)
            )
        except exception.NotFound:
            # The resource has been deleted meanwhile.
            LOG.info(
                '%s has been deleted; a signal to it is not recorded', self
            )
            return
        for key in workflow_requests.surplus_log(self.data()):
            self.data_delete(key)

    # Attributes -----------------------------------------------------------

    def get_reference_id(self) -> object:
        """Return the name of the only workflow, or the prefix of all names."""
        # Heat asks also before it has looked at the value.
        if workflow_schema.DEFINITION not in self.properties.data:
            # A name that is not a text is refused later, with its place.
            with contextlib.suppress(ValueError):
                return super().get_reference_id()
        return self.resource_id or self.physical_resource_name()

    def _resolve_attribute(self, name: str) -> object:
        if name == workflow_schema.AVAILABLE_WORKFLOWS:
            return dict(self._record().names)
        if name == workflow_schema.SIGNALS:
            return workflow_requests.read_log(self.data())
        if name == self.EXECUTIONS:
            return self._executions()
        return super()._resolve_attribute(name)

    def _show_resource(self) -> object:
        names = self._record().names
        if len(names) <= 1 and not self.properties[workflow_schema.NAMESPACE]:
            return super()._show_resource()
        workflows = self._service().find(names.values())
        return {
            'workflows': {
                name: workflow.id for name, workflow in workflows.items()
            }
        }

    def _executions(self) -> list[dict[str, object]]:
        names = self._record().all_names
        if not names:
            return []
        shown: list[dict[str, object]] = []
        size = 0
        for execution in self._service().executions(
            names, self.EXECUTIONS_LIMIT
        ):
            row = {key: execution.get(key) for key in _EXECUTION_KEYS}
            size += sum(len(str(value)) for value in row.values())
            if shown and size > self.EXECUTIONS_BYTES:
                break
            for key in (self.INPUT, self.OUTPUT):
                row[key] = _loaded(row[key])
            shown.append(row)
        return shown


def _loaded(text: object) -> object:
    """Return the value of an execution's field; Mistral sends JSON."""
    if not isinstance(text, str):
        return text
    try:
        return bounds.read_json(text)
    except ValueError:
        return text
