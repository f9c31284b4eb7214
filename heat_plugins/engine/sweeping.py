# SPDX-License-Identifier: Apache-2.0
"""Clean up the object store behind a deployment that is deleted."""

from collections import abc
import contextlib

from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.objectstore import cleaning
from heat_plugins.runs.records import record_names
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)


class Sweep:
    """Cleans up behind one deployment or group that is deleted.

    :param deployment: the resource.
    :param ends_runs: whether to end its runs where it holds no URL itself.

    It can be run again after it was interrupted or has failed.
    """

    def __init__(
        self, deployment: heat_types.Deployment, *, ends_runs: bool = True
    ) -> None:
        self._deployment = deployment
        container = deployment.data().get(rows.CONTAINER_KEY) or ''
        # Who hands in a stack for adoption may name any.
        is_ours = container.startswith(signal_names.container(''))
        self.container = container if is_ours else None
        self._ends_runs = (
            ends_runs
            and self.container is None
            and deployment.resource_id is not None
        )

    def run(self) -> None:
        """Delete the deployment's signals; the last one's container, too.

        :raises errors.ServiceError: the object store did not do it.
        """
        hub = transports.hub_for(self._deployment)
        if self._ends_runs and not hub.contents.is_shut:
            # Where it is shut, asking costs a token to hear the same again.
            self._end_runs(hub)
        self._ends_runs = False
        self._run_for_heats(hub)
        container = self.container
        if container is None:
            return
        hub.call(self._deployment.stack, lambda: self._run(hub, container))
        self.container = None

    def _run(self, hub: hubs.Hub, container: str) -> None:
        deployment = self._deployment
        runs_open = record_names.open_folder(deployment.resource_id)
        has_runs = True
        if deployment.data().get(rows.CONTAINER_KEY) is not None:
            hub.watcher.forget(deployment.resource_id)
            signals = signal_names.folder(deployment.resource_id)
            there = hub.contents.below(container, runs_open, signals)
            mine = [name for name in there if name.startswith(signals)]
            has_runs = len(mine) < len(there)
            cleaning.delete(hub.store, container, mine)
            # Before asking for others, so that of two that go at the same
            # time at least one finds itself the last.
            deployment.data_delete(rows.CONTAINER_KEY)
        if self._in_use(container):
            if has_runs:
                self._withdraw_own_runs(hub, container)
            return
        run_ledgers.withdraw(deployment, hub.store, container)
        hub.drop_container(container)
        if container != hub.container:
            return
        if self._in_use(container):
            # A deployment came meanwhile, with a URL into the container.
            hub.signing.signer()
        else:
            hubs.forget(hub)

    def _in_use(self, container: str) -> bool:
        return resources.container_in_use(
            self._deployment.context,
            # Not always ours: an adopted stack has that of its former life.
            container.removeprefix(signal_names.container('')),
            container,
        )

    def _withdraw_own_runs(self, hub: hubs.Hub, container: str) -> None:
        run_ledgers.withdraw(
            self._deployment,
            hub.store,
            container,
            of=self._deployment.resource_id,
        )

    def _end_runs(self, hub: hubs.Hub) -> None:
        """Withdraw the runs that go on; the last deployment deletes all.

        A deployment that holds a URL does so when it cleans up after that.
        """
        try:
            hub.call(self._deployment.stack, lambda: self._end_runs_in(hub))
        except errors.ServiceError as exc:
            # Most likely there is no object store, and so no runs.
            LOG.info(
                '%(deployment)s: container %(container)s may hold leftover '
                'records of its runs: %(error)s',
                {
                    'deployment': self._deployment.label,
                    'container': hub.container,
                    'error': exc,
                },
            )

    def _end_runs_in(self, hub: hubs.Hub) -> None:
        deployment = self._deployment
        is_last = not (
            resources.has_deployments(deployment.context, hub.root_stack_id)
            or self._in_use(hub.container)
        )
        mine = record_names.open_folder(deployment.resource_id)
        has_runs = hub.contents.below(hub.container, mine)
        if is_last:
            run_ledgers.withdraw(deployment, hub.store, hub.container)
            hub.drop_container(hub.container)
            hubs.forget(hub)
        elif has_runs:
            self._withdraw_own_runs(hub, hub.container)

    def _run_for_heats(self, hub: hubs.Hub) -> None:
        """Clean up what Heat's own class has left of a signal.

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
    """What is left to do for a deployment or a group once DELETE has ended.

    :param delete: deletes all that was made in Heat and Keystone; it can be
        repeated.
    """

    def __init__(
        self, deployment: heat_types.Deployment, delete: abc.Callable[[], None]
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
            self._sweep.run()
        except errors.ServiceError as exc:
            self._outage = retrying.Outage.of(exc, self._outage)
            budget = cfg.CONF.heat_plugins.swift_error_budget
            is_passing = exc.may_pass or isinstance(exc, errors.Conflict)
            if is_passing and self._outage.seconds <= budget:
                return False
            _leave_behind(self._deployment, 'DELETE', self._sweep, exc)
        return True


def forget_former_life(deployment: heat_types.Deployment) -> None:
    """Clean up behind a deployment that was adopted.

    Its last signal lay in the container of the abandoned stack.
    """
    sweep = Sweep(deployment, ends_runs=False)
    try:
        sweep.run()
    except errors.ServiceError as exc:
        _leave_behind(deployment, 'ADOPT', sweep, exc)


def _leave_behind(
    deployment: heat_types.Deployment,
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
        f'Cannot clean up container {sweep.container}, which may remain: '
        f'{exc}',
    )
