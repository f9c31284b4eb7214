# SPDX-License-Identifier: Apache-2.0
"""Mistral, for plans: their names as environments, and executions of jobs."""

from collections import abc
import dataclasses
import json
from typing import Any, Final
from urllib import parse
import uuid

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import retrying
from heat_plugins.clients import mistral_api
from heat_plugins.clients import rest
from heat_plugins.mistral import outcome
from heat_plugins.plans import plan_claims

_FIELDS: Final = ('id', 'name', 'description', 'project_id', 'variables')


class MistralRegistry:
    """A project's environments in Mistral; see `plan_claims.Registry`."""

    def __init__(self, cloud: rest.Cloud) -> None:
        self._session = cloud.session
        self._environments = mistral_api.connect(cloud).environments

    def create(self, record: plan_claims.Record) -> bool:
        """See `plan_claims.Registry.create`."""
        try:
            mistral_api.ask(
                self._environments.create,
                name=record.name,
                description=record.description,
                variables=json.dumps(dict(record.values)),
            )
        except errors.Conflict:
            return False
        return True

    def get(self, name: str) -> plan_claims.Record | None:
        """See `plan_claims.Registry.get`."""
        rows = filter(self._is_own, self._rows(name=f'eq:{name}'))
        return next(map(_record, rows), None)

    def find(self) -> list[plan_claims.Record]:
        """See `plan_claims.Registry.find`."""
        rows = filter(self._is_own, self._rows(sort_keys='name'))
        return [_record(row) for row in rows]

    def delete(self, name: str) -> bool:
        """See `plan_claims.Registry.delete`.

        :raises errors.ServiceError: another project has made an environment
            of that name public; Mistral would delete that one, too.
        """
        rows = list(self._rows(name=f'eq:{name}'))
        if not all(map(self._is_own, rows)):
            raise errors.ServiceError(
                f'Another project has a public environment {name} in '
                'Mistral, which Mistral would delete with ours; ask that '
                'project to rename it'
            )
        try:
            mistral_api.ask(
                self._environments.delete, parse.quote(name, safe='')
            )
        except errors.NotFound:
            return False
        return True

    def _rows(self, **query: str) -> abc.Iterator[dict[str, Any]]:
        """List environments, the public ones of others too."""
        return (
            row.to_dict()
            for row in mistral_api.each(
                self._environments.list, fields=_FIELDS, **query
            )
        )

    def _is_own(self, row: abc.Mapping[str, Any]) -> bool:
        """Say whether an environment belongs to this project."""
        # A list has the public ones of others as well.
        return bool(
            row.get('project_id')
            == mistral_api.ask(self._session.get_project_id)
        )


def _record(row: abc.Mapping[str, Any]) -> plan_claims.Record:
    """Return a Mistral environment as the record of a plan."""
    return plan_claims.Record(
        name=str(row['name']),
        description=str(row.get('description') or ''),
        values=outcome.mapping(row.get('variables')),
    )


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
    def cancelled(self) -> bool:
        return self.state == 'CANCELLED'

    def error(self) -> errors.Error:
        """Return the error of a failed execution.

        It is the workflow's own, unless it returned none: an executor may
        have died.
        """
        error = self.output.get('error')
        if isinstance(error, dict) and error.get('message'):
            return errors.restore(error)
        return errors.ServiceError(
            f'Execution {self.id} of Mistral: {self.reason}'
        )


class WorkflowExecutions:
    """Mistral's executions; also runs the calls of jobs.

    Each method may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`.
    """

    def __init__(self, cloud: rest.Cloud) -> None:
        self._client = mistral_api.connect(cloud)

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

    # Calls of jobs

    def start(self, call: jobs.Call, description: str) -> str:
        """Start a call; return the ID of its execution."""
        if call.kind is jobs.CallKind.WORKFLOW:
            return self.start_workflow(call.name, call.input, description)
        body = {
            'name': call.name,
            'input': json.dumps(dict(call.input)),
            'description': description,
            'params': json.dumps({'save_result': True}),
        }
        return str(
            mistral_api.ask(self._client.action_executions.begin, body).id
        )

    def look(self, call: jobs.Call, execution_id: str) -> jobs.CallOutcome:
        """Return the state of a call's execution."""
        if call.kind is jobs.CallKind.WORKFLOW:
            execution = self.execution(execution_id)
            return jobs.CallOutcome(
                success=execution.success if execution.ended else None,
                reason=execution.reason,
            )
        answer = mistral_api.ask(
            self._client.action_executions.get, execution_id
        ).to_dict()
        state = str(answer['state'])
        if state not in outcome.FINISHED:
            return jobs.CallOutcome(success=None)
        success = state == 'SUCCESS'
        result = outcome.mapping(answer.get('output')).get('result')
        reason = '' if success else outcome.reason(state, str(result))
        return jobs.CallOutcome(success=success, reason=reason)
