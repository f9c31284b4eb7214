# SPDX-License-Identifier: Apache-2.0
"""What a deployment that goes has had in the object store, and cleans up."""

import contextlib

from heat_plugins import errors
from heat_plugins.engine import heat_types
from heat_plugins.engine import hub as hubs
from heat_plugins.engine import rows
from heat_plugins.engine import run_ledgers
from heat_plugins.objectstore import cleaning
from heat_plugins.resources import transports
from heat_plugins.runs.records import record_names as run_names
from heat_plugins.signals import signal_names


class Sweep:
    """Cleans up the object store behind a deployment that goes.

    :param deployment: the resource.

    It can be run again after it was interrupted or has failed.
    """

    def __init__(self, deployment: heat_types.Deployment) -> None:
        self._deployment = deployment
        container = deployment.data().get(rows.CONTAINER_KEY) or ''
        # Who hands in a stack for adoption may name any.
        is_ours = container.startswith(signal_names.container(''))
        self.container = container if is_ours else None

    def run(self) -> None:
        """Delete the deployment's signals; the last one's container, too.

        :raises errors.ServiceError: the object store did not do it.
        """
        self._run_for_heats()
        container = self.container
        if container is None:
            return
        deployment = self._deployment
        hub = transports.hub_for(deployment)
        hub.call(deployment.stack, lambda: self._run(hub, container))
        self.container = None

    def _run(self, hub: hubs.Hub, container: str) -> None:
        deployment = self._deployment
        runs_open = run_names.open_folder(deployment.resource_id)
        has_runs = True
        if deployment.data().get(rows.CONTAINER_KEY) is not None:
            hub.watcher.forget(deployment.resource_id)
            signals = signal_names.folder(deployment.resource_id)
            there = hub.below(container, runs_open, signals)
            mine = [name for name in there if name.startswith(signals)]
            has_runs = len(mine) < len(there)
            cleaning.delete(hub.store, container, mine)
            # Before asking for others, so that of two that go at the same
            # time at least one finds itself the last.
            deployment.data_delete(rows.CONTAINER_KEY)
        if self._in_use(container):
            if has_runs:
                run_ledgers.withdraw(
                    deployment,
                    hub.store,
                    container,
                    of=deployment.resource_id,
                )
            return
        run_ledgers.withdraw(deployment, hub.store, container)
        hub.drop_container(container)
        if self._in_use(container) and container == hub.container:
            # Somebody came meanwhile, with a URL to what was there.
            hub.signer()

    def _in_use(self, container: str) -> bool:
        return rows.container_in_use(
            self._deployment.context,
            # Not always ours: an adopted stack has that of its former life.
            container.removeprefix(signal_names.container('')),
            container,
        )

    def _run_for_heats(self) -> None:
        """Clean up what Heat's own class has left of a signal.

        It kept one object for each deployment, in a container for each stack.
        """
        deployment = self._deployment
        name = deployment.data().get('swift_signal_object_name')
        if not name:
            return
        hub = transports.hub_for(deployment)

        def clean_up() -> None:
            container = deployment.stack.id
            hub.store.delete_object(container, name)
            # Others may use it, or have deleted it.
            with contextlib.suppress(errors.NoObject, errors.Conflict):
                hub.store.delete_container(container)

        hub.call(deployment.stack, clean_up)
        deployment.data_delete('swift_signal_object_name')
        deployment.data_delete('swift_signal_url')
