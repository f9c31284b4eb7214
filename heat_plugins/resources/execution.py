# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution."""

from collections import abc
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource

from heat_plugins.mistral.executions import execution_steps
from heat_plugins.resources.workflows import mistral_calls


class Execution(mistral_calls.MistralCalls, resource.Resource):
    """Runs a workflow, and is complete once that has succeeded.

    It runs when the resource is created, and, as ``actions`` says, when it
    is updated, suspended, resumed or deleted; an update runs it when the
    workflow, its input or its params have changed. What the workflow
    returns and publishes are attributes. A run that fails fails the
    resource, and the reason says why; the next update of the stack runs it
    again. A run that nobody waits for any more is cancelled: when the stack
    operation is cancelled or times out, or the resource is deleted. With
    the resource its executions are deleted from Mistral.

    A workflow can tell why it runs: ``env().heat`` is a map with
    ``action``, ``stack_name``, ``stack_id`` and ``resource_name``.
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
        WORKFLOW: properties.Schema(
            properties.Schema.STRING,
            _('Name or ID of the workflow to run.'),
            required=True,
            update_allowed=True,
        ),
        NAMESPACE: properties.Schema(
            properties.Schema.STRING,
            _('Namespace of the workflow.'),
            default='',
            update_allowed=True,
        ),
        INPUT: properties.Schema(
            properties.Schema.MAP,
            _('Input values for the workflow.'),
            default={},
            update_allowed=True,
        ),
        PARAMS: properties.Schema(
            properties.Schema.MAP,
            _(
                'Further parameters of the execution, such as "env", or '
                '"task_name" for a workflow of type reverse.'
            ),
            default={},
            update_allowed=True,
        ),
        DESCRIPTION: properties.Schema(
            properties.Schema.STRING,
            _('Description of the executions in Mistral.'),
            default='',
            update_allowed=True,
        ),
        ACTIONS_PROPERTY: properties.Schema(
            properties.Schema.LIST,
            _(
                'When to run: CREATE, UPDATE (when the workflow, its input '
                'or its params have changed), SUSPEND, RESUME and DELETE.'
            ),
            schema=properties.Schema(
                properties.Schema.STRING,
                constraints=[constraints.AllowedValues(RUN_ACTIONS)],
            ),
            default=[resource.Resource.CREATE, resource.Resource.UPDATE],
            update_allowed=True,
        ),
        TIMEOUT: properties.Schema(
            properties.Schema.INTEGER,
            _(
                'Seconds after which a run is cancelled and the resource '
                'fails. Without it the timeout of the stack is the limit.'
            ),
            update_allowed=True,
            constraints=[constraints.Range(min=1)],
        ),
    }

    # An execution may go on without the resource, as when it is resumed in
    # Mistral by hand; so nothing about it is remembered.
    attributes_schema = {
        OUTPUT: attributes.Schema(
            _('What the workflow has returned in its last run.'),
            type=attributes.Schema.MAP,
            cache_mode=attributes.Schema.CACHE_NONE,
        ),
        PUBLISHED: attributes.Schema(
            _(
                'The variables that the tasks of the last run have '
                'published, the latest value of each.'
            ),
            type=attributes.Schema.MAP,
            cache_mode=attributes.Schema.CACHE_NONE,
        ),
        STATE: attributes.Schema(
            _('State of the last run, such as SUCCESS.'),
            type=attributes.Schema.STRING,
            cache_mode=attributes.Schema.CACHE_NONE,
        ),
        STATE_INFO: attributes.Schema(
            _('What Mistral says about the state of the last run, in full.'),
            type=attributes.Schema.STRING,
            cache_mode=attributes.Schema.CACHE_NONE,
        ),
    }

    # Another run mends what a run has left undone.
    always_replace_on_check_failed = False

    def needs_replace_failed(self) -> bool:
        return False

    def _needs_update(self, *args: Any, **kwargs: Any) -> Any:
        # Later on the state is that of the update.
        self._had_failed = self.status == self.FAILED
        return super()._needs_update(*args, **kwargs) or self._had_failed

    _had_failed = False

    def validate(self) -> None:
        """Validate as Heat does, and refuse a workflow that is not there."""
        super().validate()
        self.validate_workflow(
            self.WORKFLOW,
            self.properties[self.WORKFLOW],
            self.properties[self.NAMESPACE] or '',
        )

    # What is done ---------------------------------------------------------

    def _begin(
        self, action: str, found: abc.Mapping[str, Any] | None = None
    ) -> execution_steps.Run | None:
        found = found or self.properties
        if action not in found[self.ACTIONS_PROPERTY]:
            return None
        return execution_steps.Run(
            self,
            action,
            workflow=found[self.WORKFLOW],
            namespace=found[self.NAMESPACE] or '',
            given=found[self.INPUT] or {},
            params=found[self.PARAMS] or {},
            description=found[self.DESCRIPTION] or '',
            timeout=found[self.TIMEOUT],
        )

    @staticmethod
    def _go_on(
        run: execution_steps.Run | execution_steps.Removal | None,
    ) -> bool:
        return run is None or run.step()

    @staticmethod
    def _stop(
        run: execution_steps.Run | execution_steps.Removal | None,
    ) -> None:
        if run is not None:
            run.cancel()

    def handle_create(self) -> execution_steps.Run | None:
        return self._begin(self.CREATE)

    check_create_complete = check_update_complete = _go_on
    check_suspend_complete = check_resume_complete = _go_on
    handle_create_cancel = handle_update_cancel = _stop
    handle_suspend_cancel = handle_resume_cancel = _stop

    def handle_update(
        self,
        json_snippet: Any,
        tmpl_diff: Any,
        prop_diff: abc.Mapping[str, Any],
    ) -> execution_steps.Run | None:
        after = json_snippet.properties(self.properties_schema, self.context)
        if self._had_failed:
            # What did not succeed then has to succeed now.
            failed = execution_steps.last_action(self) or self.CREATE
            if failed != self.DELETE:
                return self._begin(failed, after)
        what = (self.WORKFLOW, self.NAMESPACE, self.INPUT, self.PARAMS)
        if any(name in prop_diff for name in what):
            return self._begin(self.UPDATE, after)
        return None

    def handle_suspend(self) -> execution_steps.Run | None:
        return self._begin(self.SUSPEND)

    def handle_resume(self) -> execution_steps.Run | None:
        return self._begin(self.RESUME)

    def handle_delete(self) -> execution_steps.Removal:
        run = None
        # Where nothing has ever run there is nothing to undo.
        created = self.CREATE not in self.properties[self.ACTIONS_PROPERTY]
        if created or execution_steps.has_run(self):
            run = self._begin(self.DELETE)
        return execution_steps.Removal(self, run)

    check_delete_complete = _go_on
    handle_delete_cancel = _stop

    # What is seen ---------------------------------------------------------

    def _resolve_attribute(self, name: str) -> Any:
        if self.resource_id is None:
            return None
        return execution_steps.look(self).get(name)
