# SPDX-License-Identifier: Apache-2.0
"""Mistral's executions of workflows and actions, for plans."""

from collections import abc
import dataclasses
import functools
import json
import time
from typing import Any, Protocol
import uuid

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins.clients import keystone
from heat_plugins.clients import mistral_api
from heat_plugins.mistral.executions import outcome
from heat_plugins.plans.deploy import steps

# Seconds between two looks at an action, at first and at most.
_SOON, _LATER = 0.1, 2.0

# Seconds between two polls of an execution.
_INTERVAL = 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Execution:
    """An execution of a workflow.

    :ivar reason: why it did not succeed; '' if it did or still runs.
    :ivar output: what it returns; not of one in progress.
    """

    id: str
    state: str
    reason: str = ''
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
    def said(self) -> abc.Mapping[str, Any]:
        """The error that the workflow itself returned; see `codes`.

        Empty where it returned none: an executor may have died.
        """
        said = self.output.get('error')
        return said if isinstance(said, dict) and said.get('message') else {}

    def error(self) -> errors.Error:
        """Return the error that it has ended with."""
        if self.said:
            return errors.restore(self.said)
        return errors.ServiceError(
            f'Execution {self.id} of Mistral: {self.reason}'
        )


class Polled(Protocol):
    """What says how an execution stands: `Executions`."""

    def execution(self, execution_id: str) -> Execution:
        """See `Executions.execution`."""


def follow(
    executions: Polled,
    execution_id: str,
    *,
    tell: abc.Callable[[], bool | None] = lambda: None,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> Execution:
    """Poll an execution until it has ended; return it.

    :param tell: is called at each poll; if it returns True, that ends the
        waiting.
    """
    return retrying.follow(
        lambda: executions.execution(execution_id),
        lambda found: bool(tell()) or found.ended,
        interval=_INTERVAL,
        sleep=sleep,
    )


class Executions:
    """Mistral's executions; also runs `steps` of plans.

    Each method may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`.
    """

    def __init__(self, cloud: keystone.Cloud) -> None:
        self._client = mistral_api.connect(cloud)

    def run_action(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> Any:
        """Run an action, wait for it, and return its result.

        Mistral would wait itself, but a minute at most, and with a
        transaction open; so it is asked how the action stands.

        :raises errors.Error: what the action itself says; see `codes`.
        """
        found = self._begin_action(name, arguments, description)
        if str(found['state']) not in outcome.FINISHED:
            time.sleep(_SOON)
            found = retrying.follow(
                functools.partial(self._action, found['id']),
                lambda found: str(found['state']) in outcome.FINISHED,
                interval=2 * _SOON,
                growth=2,
                most=_LATER,
                sleep=time.sleep,
            )
        result = outcome.mapping(found.get('output')).get('result')
        if found['state'] == 'SUCCESS':
            return result
        if isinstance(result, dict) and 'code' in result:
            raise errors.restore(result)
        raise errors.ServiceError(f'Action {name} has failed: {result}')

    def start_workflow(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> str:
        """Begin an execution of a workflow; return its id."""
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

    def execution(self, execution_id: str) -> Execution:
        """Return an execution as it is now."""
        found = mistral_api.ask(
            self._client.executions.get, execution_id
        ).to_dict()
        state = str(found['state'])
        failed = state in outcome.FINISHED and state != 'SUCCESS'
        return Execution(
            id=execution_id,
            state=state,
            reason=(
                outcome.reason(state, found.get('state_info'), limit=2000)
                if failed
                else ''
            ),
            output=outcome.mapping(found.get('output')),
        )

    def cancel(self, execution_id: str) -> None:
        """Cancel an execution: it starts no further task."""
        mistral_api.ask(
            self._client.executions.update, execution_id, 'CANCELLED'
        )

    # What `steps.Runner` asks for

    def start(self, step: steps.Step, description: str) -> str:
        """See `steps.Runner.start`."""
        if step.kind is steps.Kind.WORKFLOW:
            return self.start_workflow(step.name, step.input, description)
        found = self._begin_action(step.name, step.input, description)
        return str(found['id'])

    def look(self, step: steps.Step, execution_id: str) -> steps.Outcome:
        """See `steps.Runner.look`."""
        if step.kind is steps.Kind.WORKFLOW:
            found = self.execution(execution_id)
            return steps.Outcome(
                success=found.success if found.ended else None,
                reason=found.reason,
            )
        answer = self._action(execution_id)
        state = str(answer['state'])
        if state not in outcome.FINISHED:
            return steps.Outcome(success=None)
        success = state == 'SUCCESS'
        said = outcome.mapping(answer.get('output')).get('result')
        return steps.Outcome(
            success=success,
            reason='' if success else outcome.reason(state, str(said)),
        )

    def _begin_action(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> abc.Mapping[str, Any]:
        found: abc.Mapping[str, Any] = mistral_api.ask(
            self._client.action_executions.begin,
            {
                'name': name,
                'input': json.dumps(dict(arguments)),
                'description': description,
                'params': json.dumps({'save_result': True}),
            },
        ).to_dict()
        return found

    def _action(self, execution_id: str) -> abc.Mapping[str, Any]:
        found: abc.Mapping[str, Any] = mistral_api.ask(
            self._client.action_executions.get, execution_id
        ).to_dict()
        return found
