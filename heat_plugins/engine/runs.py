# SPDX-License-Identifier: Apache-2.0
"""Runs of actions, as far as an engine has to do with them."""

from oslo_log import log as logging

from heat_plugins.runs import orphans
from heat_plugins.runs import records
from heat_plugins.signals import errors
from heat_plugins.signals import names
from heat_plugins.signals import store as store_module

LOG = logging.getLogger(__name__)


class _Heat:
    """This engine's Heat, as `orchestration.Withdrawal` has it."""

    def __init__(self, deployment):
        self._rpc = deployment.rpc_client()
        self._context = deployment.context

    def delete_deployment(self, deployment_id):
        with self._rpc.ignore_error_by_name('NotFound'):
            self._rpc.delete_software_deployment(self._context, deployment_id)

    def delete_config(self, config_id):
        with self._rpc.ignore_error_by_name('NotFound'):
            self._rpc.delete_software_config(self._context, config_id)


def withdraw(
    deployment, store: store_module.ObjectStore, container: str
) -> None:
    """Take the runs of a container that goes from their servers.

    :param deployment: a resource of the stack that they belong to.
    :raises errors.SignalError: the object store did not answer.
    """
    root_stack_id = container.removeprefix(names.container(''))
    found = records.Records(store, root_stack_id)
    try:
        withdrawn = orphans.withdraw(_Heat(deployment), found)
    except errors.SignalError:
        raise
    except Exception:
        # A stack has to go all the same.
        LOG.exception(
            'Not all runs of the deployments of stack %s could be taken '
            'back from their servers',
            root_stack_id,
        )
        return
    if withdrawn:
        LOG.info(
            'Runs %(runs)s end with stack %(stack)s',
            {'runs': ', '.join(withdrawn), 'stack': root_stack_id},
        )
