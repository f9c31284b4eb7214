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
from heat_plugins.runs.fleet import fleets


class _Access:
    """What acts with the credentials of an action's context."""

    def __init__(self, context: Any) -> None:
        cloud = sessions.cloud(context.security)
        who = sessions.user_name(cloud.session)
        execution = context.execution.workflow_execution_id
        self.heat = heat.Heat(cloud)
        self.store = swift.connect(cloud)
        self.who = (
            f'{who}, by workflow execution {execution}' if execution else who
        )


def core(context: Any) -> run_operations.RunCalls:
    """Return the core, with the credentials of an action's context."""
    access = _Access(context)
    return run_operations.RunCalls(
        run_service.Runs(access.heat, access.store, who=access.who)
    )


def fleet_core(context: Any) -> run_operations.OperationCalls:
    """Return the same for operations on many servers."""
    access = _Access(context)
    return run_operations.OperationCalls(
        fleets.Fleets.with_own_key(access.heat, access.store, who=access.who),
        access.heat,
    )


def _call(context: Any, operation: str, arguments: dict[str, Any]) -> Any:
    return getattr(core(context), operation)(**arguments)


def _call_fleet(
    context: Any, operation: str, arguments: dict[str, Any]
) -> Any:
    return getattr(fleet_core(context), operation)(**arguments)


_action = making.Maker(__name__, _call, report=results.error)

Trigger = _action(run_operations.RunCalls.trigger)
Show = _action(run_operations.RunCalls.show)
Cancel = _action(run_operations.RunCalls.cancel)

_fleet_action = making.Maker(__name__, _call_fleet, report=results.error)

Operate = _fleet_action(run_operations.OperationCalls.operate)
Advance = _fleet_action(run_operations.OperationCalls.advance)
