# SPDX-License-Identifier: Apache-2.0
"""What the deployments of one root stack share in one engine process.

A hub has one context, with the stack's stored credentials, one connection to
the object store, what signs URLs of the stack's container, and the watcher. It
lives until the last deployment of the root stack is deleted, or until many
others were used since: the next action finds the token, the storage URL and
the container ready.

No thread holds a lock here during a request to the object store: that may take
a minute to fail, and must not delay those that wait for a signal or a
cancellation.
"""

from collections import abc
import threading

from heat.common import context as heat_context
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine.database import rows
from heat_plugins.engine.shared import account
from heat_plugins.engine.shared import cancellation
from heat_plugins.engine.shared import contents
from heat_plugins.engine.shared import signing
from heat_plugins.engine.shared import turns
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from heat_plugins.signals import arrivals
from heat_plugins.signals import live
from heat_plugins.signals import paces
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# Signals to fetch at a time, and seconds after which one that does not come
# holds up no other. Of those fetched all at once even the first comes late.
_FETCHES = 3
_FETCH_LEASE = 1.0

# How many hubs without a waiting deployment to keep.
_IDLE_HUBS = 256

# How often to ask whether deployments have ended without their signal.
_ROWS_SECONDS = 3

# After how long the store deletes what tells a server to stop.
_STOP_SECONDS = 3600


def hub_for(stack: heat_types.Stack, root_stack_id: str) -> 'Hub':
    """Return the hub of a stack's root stack.

    It sends no request, and so cannot fail.

    :param stack: any `heat.engine.stack.Stack` below that root.
    """
    return _hubs.get((stack.context.project_id, root_stack_id))


def in_background(
    do: abc.Callable[..., object], *args: object
) -> abc.Callable[[], object]:
    """Call a function in a thread that ends with the process.

    :returns: what waits until the thread has ended.
    """
    thread = threading.Thread(target=do, args=args, daemon=True)
    thread.start()
    return thread.join


def tidy(stack: heat_types.Stack, root_stack_id: str) -> None:
    """Tidy up the hub of a stack's root stack, if there is one."""
    hub = _hubs.find((stack.context.project_id, root_stack_id))
    if hub is not None:
        hub.tidy()


def forget(hub: 'Hub') -> None:
    """Forget a hub whose root stack no longer has a deployment.

    The connections of a hub stay open for as long as it is kept.
    """
    _hubs.forget(hub)


class Hub(account.Account):
    """The shared side of one root stack; see the module."""

    def __init__(self, root_stack_id: str) -> None:
        super().__init__(root_stack_id)
        options = cfg.CONF.heat_plugins
        self.container = signal_names.container(root_stack_id)
        self.watcher = watcher.Watcher(
            self,
            watcher.WatchLimits(
                polls=paces.PollLimits(
                    fast=options.signal_poll_interval_fast,
                    interval=options.signal_poll_interval,
                    interval_max=options.signal_poll_interval_max,
                ),
                rows=_ROWS_SECONDS,
                direct=options.signal_direct_look_interval,
            ),
            stack_id=root_stack_id,
        )
        self._fetching = turns.Turns(_FETCH_LEASE, places=_FETCHES)
        self._poller = arrivals.Poller(self.container)
        self.cancellation = cancellation.Cancellation(root_stack_id)
        # Heat's database does not authenticate its callers.
        self._database = heat_context.get_admin_context()
        self.signing = signing.Signing(self.container, lambda: self.store)
        # Signals that were taken, and what waits until the last of them that
        # left the bin are deleted.
        self._bin = cleaning.Bin()
        self._await_emptied: abc.Callable[[], object] = lambda: None
        self.contents = contents.Contents(
            self.container, lambda: self.store, lambda: self._await_emptied()
        )

    def adopt(self, stack: heat_types.Stack) -> None:
        """Take the stored credentials of a stack, if there is need."""
        self.signing.allow(stack.timeout_secs())
        before = self._store
        super().adopt(stack)
        if self._store is not before:
            self.signing.forget()

    def fetch(self, name: str, limit: int) -> bytes:
        """Fetch a signal in its turn; see `stores.ObjectStore.get_object`."""
        with self._fetching.turn():
            return self.fetch_now(name, limit)

    def fetch_now(self, name: str, limit: int) -> bytes:
        """Fetch a signal, whatever else is being fetched."""
        return self._try(
            lambda: self.store.get_object(self.container, name, limit)
        )

    def discard(self, name: str) -> None:
        """Delete a signal that was taken, before long.

        Those that are taken at about the same time are deleted together,
        when no others follow them: the object store then has nothing better
        to do.
        """
        self._bin.add(name)

    def request_stop(self, name: str) -> None:
        """Tell a server to stop an action; what fails is logged."""
        try:
            self.store.put_object(
                self.container,
                live.control_name(name),
                b'{}',
                lifetime=_STOP_SECONDS,
            )
        except errors.ServiceError as exc:
            LOG.warning(
                'Cannot tell the server of %(name)s to stop: %(error)s',
                {'name': name, 'error': exc},
            )

    def tidy(self) -> None:
        """Delete the signals that were read, if no deployment still waits."""
        if not len(self.watcher):
            self._empty_bin(is_last=True)

    def _empty_bin(self, *, is_last: bool) -> None:
        """Delete what was taken, in a thread: nothing must wait for that.

        What the end of the process leaves goes with the container.
        """
        taken = self._bin.take(is_last=is_last)
        if taken:
            self._await_emptied = in_background(self._delete_taken, taken)

    def _delete_taken(self, taken: abc.Collection[str]) -> None:
        try:
            self._try(
                lambda: cleaning.delete(self.store, self.container, taken)
            )
        except errors.ServiceError as exc:
            LOG.info(
                'Cannot delete signals %(names)s, which were read; they stay '
                'in container %(container)s until their deployments are '
                'deleted: %(error)s',
                {
                    'names': ', '.join(taken),
                    'container': self.container,
                    'error': exc,
                },
            )

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer work; see `signing.Signing`."""
        return self.signing.key_holds(signer)

    # watcher.SignalSource

    def names(self, wanted: abc.Collection[str]) -> abc.Collection[str]:
        """List the signals; a container that is gone is made again."""
        try:
            names = self._try(lambda: self._poller.poll(self.store, wanted))
        except errors.NoObject:
            self.signing.forget()
            self.signing.signer()
            LOG.warning(
                'Container %s was deleted while deployments wait for signals '
                'in it. heat-engine creates it again; signals that it held '
                'are lost',
                self.container,
            )
            return ()
        self.signing.see()
        self._empty_bin(is_last=False)
        return names

    def rows(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, watcher.WatchedRow]:
        """Read deployments; see `watcher.SignalSource`."""
        try:
            return rows.read(self._database, ids)
        except db_exception.DBError as exc:
            raise rows.unavailable(exc) from exc

    def drop_empty_container(self) -> None:
        """Delete the container if it is there, and nothing in it."""
        try:
            self.store.delete_container(self.container)
        except (errors.NoObject, errors.Conflict):
            return
        self.signing.forget()

    def drop_container(self, container: str) -> None:
        """Delete a container and what is left in it; see `cleaning.drop`."""
        # They go with it.
        self._bin.take(is_last=True)
        try:
            cleaning.drop(self.store, container)
        finally:
            self.contents.forget()
            self.signing.forget()


# By project and root stack.
_hubs: process.Shared[tuple[str, str], Hub] = process.Shared(
    lambda key: Hub(key[1]), lambda hub: not len(hub.watcher), _IDLE_HUBS
)
