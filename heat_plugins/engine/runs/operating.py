# SPDX-License-Identifier: Apache-2.0
"""How a signal starts an operation on the deployments that were signalled."""

from collections import abc
import threading
from typing import Any

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import wording
from heat_plugins.engine import heat_types
from heat_plugins.engine import transports
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets
from heat_plugins.runs.start import trigger_signals


def operate(
    resource: heat_types.Deployment,
    wanted: trigger_signals.Trigger,
    limits: operations.OperationLimits,
    members: abc.Iterable[Any],
) -> str:
    """Record an operation; return what the event of the signal says.

    Any engine of the cloud advances it.

    :param resource: what was signalled.
    :param members: the deployments to run the action on.
    :raises errors.Error: it cannot be started.
    """
    offered: list[targets.Target] = []
    refusals = []
    for member in members:
        try:
            offered.append(member.run_target(wanted))
        except errors.Refused as exc:
            refusals.append(f'{member.name}: {exc}')
    if not offered:
        raise errors.Refused(
            refusals[0] if refusals else 'it has no deployments'
        )
    hub = transports.hub_for(resource)

    def create() -> operations.Operation:
        advancer = fleets.Fleets.with_own_key(
            own_heat.Heat(resource.rpc_client(), resource.context),
            hub.store,
            who=run_ledgers.WHO,
            # Heat's contexts are not for several threads.
            pool=pools.Pool(workers=1),
        ).create(
            fleet_targets.Chosen(targets=offered, description=resource.name),
            limits,
            starting.Order(action=wanted.action, inputs=wanted.inputs),
        )
        advancer.release()
        return advancer.operation

    operation = hub.call(resource.stack, create)
    # Not only in the next scan.
    threading.Thread(
        target=fleet_watching.look_for, args=(operation.id,), daemon=True
    ).start()
    event = (
        f'operation {operation.id} of {wanted.action} has started on '
        + wording.counted(len(offered), 'server')
    )
    return '; left out: '.join([event, *refusals[:1]])
