# SPDX-License-Identifier: Apache-2.0
"""Actions on validations: ``validations.*``.

``validations.run`` lasts as long as its playbooks. The workflows of that name
and ``validations.run_group`` take the steps of ``validations.work``, one of
which calls it. Playbooks end with their execution, if that is cancelled or
deleted.

An error is a map of ``code`` and ``message``.
"""

from collections import abc
from typing import Any

from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins.clients import mistral_plans
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import plans
from heat_plugins.mistral_actions import sessions
from heat_plugins.validations import validation_operations

CONF = cfg.CONF


def core(context: Any) -> validation_operations.ValidationOperations:
    """Return the operations on validations, as the user of a context."""
    return validation_operations.ValidationOperations(
        plans.core(context).plans
    )


def _run(context: Any, operation: str, arguments: dict[str, Any]) -> Any:
    """Run validations, if the operator permits it on this host."""
    config.register_opts(CONF)
    if not CONF.heat_plugins.run_validations:
        raise errors.Refused(
            'This Mistral is not permitted to run playbooks ([heat_plugins] '
            'run_validations in mistral.conf). With --local, the commands '
            'run them on your machine'
        )
    arguments['abandoned'] = _abandoned(context)
    return getattr(core(context), operation)(**arguments)


def _abandoned(context: Any) -> abc.Callable[[], bool]:
    """Return a function that polls whether an action's execution has ended.

    Mistral cancels and deletes nested executions with a delay. Those of a
    failed execution continue: another branch may have failed.
    """
    execution_id = context.execution.workflow_execution_id
    if execution_id is None:
        return lambda: False
    executions = mistral_plans.WorkflowExecutions(
        sessions.cloud(context.security)
    )

    def ended() -> bool:
        try:
            execution = executions.execution(execution_id)
            return execution.ended or (
                bool(execution.root_id)
                and executions.execution(execution.root_id).cancelled
            )
        except errors.NotFound:
            return True

    return ended


_action = making.ActionMaker(
    __name__,
    lambda context, name, given: getattr(core(context), name)(**given),
)

List = _action(validation_operations.ValidationOperations.list)
Required = _action(validation_operations.ValidationOperations.required)
Stop = _action(validation_operations.ValidationOperations.stop)
Results = _action(validation_operations.ValidationOperations.results)
Result = _action(validation_operations.ValidationOperations.result)
Work = _action(validation_operations.ValidationOperations.work)
Run = making.ActionMaker(__name__, _run)(
    validation_operations.ValidationOperations.run
)
