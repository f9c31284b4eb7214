# SPDX-License-Identifier: Apache-2.0
"""Clean up the object store behind a deployment that is deleted."""

from collections import abc
import contextlib
import time

from oslo_config import cfg

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import run_room
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.objectstore import cleaning
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)


# Seconds to wait for the leaders of runs to end them; one may be dead.
_RUNS_SECONDS = 60


class Sweep:
    """Cleans up behind one deployment or group that is deleted.

    :param deployment: the resource.
    :param is_adopted: whether it stays, and what its former life has left
        goes.

    It can be run again after it was interrupted or has failed.
    """

    def __init__(
        self, deployment: heat_types.Resource, *, is_adopted: bool = False
    ) -> None:
        self._deployment = deployment
        container = deployment.data().get(rows.CONTAINER_KEY) or ''
        # Who hands in a stack for adoption may name any.
        is_ours = container.startswith(signal_names.container(''))
        self.container = container if is_ours else None
        #: For people; Heat's class named the container like the stack.
        self.what = f'container {self.container or deployment.stack.id}'
        self._is_adopted = is_adopted or deployment.resource_id is None
        self._runs_until = time.monotonic() + _RUNS_SECONDS

    def run(self) -> bool:
        """Delete the deployment's signals; the last one's container, too.

        :returns: whether all is done; if not, servers still have runs.
        :raises errors.ServiceError: the object store did not do it.
        """
        hub = transports.hub_for(self._deployment)
        if (
            not self._is_adopted
            and time.monotonic() < self._runs_until
            and not run_room.room().has_left(
                self._deployment, hub.root_stack_id
            )
        ):
            return False
        self._run_for_heats(hub)
        stack, container = self._deployment.stack, self.container
        if container is not None:
            hub.call(stack, lambda: self._run(hub, container))
            self.container = None
        elif not self._is_adopted and not resources.has_deployments(
            self._deployment.context, hub.root_stack_id
        ):
            # Runs may have made it.
            try:
                hub.call(stack, lambda: self._drop_unused(hub, hub.container))
            except errors.ServiceError as exc:
                # Most likely there is no object store, and so no container.
                LOG.info(
                    '%(deployment)s: container %(container)s may hold '
                    'leftover objects of runs: %(error)s',
                    {
                        'deployment': self._deployment.label,
                        'container': hub.container,
                        'error': exc,
                    },
                )
        return True

    def _run(self, hub: hubs.Hub, container: str) -> None:
        deployment = self._deployment
        if deployment.data().get(rows.CONTAINER_KEY) is not None:
            hub.watcher.forget(deployment.resource_id)
            signals = signal_names.folder(deployment.resource_id)
            cleaning.delete(
                hub.store, container, hub.contents.below(container, signals)
            )
            # Before asking for others, so that of two that go at the same
            # time at least one finds itself the last.
            deployment.data_delete(rows.CONTAINER_KEY)
        self._drop_unused(hub, container)

    def _drop_unused(self, hub: hubs.Hub, container: str) -> None:
        if transports.container_in_use(self._deployment, container):
            return
        hub.drop_container(container)
        if container != hub.container:
            return
        if transports.container_in_use(self._deployment, container):
            # A deployment or a run came meanwhile, with a URL into it.
            hub.signing.signer()
        else:
            hubs.HUBS.forget(hub)

    def _run_for_heats(self, hub: hubs.Hub) -> None:
        """Clean up a signal's leftovers of Heat's own class.

        It kept one object for each deployment, in a container for each stack.
        """
        deployment = self._deployment
        name = deployment.data().get('swift_signal_object_name')
        if not name:
            return

        def clean_up() -> None:
            container = deployment.stack.id
            hub.store.delete_object(container, name)
            # Others may use it, or have deleted it.
            with contextlib.suppress(errors.NoObject, errors.Conflict):
                hub.store.delete_container(container)

        hub.call(deployment.stack, clean_up)
        deployment.data_delete('swift_signal_object_name')
        deployment.data_delete('swift_signal_url')


class Removal:
    """The clean-up of a deployment or a group once DELETE has ended.

    :param delete: deletes all that was made in Heat and Keystone; it can be
        repeated.
    """

    def __init__(
        self, deployment: heat_types.Resource, delete: abc.Callable[[], None]
    ) -> None:
        self._deployment = deployment
        self._delete = delete
        # None until all is deleted.
        self._sweep: Sweep | None = None
        self._outage: retrying.Outage | None = None

    def __call__(self, outage: retrying.Outage | None) -> bool:
        """Say whether it is done; ride out passing faults of the store.

        :param outage: since when the object store is out of order, if it is.
        """
        if self._sweep is None:
            self._delete()
            self._sweep = Sweep(self._deployment)
            self._outage = outage
        try:
            return self._sweep.run()
        except errors.ServiceError as exc:
            budget = cfg.CONF.heat_plugins.swift_error_budget
            is_passing = exc.may_pass or isinstance(exc, errors.Conflict)
            if is_passing and self._outage is None:
                self._deployment.tell(
                    'DELETE',
                    f'Cannot clean up {self._sweep.what}; retrying for '
                    f'{budget} s: {exc}',
                )
            self._outage = retrying.Outage.of(exc, self._outage)
            if is_passing and self._outage.seconds <= budget:
                return False
            _leave_behind(self._deployment, 'DELETE', self._sweep, exc)
        return True


def forget_former_life(deployment: heat_types.Resource) -> None:
    """Clean up behind a deployment that was adopted.

    Its last signal lay in the container of the abandoned stack.
    """
    sweep = Sweep(deployment, is_adopted=True)
    try:
        sweep.run()
    except errors.ServiceError as exc:
        _leave_behind(deployment, 'ADOPT', sweep, exc)


def _leave_behind(
    deployment: heat_types.Resource,
    action: str,
    sweep: Sweep,
    exc: errors.ServiceError,
) -> None:
    """Tell that something may remain in the object store.

    The server cannot use it for anything, and its URL expires; that is no
    reason to keep a stack from being deleted.
    """
    deployment.warn(
        action,
        f'Cannot clean up {sweep.what}, which may remain: {exc}',
    )
