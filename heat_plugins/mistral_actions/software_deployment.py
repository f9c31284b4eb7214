# SPDX-License-Identifier: Apache-2.0
"""Actions on running stacks: ``software_deployment.*``."""

from typing import Any

from heat_plugins.clients import heat
from heat_plugins.clients import swift
from heat_plugins.mistral_actions import making
from heat_plugins.mistral_actions import results
from heat_plugins.mistral_actions import sessions
from heat_plugins.runs import run_operations
from heat_plugins.runs import run_service


def core(context: Any) -> run_operations.Operations:
    """Return the core, with the credentials of an action's context."""
    security = context.security
    cloud = sessions.cloud(security)
    who = sessions.user_name(cloud.session)
    execution = context.execution.workflow_execution_id
    return run_operations.Operations(
        run_service.Runs(
            heat.Heat(cloud),
            swift.connect(cloud),
            who=(
                f'{who}, by workflow execution {execution}'
                if execution
                else who
            ),
        )
    )


def _call(context: Any, operation: str, arguments: dict[str, Any]) -> Any:
    return getattr(core(context), operation)(**arguments)


_action = making.Maker(__name__, _call, report=results.error)

Trigger = _action(run_operations.Operations.trigger)
Show = _action(run_operations.Operations.show)
Cancel = _action(run_operations.Operations.cancel)
