# SPDX-License-Identifier: Apache-2.0
"""What a deployment that goes has had in the object store, and cleans up."""

import contextlib

from heat_plugins.engine import rows
from heat_plugins.engine import runs
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import errors
from heat_plugins.resources import transports
from heat_plugins.runs.records import names as run_names
from heat_plugins.signals import names


class Sweep:
    """Cleans up the object store behind a deployment that goes.

    :param deployment: the resource.

    It can be run again after it was interrupted or has failed.
    """

    def __init__(self, deployment):
        self._deployment = deployment
        self.container = deployment.data().get(rows.CONTAINER_KEY)
        # Who hands in a stack for adoption may name any.
        if not (self.container or '').startswith(names.container('')):
            self.container = None

    def run(self):
        """Delete the deployment's signals; the last one's container, too.

        :raises errors.SignalError: the object store did not do it.
        """
        self._run_for_heats()
        if self.container is None:
            return
        deployment = self._deployment
        hub = transports.hub_for(deployment)
        hub.call(deployment.stack, lambda: self._run(hub))
        self.container = None

    def _run(self, hub):
        deployment = self._deployment
        runs_open = run_names.open_folder(deployment.resource_id)
        has_runs = True
        if deployment.data().get(rows.CONTAINER_KEY) is not None:
            hub.watcher.forget(deployment.resource_id)
            signals = names.folder(deployment.resource_id)
            there = hub.below(self.container, runs_open, signals)
            mine = [name for name in there if name.startswith(signals)]
            has_runs = len(mine) < len(there)
            cleaning.delete(hub.store, self.container, mine)
            # Before asking for others, so that of two that go at the same
            # time at least one finds itself the last.
            deployment.data_delete(rows.CONTAINER_KEY)
        if self._in_use():
            if has_runs:
                runs.withdraw(
                    deployment,
                    hub.store,
                    self.container,
                    of=deployment.resource_id,
                )
            return
        runs.withdraw(deployment, hub.store, self.container)
        hub.drop_container(self.container)
        if self._in_use() and self.container == hub.container:
            # Somebody came meanwhile, with a URL to what was there.
            hub.signer()

    def _in_use(self):
        return rows.container_in_use(
            self._deployment.context,
            # Not always ours: an adopted stack has that of its former life.
            self.container.removeprefix(names.container('')),
            self.container,
        )

    def _run_for_heats(self):
        """Clean up what Heat's own class has left of a signal.

        It kept one object for each deployment, in a container for each stack.
        """
        deployment = self._deployment
        name = deployment.data().get('swift_signal_object_name')
        if not name:
            return
        hub = transports.hub_for(deployment)

        def clean_up():
            container = deployment.stack.id
            hub.store.delete_object(container, name)
            # Others may use it, or have deleted it.
            with contextlib.suppress(errors.NotFound, errors.Conflict):
                hub.store.delete_container(container)

        hub.call(deployment.stack, clean_up)
        deployment.data_delete('swift_signal_object_name')
        deployment.data_delete('swift_signal_url')
