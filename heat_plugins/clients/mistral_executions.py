# SPDX-License-Identifier: Apache-2.0
"""Mistral's executions of workflows and actions, for plans.

It speaks Mistral's REST API itself: mistralclient has no way to give an
execution its id, and forgets a CA that the session knows.
"""

from collections import abc
import contextlib
import dataclasses
import json
import time
from typing import Any
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session

from heat_plugins.clients import keystone
from heat_plugins.plans import codes
from heat_plugins.plans import errors
from heat_plugins.plans import steps
from heat_plugins.workflows import outcome

SERVICE_TYPE = 'workflowv2'

# Nobody waits longer than this for the first byte of an answer.
_TIMEOUT = 60.0

# Seconds between two looks at an action, at first and at most.
_SOON, _LATER = 0.1, 2.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Execution:
    """An execution of a workflow.

    :ivar reason: why it did not succeed; '' if it did or goes on.
    :ivar output: what it returns; not of one that goes on.
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


class Executions:
    """Mistral's executions; also runs `steps` of plans.

    Each method may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`.

    :param session: a session with an auth plugin.
    :param interface: which of the catalogue's endpoints to use.
    :param region_name: the region; None for the only one.
    """

    def __init__(
        self,
        session: ks_session.Session,
        *,
        interface: str = 'public',
        region_name: str | None = None,
    ) -> None:
        self._adapter = adapter.Adapter(
            session,
            service_type=SERVICE_TYPE,
            interface=interface,
            region_name=region_name,
            # What is begun twice is not the same.
            connect_retries=0,
        )

    def run_action(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> Any:
        """Run an action, wait for it, and return its result.

        Mistral would wait itself, but a minute at most, and with a
        transaction open; so it is asked how the action stands.

        :param description: stands in lists of executions.
        :raises errors.PlanError: what the action itself says; see `codes`.
        """
        found = self._begin_action(name, arguments, description)
        pause = _SOON
        while str(found['state']) not in outcome.FINISHED:
            time.sleep(pause)
            pause = min(2 * pause, _LATER)
            # It goes on, whether somebody can look or not.
            with contextlib.suppress(errors.Unavailable):
                found = self._call('GET', f'/action_executions/{found["id"]}')
        result = outcome.mapping(found.get('output')).get('result')
        if found['state'] == 'SUCCESS':
            return result
        if isinstance(result, dict) and 'code' in result:
            raise codes.error(result)
        raise errors.ServiceError(f'Action {name} has failed: {result}')

    def start_workflow(
        self, name: str, arguments: abc.Mapping[str, Any], description: str
    ) -> str:
        """Begin an execution of a workflow; return its id.

        :param description: stands in lists of executions.
        """
        # With an id of ours a second request changes nothing.
        execution_id = str(uuid.uuid4())
        body = {
            'id': execution_id,
            'workflow_name': name,
            'input': json.dumps(dict(arguments)),
            'description': description,
        }
        try:
            self._call('POST', '/executions', body)
        except errors.Unavailable:
            self._call('POST', '/executions', body)
        return execution_id

    def execution(self, execution_id: str) -> Execution:
        """Return an execution as it is now."""
        found = self._call('GET', f'/executions/{execution_id}')
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
        answer = self._call('GET', f'/action_executions/{execution_id}')
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
        return self._call(
            'POST',
            '/action_executions',
            {
                'name': name,
                'input': json.dumps(dict(arguments)),
                'description': description,
                'params': json.dumps({'save_result': True}),
            },
        )

    def _call(
        self, method: str, path: str, body: abc.Mapping[str, Any] | None = None
    ) -> abc.Mapping[str, Any]:
        try:
            answer = self._adapter.request(
                path,
                method,
                json=body,
                headers={'Accept': 'application/json'},
                raise_exc=False,
                # The session would log the inputs, secrets and all.
                log=False,
                timeout=_TIMEOUT,
            )
        except exceptions.ClientException as exc:
            raise _unanswered(exc) from exc
        if answer.status_code >= 300:
            raise _refused(answer)
        found: abc.Mapping[str, Any] = answer.json()
        return found


def _refused(answer: Any) -> errors.PlanError:
    status = int(answer.status_code)
    try:
        said = ' '.join(str(answer.json()['faultstring']).split())
    except (ValueError, KeyError, TypeError):
        said = 'it does not say why'
    message = f'Mistral answered {status}: {said}'
    if status in (401, 403):
        return errors.Denied(message, status)
    if status >= 500 or status in (408, 429):
        return errors.Unavailable(message, status)
    return errors.ServiceError(message, status)


def _unanswered(exc: exceptions.ClientException) -> errors.ServiceError:
    name = type(exc).__name__
    if isinstance(exc, exceptions.EndpointNotFound):
        return errors.ServiceError(
            'The catalogue has no Mistral (service type "workflowv2") in '
            'this region; with --local plans work without it'
        )
    if isinstance(exc, keystone.REFUSALS):
        return errors.Denied(f'Keystone gives no token for it: {name}')
    return errors.Unavailable(f'Mistral cannot be reached: {name}')
