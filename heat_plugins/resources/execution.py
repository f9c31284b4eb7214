# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution."""

from collections import abc
import dataclasses
import json
import time
import uuid

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource
from oslo_utils import uuidutils

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.engine import transports
from heat_plugins.mistral import calling
from heat_plugins.mistral import outcome
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_calls

LOG = foreign.logger(__name__)

# All executions, as a list of [id, action], the latest at the end.
_RUNS = 'runs'
_RESULT = 'result'

# A column of Heat's database takes 64 KB, and encryption adds a third.
_RESULT_LIMIT = 40000

# Seconds between two polls, at most: each also checks for the cancellation of
# the stack.
_LONGEST_DELAY = 5


class RunFailed(Exception):
    """An execution has failed; the message says why."""


@dataclasses.dataclass
class _Run:
    """An execution for an action.

    :ivar body: of the request to Mistral that starts it.
    """

    id: str
    action: str
    budget: calling.RetryBudget
    timeout: int | None
    body: dict[str, object]
    began: float = dataclasses.field(default_factory=lambda: time.monotonic())
    has_started: bool = False
    has_ended: bool = False


#: The run for DELETE, and how long to retry deleting the executions.
_Removal = tuple[_Run | None, calling.RetryBudget]


class Execution(mistral_calls.MistralCalls):
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
        WORKFLOW: bases.text(
            _('Name or ID of the workflow to run.'), required=True
        ),
        NAMESPACE: bases.text(_('Namespace of the workflow.'), default=''),
        INPUT: bases.mapping(_('Input values for the workflow.'), default={}),
        PARAMS: bases.mapping(
            _(
                'Further parameters of the execution, such as "env", or '
                '"task_name" for a workflow of type reverse.'
            ),
            default={},
        ),
        DESCRIPTION: bases.text(
            _('Description of the executions in Mistral.'), default=''
        ),
        ACTIONS_PROPERTY: bases.several(
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
        TIMEOUT: bases.number(
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
        OUTPUT: bases.live(
            attributes.Schema.MAP,
            _("The output of the workflow's last run."),
        ),
        PUBLISHED: bases.live(
            attributes.Schema.MAP,
            _(
                'The latest value of each variable that the tasks of the '
                'last run have published.'
            ),
        ),
        STATE: bases.live(
            attributes.Schema.STRING,
            _('State of the last run, such as SUCCESS.'),
        ),
        STATE_INFO: bases.live(
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
    ) -> _Run | None:
        """Return the run for an action; None if it runs nothing.

        The resource stores its ID before Mistral is asked: so a start without
        an answer can be repeated, and each execution can be found.
        """
        props = props or self.properties
        if action not in props[self.ACTIONS_PROPERTY]:
            return None
        runs = self._runs()
        if runs:
            # Its action has ended.
            self._cancel(runs[-1][0])
        params = props[self.PARAMS] or {}
        env = params.get('env', {})
        # Else it is the name of an environment that is stored in Mistral.
        if isinstance(env, dict):
            about = {
                'action': action,
                'stack_name': self.stack.name,
                'stack_id': self.stack.id,
                'resource_name': self.name,
            }
            params = {**params, 'env': {'heat': about, **env}}
        run = _Run(
            id=str(uuid.uuid4()),
            action=action,
            budget=self.retry_budget(),
            timeout=props[self.TIMEOUT],
            body={
                'workflow_name': props[self.WORKFLOW],
                'workflow_namespace': props[self.NAMESPACE] or '',
                'input': json.dumps(props[self.INPUT] or {}),
                'params': json.dumps(params),
                'description': props[self.DESCRIPTION] or '',
            },
        )
        if uuidutils.is_uuid_like(props[self.WORKFLOW]):
            run.body['workflow_id'] = run.body.pop('workflow_name')
        self.data_set(_RUNS, json.dumps([*runs, [run.id, action]]))
        return run

    def _runs(self) -> list[list[str]]:
        """Return the ID and the action of each execution, the latest last."""
        return list(json.loads(self.data().get(_RUNS, '[]')))

    def _step(self, run: _Run | None) -> bool:
        """Say whether a run has succeeded; Heat asks again until it has.

        :raises RunFailed: it has failed.
        """
        if run is None:
            return True
        self._start(run)
        hub = transports.hub_for(self)
        if hub.cancellation.of(self.stack, run.began):
            self._cancel(run.id)
            raise RunFailed(
                f'the execution {run.id} is cancelled, because '
                f'{run.action} of the stack was cancelled.'
            )
        row = self._row(run.budget, run.id)
        if row is None:
            raise RunFailed(f'the execution {run.id} is no longer in Mistral.')
        if row.state == 'SUCCESS':
            result = json.dumps(self._result(run.budget, row))
            # A larger output stays in Mistral, and is read there.
            if len(result) <= _RESULT_LIMIT:
                self.data_set(_RESULT, result, redact=True)
            LOG.info('%s: execution %s has succeeded', self, run.id)
            return True
        if row.state in outcome.FINISHED:
            text = outcome.reason(row.state, row.state_info)
            raise RunFailed(f'{text} (execution {run.id})')
        waited = time.monotonic() - run.began
        if run.timeout and waited >= run.timeout:
            self._cancel(run.id)
            raise RunFailed(
                f'the execution {run.id} was still {row.state} after '
                f'{run.timeout} s, and is cancelled.'
            )
        raise resource.PollDelay(min(calling.backoff(waited), _LONGEST_DELAY))

    def _start(self, run: _Run) -> None:
        """Begin to run the workflow, unless it has started."""
        if run.has_started:
            return
        self.ask(
            run.budget,
            'cannot run the workflow',
            self.client().executions.begin,
            {'id': run.id, **run.body},
        )
        run.has_started = True
        self.resource_id_set(run.id)
        LOG.info('%s: execution %s has started', self, run.id)
        self.data_delete(_RESULT)

    def _stop(self, run: _Run | None) -> None:
        """Cancel the execution of an action that Heat gives up."""
        if run is not None:
            self._cancel(run.id)

    def _cancel(self, identifier: str) -> None:
        """Cancel an execution unless it has ended; one attempt."""
        try:
            row = self._row(calling.RetryBudget(0), identifier)
            if row is not None and row.state not in outcome.FINISHED:
                mistral_api.ask(
                    self.client().executions.update, identifier, 'CANCELLED'
                )
        except errors.ServiceError as exc:
            LOG.warning('%s: cannot cancel an execution: %s', self, exc)

    def _row(
        self, budget: calling.RetryBudget, identifier: str
    ) -> mistral_api.Row | None:
        """Return the execution in Mistral; None if there is none."""
        return self.find(
            budget,
            'cannot read the execution',
            self.client().executions.get,
            identifier,
        )

    def _result(
        self, budget: calling.RetryBudget, row: mistral_api.Row
    ) -> dict[str, object]:
        """Return the output of an execution and what its tasks published."""
        tasks = self.ask(
            budget,
            'cannot list the tasks of the execution',
            self.client().tasks.list,
            row.id,
        )
        return {
            'output': outcome.mapping(row.output),
            'published': outcome.published(
                [task.to_dict() for task in tasks],
                getattr(row, 'published_global', None),
            ),
        }

    def handle_create(self) -> _Run | None:
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
    ) -> _Run | None:
        """Run the workflow for UPDATE, or again the action that failed."""
        after = json_snippet.properties(self.properties_schema, self.context)
        if self._state_before[1] == self.FAILED:
            # The action that failed then has to succeed now.
            runs = self._runs()
            failed = runs[-1][1] if runs else self.CREATE
            if failed != self.DELETE:
                return self._begin(failed, after)
        what = {self.WORKFLOW, self.NAMESPACE, self.INPUT, self.PARAMS}
        return self._begin(self.UPDATE, after) if what & {*prop_diff} else None

    def handle_suspend(self) -> _Run | None:
        return self._begin(self.SUSPEND)

    def handle_resume(self) -> _Run | None:
        return self._begin(self.RESUME)

    def handle_check(self) -> None:
        """Check nothing: an execution may be deleted after its end."""

    def handle_delete(self) -> _Removal:
        """Run the workflow for DELETE, unless nothing has run before."""
        run = None
        # Where nothing has ever run there is nothing to undo.
        runs_on_create = self.CREATE in self.properties[self.ACTIONS_PROPERTY]
        if self.resource_id is not None or not runs_on_create:
            run = self._begin(self.DELETE)
        return run, self.retry_budget()

    def handle_delete_cancel(self, removal: _Removal) -> None:
        self._stop(removal[0])

    def check_delete_complete(self, removal: _Removal | None) -> bool:
        """Wait for the run for DELETE, then delete all executions."""
        if removal is None:
            return True
        run, budget = removal
        if run is not None and not run.has_ended:
            run.has_ended = self._step(run)
        runs = self._runs()
        while runs:
            identifier, _action = runs[-1]
            # A deletion alone would not stop running tasks.
            self._cancel(identifier)
            self.find(
                budget,
                'cannot delete the execution',
                self.client().executions.delete,
                identifier,
                force=True,
            )
            runs.pop()
            self.data_set(_RUNS, json.dumps(runs))
        return True

    # What is seen ---------------------------------------------------------

    def _resolve_attribute(self, name: str) -> object:
        if self.resource_id is None:
            return None
        result = json.loads(self.data().get(_RESULT, '{}'))
        budget = calling.RetryBudget(0)
        try:
            row = self._row(budget, self.resource_id)
            if row is None:
                # Mistral may be told to forget executions after a while.
                state = 'SUCCESS' if result else None
                return {'state': state, **result}.get(name)
            if name in (self.STATE, self.STATE_INFO):
                return getattr(row, name)
            result = result or self._result(budget, row)
        except errors.ServiceError as exc:
            LOG.warning('%s: %s', self, exc)
        return result.get(name)
