# SPDX-License-Identifier: Apache-2.0
"""The steps of an execution in Mistral.

We choose the ID of an execution, and store it before the request to Mistral.
So a start without an answer is repeated without a second execution, and each
execution can be found.
"""

from collections import abc
import json
import time
from typing import Any
import uuid

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.mistral import calling
from heat_plugins.mistral.executions import outcome

LOG = foreign.logger(__name__)

# All executions, as a list of [id, action], the latest at the end.
_RUNS = 'runs'
_RESULT = 'result'

# A column of Heat's database takes 64 KB, and encryption adds a third.
_RESULT_LIMIT = 40000

# Seconds between two checks for the stack's cancellation.
_STACK_LOOK = 5


class RunFailed(Exception):
    """An execution has failed; the message says why."""


def _runs(resource: calling.Caller) -> list[list[str]]:
    runs: list[list[str]] = json.loads(resource.data().get(_RUNS, '[]'))
    return runs


def has_run(resource: calling.Caller) -> bool:
    """Say whether an execution was ever started."""
    return bool(_runs(resource))


def last_action(resource: calling.Caller) -> str | None:
    """Return the action of the last execution, or None."""
    runs = _runs(resource)
    return runs[-1][1] if runs else None


class ExecutionRun:
    """An execution, from its start to its end."""

    def __init__(
        self,
        resource: calling.Caller,
        action: str,
        *,
        workflow: str,
        namespace: str,
        given: abc.Mapping[str, Any],
        params: abc.Mapping[str, Any],
        description: str,
        timeout: int | None,
    ) -> None:
        """Prepare to run a workflow for an action."""
        self._resource = resource
        self._action = action
        self._budget = resource.retry_budget()
        self._body = {
            'workflow_name': workflow,
            'input': json.dumps(given),
            'params': json.dumps(_with_env(params, resource, action)),
            'description': description,
        }
        if namespace:
            self._body['workflow_namespace'] = namespace
        if _is_id(workflow):
            self._body['workflow_id'] = self._body.pop('workflow_name')
        self._workflow = workflow
        self._timeout = timeout
        self._began = time.monotonic()
        self._id: str | None = None
        self._started = False
        self._due = self._began

    @property
    def _calls(self) -> Any:
        return self._resource.client().executions

    def step(self) -> bool:
        """Take the next step; return whether the execution has succeeded.

        :raises RunFailed: it has failed.
        """
        if not self._started:
            self._start()
        if self._resource.is_cancelled(self._began):
            self.cancel()
            raise RunFailed(
                f'the execution {self._id} is cancelled, because '
                f'{self._action} of the stack was cancelled.'
            )
        # Notice a cancelled stack sooner than the rest: this check is cheap.
        early = self._due - time.monotonic()
        if early > 0:
            self._resource.pause(max(1, min(int(early), _STACK_LOOK)))
        row = self._resource.find(
            self._budget,
            'cannot read the execution',
            self._calls.get,
            self._id,
        )
        if row is None:
            raise RunFailed(
                f'the execution {self._id} is no longer in Mistral.'
            )
        if row.state in outcome.FINISHED:
            return self._finish(row)
        waited = time.monotonic() - self._began
        if self._timeout and waited >= self._timeout:
            self.cancel()
            raise RunFailed(
                f'the execution {self._id} was still {row.state} after '
                f'{self._timeout} s, and is cancelled.'
            )
        delay = calling.backoff(waited)
        if self._timeout:
            delay = min(delay, max(1, int(self._timeout - waited)))
        self._due = time.monotonic() + delay - 0.5
        self._resource.pause(min(delay, _STACK_LOOK))

    def _start(self) -> None:
        resource = self._resource
        if self._id is None:
            # Whatever was begun for an action that has ended.
            for identifier, _action in _runs(resource)[-1:]:
                _cancel(resource, identifier)
            self._id = str(uuid.uuid4())
            runs = [*_runs(resource), [self._id, self._action]]
            resource.data_set(_RUNS, json.dumps(runs))
        try:
            resource.ask(
                self._budget,
                'cannot run the workflow',
                self._calls.begin,
                {'id': self._id, **self._body},
            )
        except errors.ServiceError as exc:
            if not isinstance(exc, errors.Unavailable):
                resource.data_set(_RUNS, json.dumps(_runs(resource)[:-1]))
            raise
        resource.resource_id_set(self._id)
        LOG.info(
            '%(resource)s: execution %(id)s of %(workflow)s has started, for '
            '%(action)s',
            {
                'resource': resource,
                'id': self._id,
                'workflow': self._workflow,
                'action': self._action,
            },
        )
        if _RESULT in resource.data():
            resource.data_delete(_RESULT)
        self._started = True

    def _finish(self, row: Any) -> bool:
        if row.state != 'SUCCESS':
            text = outcome.reason(row.state, row.state_info)
            raise RunFailed(f'{text} (execution {self._id})')
        result = _result(self._resource, self._budget, row)
        text = json.dumps(result)
        # A larger output stays in Mistral, and is read there.
        if len(text) <= _RESULT_LIMIT:
            self._resource.data_set(_RESULT, text, redact=True)
        # A failure is logged by Heat, with the resource and its stack.
        LOG.info(
            '%(resource)s: execution %(id)s has ended, for %(action)s',
            {
                'resource': self._resource,
                'id': self._id,
                'action': self._action,
            },
        )
        return True

    def cancel(self) -> None:
        """Cancel the execution; one attempt."""
        if self._id is not None:
            _cancel(self._resource, self._id)


class ExecutionRemoval:
    """Runs the workflow for DELETE, then deletes all executions."""

    def __init__(
        self, resource: calling.Caller, run: ExecutionRun | None
    ) -> None:
        """Prepare the removal.

        :param run: the run for DELETE, or None.
        """
        self._resource = resource
        self._run = run
        self._budget = resource.retry_budget()

    def step(self) -> bool:
        """Take the next step; return whether all is done."""
        if self._run is not None:
            self._run.step()
            self._run = None
        executions = self._resource.client().executions
        runs = _runs(self._resource)
        while runs:
            identifier, _action = runs[-1]
            # A deletion alone would not stop running tasks.
            _cancel(self._resource, identifier)
            self._resource.find(
                self._budget,
                'cannot delete the execution',
                executions.delete,
                identifier,
                force=True,
            )
            runs.pop()
            self._resource.data_set(_RUNS, json.dumps(runs))
        return True

    def cancel(self) -> None:
        """Cancel the run for DELETE."""
        if self._run is not None:
            self._run.cancel()


def _cancel(resource: calling.Caller, identifier: str) -> None:
    """Cancel an execution unless it has ended; one attempt."""
    executions = resource.client().executions
    budget = calling.RetryBudget(0)
    try:
        row = resource.find(
            budget, 'cannot read the execution', executions.get, identifier
        )
        if row is not None and row.state not in outcome.FINISHED:
            resource.ask(
                budget,
                'cannot cancel the execution',
                executions.update,
                identifier,
                'CANCELLED',
            )
    except errors.ServiceError as exc:
        LOG.warning('%s: %s', resource, exc)


def _result(
    resource: calling.Caller, budget: calling.RetryBudget, row: Any
) -> dict[str, Any]:
    tasks = resource.ask(
        budget,
        'cannot list the tasks of the execution',
        resource.client().tasks.list,
        row.id,
    )
    return {
        'output': outcome.mapping(row.output),
        'published': outcome.published(
            [task.to_dict() for task in tasks],
            getattr(row, 'published_global', None),
        ),
    }


def read_attributes(resource: calling.Caller) -> dict[str, Any]:
    """Return the attributes; those that cannot be read are left out."""
    stored: dict[str, Any] = json.loads(resource.data().get(_RESULT, '{}'))
    budget = calling.RetryBudget(0)
    try:
        row = resource.find(
            budget,
            'cannot read the execution',
            resource.client().executions.get,
            resource.resource_id,
        )
        if row is None:
            # Mistral may be told to forget executions after a while.
            return {**stored, **({'state': 'SUCCESS'} if stored else {})}
        if not stored:
            stored = _result(resource, budget, row)
        return {**stored, 'state': row.state, 'state_info': row.state_info}
    except errors.ServiceError as exc:
        LOG.warning('%s: %s', resource, exc)
        return stored


def _with_env(
    params: abc.Mapping[str, Any], resource: calling.Caller, action: str
) -> abc.Mapping[str, Any]:
    """Add the action and the resource to the environment."""
    env = params.get('env', {})
    if not isinstance(env, dict):
        # The name of one that is stored in Mistral.
        return params
    about = {
        'action': action,
        'stack_name': resource.stack.name,
        'stack_id': resource.stack.id,
        'resource_name': resource.name,
    }
    return {**params, 'env': {'heat': about, **env}}


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False
