# SPDX-License-Identifier: Apache-2.0
"""How a workflow takes signals."""

from collections import abc
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.common import exception
from oslo_utils import timeutils

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import signallers
from heat_plugins.engine import callers
from heat_plugins.mistral.definitions import definition_problems
from heat_plugins.mistral.executions import workflow_requests
from heat_plugins.resources.workflows import workflow_schema
from heat_plugins.timeline import kinds

if TYPE_CHECKING:
    from heat.engine.resources.openstack.mistral import workflow

LOG = foreign.logger(__name__)


if TYPE_CHECKING:
    _Workflow: TypeAlias = workflow.Workflow
else:
    _Workflow = object


class Signals(_Workflow):
    """Mixed into the resource type, in front of Heat's class."""

    def handle_signal(self, details: Any = None) -> str:
        """Run a workflow, and leave an event that says what became of it."""
        entry: dict[str, Any] = {
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
            result = self._run(details, entry)
        except (
            definition_problems.DefinitionError,
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

    def _run(self, body: Any, entry: dict[str, Any]) -> str:
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

    def _remember(self, entry: abc.Mapping[str, Any]) -> None:
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
