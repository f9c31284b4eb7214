# SPDX-License-Identifier: Apache-2.0
"""Runs of actions, as far as an engine has to do with them."""

from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.shared import hubs
from heat_plugins.objectstore import stores
from heat_plugins.runs import withdrawal
from heat_plugins.runs.records import ledgers
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.records import retention
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

#: Whose name is in the record of a run that a signal has started: Heat does
#: not tell a resource who has sent it.
WHO = 'a signal'


def ledger_for(
    deployment: heat_types.Deployment,
    hub: hubs.Hub,
    reading_project: str | None,
) -> ledgers.Ledger:
    """Return what knows the runs of a deployment's root stack.

    :param hub: of that stack.
    :param reading_project: see `deliveries.reading_project`.
    """
    return ledgers.Ledger(
        own_heat.Heat(
            deployment.rpc_client(),
            deployment.context,
            reading_project,
        ),
        hub.store,
        who=WHO,
        keep=kept(),
        sign=lambda container: hub.signing.signer(certain=True),
        known_hooks=cfg.CONF.heat_plugins.known_hooks,
    )


def kept() -> retention.Retention:
    """Return what the operator wants to keep of finished runs."""
    options = cfg.CONF.heat_plugins
    return retention.Retention(
        number=options.runs_kept,
        days=options.runs_kept_days,
        log_limit=options.run_log_limit,
    )


def withdraw(
    deployment: heat_types.Deployment,
    store: stores.ObjectStore,
    container: str,
    of: str | None = None,
) -> None:
    """Take runs from their servers whose records go, or their deployment.

    :param deployment: a resource of the stack that they belong to.
    :param of: the id of a deployment; None for all runs of the container.
    :raises errors.ServiceError: the object store did not answer.
    """
    root_stack_id = container.removeprefix(signal_names.container(''))
    found = records.Records(store, root_stack_id)
    heat = own_heat.Heat(deployment.rpc_client(), deployment.context)
    prefix = record_names.OPEN if of is None else record_names.open_folder(of)
    try:
        withdrawn = withdrawal.withdraw_all(
            heat,
            found,
            prefix,
            server=lambda: deployment.properties[deployment.SERVER],
        )
    except errors.ServiceError:
        raise
    except Exception:
        # The stack must be deleted all the same.
        LOG.exception(
            'Cannot withdraw every run of stack %s from its server',
            root_stack_id,
        )
        return
    if withdrawn:
        LOG.info(
            'Runs %(runs)s end, because their deployments in stack %(stack)s '
            'are deleted',
            {'runs': ', '.join(withdrawn), 'stack': root_stack_id},
        )
