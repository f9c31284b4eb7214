# SPDX-License-Identifier: Apache-2.0
"""Mistral's executions of workflows and actions, for plans."""

from collections import abc
import dataclasses
import functools
import json
import time
from typing import Any
import uuid

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import retrying
from heat_plugins.clients import mistral_api
from heat_plugins.clients import rest
from heat_plugins.mistral.executions import outcome

# Seconds between two polls of an action, at first and at most.
_SOON, _LATER = 0.1, 2.0

# Seconds between two polls of an execution.
_INTERVAL = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkflowExecution:
    """An execution of a workflow.

    :ivar reason: why it did not succeed; '' if it did or still runs.
    :ivar root_id: the execution that all began with; '' for that itself.
    :ivar output: what it returns; not of one in progress.
    """

    id: str
    state: str
    reason: str = ''
    root_id: str = ''
    output: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )

    @property
    def ended(self) -> bool:
        return self.state in outcome.FINISHED

    @property
    def success(self) -> bool:
        return self.state == 'SUCCESS'

    @property
    def own_error(self) -> abc.Mapping[str, Any]:
        """The error that the workflow itself returned; see `errors.restore`.

        Empty where it returned none: an executor may have died.
        """
        error = self.output.get('error')
        return (
            error if isinstance(error, dict) and error.get('message') else {}
        )

    def error(self) -> errors.Error:
        """Return the error of a failed execution."""
        if self.own_error:
            return errors.restore(self.own_error)
        return errors.ServiceError(
            f'Execution {self.id} of Mistral: {self.reason}'
        )


def follow(
    executions: 'WorkflowExecutions',
    execution_id: str,
    *,
    tell: abc.Callable[[], bool | None] = lambda: None,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> WorkflowExecution:
    """Poll an execution until it has ended; return it.

    :param tell: is called at each poll; True ends the polling.
    """
    return retrying.follow(
        lambda: executions.execution(execution_id),
        lambda execution: bool(tell()) or execution.ended,
        interval=_INTERVAL,
        sleep=sleep,
    )


class WorkflowExecutions:
    """Mistral's executions; also runs the calls of jobs.

    Each method may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`.
    """

    def __init__(self, cloud: rest.Cloud) -> None:
        self._client = mistral_api.connect(cloud)

    def run_action(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> Any:
        """Run an action, wait for it, and return its result.

        Mistral itself would wait at most a minute, in an open transaction; so
        we poll the action's execution.

        :raises errors.Error: the action's error; see `errors.restore`.
        """
        action = self._begin_action(name, arguments, description)
        if str(action['state']) not in outcome.FINISHED:
            time.sleep(_SOON)
            action = retrying.follow(
                functools.partial(self._action, action['id']),
                lambda polled: str(polled['state']) in outcome.FINISHED,
                interval=2 * _SOON,
                growth=2,
                most=_LATER,
                sleep=time.sleep,
            )
        result = outcome.mapping(action.get('output')).get('result')
        if action['state'] == 'SUCCESS':
            return result
        if isinstance(result, dict) and 'code' in result:
            raise errors.restore(result)
        raise errors.ServiceError(f'Action {name} has failed: {result}')

    def start_workflow(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> str:
        """Start a workflow; return the ID of its execution."""
        # With an id of ours a second request changes nothing.
        execution_id = str(uuid.uuid4())
        body = {
            'id': execution_id,
            'workflow_name': name,
            'input': json.dumps(dict(arguments)),
            'description': description,
        }
        retrying.insist(
            mistral_api.ask, self._client.executions.begin, body, attempts=2
        )
        return execution_id

    def execution(self, execution_id: str) -> WorkflowExecution:
        """Return an execution as it is now."""
        row = mistral_api.ask(
            self._client.executions.get, execution_id
        ).to_dict()
        state = str(row['state'])
        failed = state in outcome.FINISHED and state != 'SUCCESS'
        return WorkflowExecution(
            id=execution_id,
            state=state,
            reason=(
                outcome.reason(state, row.get('state_info'), limit=2000)
                if failed
                else ''
            ),
            root_id=row.get('root_execution_id') or '',
            output=outcome.mapping(row.get('output')),
        )

    def cancel(self, execution_id: str) -> None:
        """Cancel an execution: it starts no further task."""
        mistral_api.ask(
            self._client.executions.update, execution_id, 'CANCELLED'
        )

    # Calls of jobs

    def start(self, call: jobs.Call, description: str) -> str:
        """Start a call; return the ID of its execution."""
        if call.kind is jobs.CallKind.WORKFLOW:
            return self.start_workflow(call.name, call.input, description)
        begun = self._begin_action(call.name, call.input, description)
        return str(begun['id'])

    def look(self, call: jobs.Call, execution_id: str) -> jobs.CallOutcome:
        """Return the state of a call's execution."""
        if call.kind is jobs.CallKind.WORKFLOW:
            execution = self.execution(execution_id)
            return jobs.CallOutcome(
                success=execution.success if execution.ended else None,
                reason=execution.reason,
            )
        answer = self._action(execution_id)
        state = str(answer['state'])
        if state not in outcome.FINISHED:
            return jobs.CallOutcome(success=None)
        success = state == 'SUCCESS'
        result = outcome.mapping(answer.get('output')).get('result')
        return jobs.CallOutcome(
            success=success,
            reason='' if success else outcome.reason(state, str(result)),
        )

    def _begin_action(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> abc.Mapping[str, Any]:
        row: abc.Mapping[str, Any] = mistral_api.ask(
            self._client.action_executions.begin,
            {
                'name': name,
                'input': json.dumps(dict(arguments)),
                'description': description,
                'params': json.dumps({'save_result': True}),
            },
        ).to_dict()
        return row

    def _action(self, execution_id: str) -> abc.Mapping[str, Any]:
        row: abc.Mapping[str, Any] = mistral_api.ask(
            self._client.action_executions.get, execution_id
        ).to_dict()
        return row
