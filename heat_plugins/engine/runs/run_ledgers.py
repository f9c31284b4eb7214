# SPDX-License-Identifier: Apache-2.0
"""Runs of actions, as far as an engine has to do with them."""

from collections import abc
import threading
from typing import Any

from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.objectstore import stores
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs import summary
from heat_plugins.runs.follow import settling
from heat_plugins.runs.records import ledgers
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

#: Whose name is in the record of a run that a signal has started: Heat does
#: not tell a resource who has sent it.
WHO = 'a signal'

#: No caller waits for what it finds.
PACE = settling.Pace(fast=4.0, first=4.0, most=30.0, nap=30.0)

#: The most runs that an attribute lists.
SHOWN = 10

# A request to Heat's API that shows an attribute fails after 60 s, or after
# less (rpc_response_timeout).
_shown = process.BoundedReads(4.0)

# The root stacks whose runs are followed, and the ledger of the last that has
# started since their thread has looked for one. The stack may have been given
# other credentials by then, and the old ones been taken away.
_followed: dict[str, ledgers.Ledger | None] = {}
_lock = threading.Lock()


def ledger_for(
    deployment: heat_types.Deployment,
    hub: hubs.Hub,
    reading_project: str | None,
) -> ledgers.Ledger:
    """Return what knows the runs of a deployment's root stack.

    :param hub: of that stack.
    :param reading_project: see `deliveries.reading_project`.
    """
    heat = own_heat.OwnHeat(
        deployment.rpc_client(), deployment.context, reading_project
    )
    return ledgers.Ledger(
        services.Services.of(
            heat,
            hub.store,
            reaches=fleet_watching.REACHES,
            who=WHO,
            keep=kept(),
            sign=lambda container: hub.signing.signer(certain=True),
            known_hooks=cfg.CONF.heat_plugins.known_hooks,
        )
    )


def latest(
    deployment: heat_types.Deployment,
    hub: hubs.Hub,
    reading_project: str | None,
    ids: abc.Collection[str],
) -> abc.Mapping[str, list[dict[str, Any]]] | None:
    """Return what has become of the last runs of deployments, by ID.

    The newest come first. None if the object store does not tell in time: to
    show or update a stack must neither fail nor wait for long because of that.
    What it tells late is for those who ask within a minute.

    :param deployment: one of the root stack.
    :param reading_project: see `ledger_for`.
    """

    def read() -> abc.Mapping[str, list[runs.Run]]:
        return hub.call(
            deployment.stack,
            lambda: ledger_for(deployment, hub, reading_project).latest_of(
                hub.root_stack_id, ids, SHOWN
            ),
        )

    try:
        known = _shown.read(
            (hub.container, reading_project, frozenset(ids)),
            read,
            group=hub.container,
        )
    except errors.Error as exc:
        LOG.info(
            '%(deployment)s: cannot show its runs: %(error)s',
            {'deployment': deployment.label, 'error': exc},
        )
        return None
    return {
        number: [summary.of(run) for run in its]
        for number, its in known.items()
    }


def kept() -> record_names.Retention:
    """Return what the operator wants to keep of finished runs."""
    options = cfg.CONF.heat_plugins
    return record_names.Retention(
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
    run_records = records.Records(store, root_stack_id)
    heat = own_heat.OwnHeat(deployment.rpc_client(), deployment.context)
    prefix = record_names.OPEN if of is None else record_names.open_folder(of)
    try:
        withdrawn = attempts.withdraw_all(
            heat,
            run_records,
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


def follow_runs(ledger: ledgers.Ledger, root_stack_id: str) -> None:
    """See the runs of a root stack to their ends, in a thread.

    :param ledger: it is used by that thread alone.
    """
    with _lock:
        is_new = root_stack_id not in _followed
        _followed[root_stack_id] = ledger
    if is_new:
        threading.Thread(
            target=watch_runs,
            args=(root_stack_id,),
            name=f'runs of {root_stack_id}',
            daemon=True,
        ).start()


def watch_runs(root_stack_id: str) -> None:
    """See runs to their ends, also those that begin meanwhile."""
    while ledger := _next(root_stack_id):
        try:
            _see_to_the_end(ledger, root_stack_id)
        except Exception as exc:
            LOG.warning(
                'Cannot follow the runs of stack %(stack)s; the next command '
                'or run settles them: %(error)s: %(message)s',
                {
                    'stack': root_stack_id,
                    'error': type(exc).__name__,
                    'message': exc,
                },
            )


def _see_to_the_end(ledger: ledgers.Ledger, root_stack_id: str) -> None:
    waiter = ledger.waiter(
        root_stack_id, watch=_tell_end, pace=PACE, everything=True
    )
    waiter.step()
    while waiter.pending:
        waiter.step()


def _tell_end(run: runs.Run) -> None:
    """Log that a run has ended; its reason may be in a server's words."""
    if run.ended:
        LOG.info(
            'Run %(run)s of %(action)s on %(resource)s of stack %(stack)s, '
            '%(stack_id)s, has ended: %(state)s',
            {
                'run': run.id,
                'action': run.action,
                'resource': run.resource,
                'stack': run.stack_name,
                'stack_id': run.stack_id,
                'state': run.state.value,
            },
        )


def _next(root_stack_id: str) -> ledgers.Ledger | None:
    """Return the ledger of what has started; None if there is nothing."""
    with _lock:
        ledger = _followed.pop(root_stack_id)
        if ledger is not None:
            _followed[root_stack_id] = None
    return ledger
