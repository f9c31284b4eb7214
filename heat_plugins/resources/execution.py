# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution."""

from collections import abc

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource

from heat_plugins.engine import heat_types
from heat_plugins.mistral.executions import execution_steps
from heat_plugins.resources import schemas
from heat_plugins.resources.workflows import mistral_calls


class Execution(mistral_calls.MistralCalls, mistral_calls.Mended):
    """Runs a workflow, and is complete when that has succeeded.

    ``actions`` says when: as the resource is created, updated, suspended,
    resumed or deleted. An update runs the workflow when the workflow, its
    input or its params have changed. The results of the workflow are
    attributes. A failed workflow fails the resource, with its reason; the next
    update of the stack runs it again. When the stack's action is cancelled or
    times out, or the resource is deleted, heat-engine cancels the run.
    Deleting the resource deletes its executions from Mistral.

    The workflow reads why it runs in ``env().heat``: a map with ``action``,
    ``stack_name``, ``stack_id`` and ``resource_name``.
    """

    support_status = mistral_calls.NOT_HEATS

    entity = 'executions'

    PROPERTIES = (
        WORKFLOW,
        NAMESPACE,
        INPUT,
        PARAMS,
        DESCRIPTION,
        ACTIONS_PROPERTY,
        TIMEOUT,
    ) = (
        'workflow',
        'namespace',
        'input',
        'params',
        'description',
        'actions',
        'timeout',
    )

    ATTRIBUTES = (OUTPUT, PUBLISHED, STATE, STATE_INFO) = (
        'output',
        'published',
        'state',
        'state_info',
    )

    RUN_ACTIONS = (
        resource.Resource.CREATE,
        resource.Resource.UPDATE,
        resource.Resource.SUSPEND,
        resource.Resource.RESUME,
        resource.Resource.DELETE,
    )

    properties_schema = {
        WORKFLOW: schemas.text(
            _('Name or ID of the workflow to run.'), required=True
        ),
        NAMESPACE: schemas.text(_('Namespace of the workflow.'), default=''),
        INPUT: schemas.mapping(
            _('Input values for the workflow.'), default={}
        ),
        PARAMS: schemas.mapping(
            _(
                'Further parameters of the execution, such as "env", or '
                '"task_name" for a workflow of type reverse.'
            ),
            default={},
        ),
        DESCRIPTION: schemas.text(
            _('Description of the executions in Mistral.'), default=''
        ),
        ACTIONS_PROPERTY: schemas.several(
            _(
                'When to run: CREATE, UPDATE (when the workflow, its input '
                'or its params have changed), SUSPEND, RESUME and DELETE.'
            ),
            schema=properties.Schema(
                properties.Schema.STRING,
                constraints=[constraints.AllowedValues(RUN_ACTIONS)],
            ),
            default=[resource.Resource.CREATE, resource.Resource.UPDATE],
        ),
        TIMEOUT: schemas.number(
            _(
                'Seconds after which heat-engine cancels a run and the '
                'resource fails. Default: the timeout of the stack.'
            ),
            constraints=[constraints.Range(min=1)],
        ),
    }

    # An execution may go on without the resource, as when it is resumed in
    # Mistral by hand; so nothing about it is remembered.
    attributes_schema = {
        OUTPUT: schemas.live(
            attributes.Schema.MAP,
            _("The output of the workflow's last run."),
        ),
        PUBLISHED: schemas.live(
            attributes.Schema.MAP,
            _(
                'The latest value of each variable that the tasks of the '
                'last run have published.'
            ),
        ),
        STATE: schemas.live(
            attributes.Schema.STRING,
            _('State of the last run, such as SUCCESS.'),
        ),
        STATE_INFO: schemas.live(
            attributes.Schema.STRING,
            _("Mistral's full explanation of the state of the last run."),
        ),
    }

    def validate(self) -> None:
        """Validate as Heat does, and refuse a workflow that does not exist."""
        super().validate()
        self.validate_workflow(
            self.WORKFLOW,
            self.properties[self.WORKFLOW],
            self.properties[self.NAMESPACE] or '',
        )

    # What is done ---------------------------------------------------------

    def _begin(
        self, action: str, props: heat_types.Properties | None = None
    ) -> execution_steps.ExecutionRun | None:
        props = props or self.properties
        if action not in props[self.ACTIONS_PROPERTY]:
            return None
        return execution_steps.ExecutionRun(
            self,
            action,
            workflow=props[self.WORKFLOW],
            namespace=props[self.NAMESPACE] or '',
            given=props[self.INPUT] or {},
            params=props[self.PARAMS] or {},
            description=props[self.DESCRIPTION] or '',
            timeout=props[self.TIMEOUT],
        )

    @staticmethod
    def _step(
        run: execution_steps.ExecutionRun
        | execution_steps.ExecutionRemoval
        | None,
    ) -> bool:
        return run is None or run.step()

    @staticmethod
    def _stop(
        run: execution_steps.ExecutionRun
        | execution_steps.ExecutionRemoval
        | None,
    ) -> None:
        if run is not None:
            run.cancel()

    def handle_create(self) -> execution_steps.ExecutionRun | None:
        return self._begin(self.CREATE)

    check_create_complete = check_update_complete = _step
    check_suspend_complete = check_resume_complete = _step
    handle_create_cancel = handle_update_cancel = _stop
    handle_suspend_cancel = handle_resume_cancel = _stop

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: heat_types.Definition,
        prop_diff: abc.Mapping[str, object],
    ) -> execution_steps.ExecutionRun | None:
        after = json_snippet.properties(self.properties_schema, self.context)
        if self._state_before[1] == self.FAILED:
            # What did not succeed then has to succeed now.
            failed = execution_steps.last_action(self) or self.CREATE
            if failed != self.DELETE:
                return self._begin(failed, after)
        what = (self.WORKFLOW, self.NAMESPACE, self.INPUT, self.PARAMS)
        if any(name in prop_diff for name in what):
            return self._begin(self.UPDATE, after)
        return None

    def handle_suspend(self) -> execution_steps.ExecutionRun | None:
        return self._begin(self.SUSPEND)

    def handle_resume(self) -> execution_steps.ExecutionRun | None:
        return self._begin(self.RESUME)

    def handle_delete(self) -> execution_steps.ExecutionRemoval:
        run = None
        # Where nothing has ever run there is nothing to undo.
        created = self.CREATE not in self.properties[self.ACTIONS_PROPERTY]
        if created or execution_steps.has_run(self):
            run = self._begin(self.DELETE)
        return execution_steps.ExecutionRemoval(self, run)

    check_delete_complete = _step
    handle_delete_cancel = _stop

    # What is seen ---------------------------------------------------------

    def _resolve_attribute(self, name: str) -> object:
        if self.resource_id is None:
            return None
        return execution_steps.read_attributes(self).get(name)
