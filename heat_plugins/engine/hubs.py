# SPDX-License-Identifier: Apache-2.0
"""The shared side of one root stack's deployments in one engine process.

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
import copy
import math
import threading
import time
from typing import Any, TypeVar

from heat.common import context as heat_context
from heat.objects import stack as stack_objects
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine import signing
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import sharing
from heat_plugins.objectstore import stores
from heat_plugins.signals import arrivals
from heat_plugins.signals import live
from heat_plugins.signals import paces
from heat_plugins.signals import signal_names
from heat_plugins.signals import watcher

# How often to ask, in seconds.
_CANCELLATION_SECONDS = 3

# Seconds to keep polling for a stack that no caller asks about.
_MEMORY_SECONDS = 60


class Cancellation:
    """Looks for cancelled stacks below one root stack.

    Heat lets what is in progress go on when a stack's action is cancelled or
    rolled back, and does not notify it. So a resource that waits must poll;
    all that wait below one root stack in one engine process share the answer.
    """

    def __init__(self, root_stack_id: str) -> None:
        self._root_stack_id = root_stack_id
        self._polling = threading.Lock()
        # When a caller last asked about a stack, by its ID.
        self._wanted: dict[str, float] = {}
        self._seen: tuple[float, dict[str, Any]] = (0.0, {})
        self._next_poll = 0.0

    def of(self, stack: heat_types.Stack, since: float) -> bool:
        """Say whether a stack's action was cancelled or is rolled back.

        :param stack: as it was when the action began.
        :param since: when that was, by `time.monotonic`; what was read
            before says nothing about this action.
        """
        self._wanted[stack.id] = time.monotonic()
        self._poll_if_due(stack.context)
        seen_at, seen = self._seen
        traversal = seen.get(stack.id) if seen_at > since else None
        if traversal is None or (
            traversal.current_traversal == stack.current_traversal
        ):
            return False
        if not traversal.current_traversal:
            # Something else in the stack has failed; running actions may end.
            return False
        if (
            traversal.status == stack.FAILED
            or traversal.action == stack.ROLLBACK
        ):
            return True
        # Heat rolls a nested stack back by an update of it, which may begin
        # before anybody sees that it was stopped.
        root = seen.get(self._root_stack_id)
        return root is not None and (root.action, root.status) == (
            stack.ROLLBACK,
            stack.IN_PROGRESS,
        )

    def _poll_if_due(self, context: heat_types.Context) -> None:
        """Read the stacks' current updates, unless another caller does."""
        # A caller that arrives during a poll gets its answer on the next call.
        if not self._polling.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            if now < self._next_poll:
                return
            self._next_poll = now + _CANCELLATION_SECONDS
            self._wanted = {
                stack_id: wanted
                for stack_id, wanted in self._wanted.copy().items()
                if now - wanted < _MEMORY_SECONDS
            }
            wanted = {*self._wanted, self._root_stack_id}
            self._seen = now, resources.traversals(context, wanted)
        except db_exception.DBError:
            # The next caller polls again.
            self._seen = 0.0, {}
        finally:
            self._polling.release()


T = TypeVar('T')

# Seconds for which deployments that are deleted share a listing.
_LISTING_SECONDS = 1


class Contents:
    """Lists a container once for all deployments that are deleted together.

    :param store: returns the account's object store.
    :param settle: waits until what is being deleted has gone.
    """

    def __init__(
        self,
        container: str,
        store: abc.Callable[[], stores.ObjectStore],
        settle: abc.Callable[[], object],
    ) -> None:
        self._container = container
        self._store = store
        self._settle = settle
        # All that lay in the container, and when that was listed.
        self._listed: tuple[float, abc.Collection[str]] = (-math.inf, ())
        # Until when there is too much for that.
        self._overfull_until = -math.inf
        self._listings: sharing.Rounds[abc.Collection[str]] = sharing.Rounds()

    def forget(self) -> None:
        """List it again for the next caller."""
        self._listed = -math.inf, ()

    def below(self, container: str, folder: str) -> abc.Collection[str]:
        """List the objects in a folder of a container; none if there is none.

        Those who go within a second share a listing. What arrives in that
        second goes with the container, like all that arrives later.
        """
        now = time.monotonic()
        if container == self._container and now >= self._overfull_until:
            try:
                there = self._listings.share(lambda _: self._everything(), {})
                return [name for name in there if name.startswith(folder)]
            except errors.TooManyObjects:
                self._overfull_until = now + arrivals.OVERFULL_SECONDS
        return cleaning.everything(self._store(), container, folder)

    def _everything(self) -> abc.Collection[str]:
        """List the stack's container, again after some seconds."""
        listed_at, listing = self._listed
        if time.monotonic() - listed_at > _LISTING_SECONDS:
            # Else both would delete the same.
            self._settle()
            listed_at = time.monotonic()
            listing = cleaning.everything(self._store(), self._container)
            self._listed = listed_at, listing
        return listing


LOG = foreign.logger(__name__)


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
    return HUBS.get((stack.context.project_id, root_stack_id))


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
    hub = HUBS.kept.get((stack.context.project_id, root_stack_id))
    if hub is not None:
        hub.tidy()


def waiting() -> tuple[int, float]:
    """Return how many deployments wait, and the seconds of the longest."""
    watchers = [hub.watcher for hub in HUBS.values()]
    oldest = max((each.oldest for each in watchers), default=0.0)
    return sum(map(len, watchers)), oldest


class Hub:
    """The shared side of one root stack; see the module.

    Its connections stay open for as long as it is kept.

    It uses the object store as the owner of the stack, by the credentials that
    Heat has stored with that. They are loaded once, and reloaded when Keystone
    refuses them.
    """

    def __init__(self, root_stack_id: str) -> None:
        self.root_stack_id = root_stack_id
        self._context: heat_types.Context | None = None
        # Whether the context's credentials are believed to work, and whether
        # they have done so.
        self._trusted = self._proven = False
        self._store: stores.ObjectStore | None = None
        # For what is here, and never while the object store is asked.
        self._lock = threading.Lock()
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
        self.fetching = process.Turns(_FETCH_LEASE, places=_FETCHES)
        self._poller = arrivals.Poller(self.container)
        self.cancellation = Cancellation(root_stack_id)
        # Heat's database does not authenticate its callers.
        self._database = heat_context.get_admin_context()
        self.signing = signing.Signing(self.container, lambda: self.store)
        # Signals that were taken, and what waits until the last of them that
        # left the bin are deleted.
        self._bin = cleaning.Bin()
        self._await_emptied: abc.Callable[[], object] = lambda: None
        self.contents = Contents(
            self.container, lambda: self.store, lambda: self._await_emptied()
        )

    @property
    def store(self) -> stores.ObjectStore:
        """The account of the stack's project.

        :raises errors.TempURLsUnusable: no stack was adopted yet.
        """
        if self._store is None:
            raise errors.TempURLsUnusable('This stack has no object store')
        return self._store

    def adopt(self, stack: heat_types.Stack) -> None:
        """Take the stored credentials of a stack, if there is need."""
        self.signing.allow(stack.timeout_secs())
        with self._lock:
            if self._trusted:
                return
            context = self._stored_context(stack)
            self._store = context.clients.client(config.SWIFT_CLIENT)
            # Clients hold their context by a weak reference.
            self._context = context
            self._trusted, self._proven = True, False
        self.signing.forget()

    def _stored_context(self, stack: heat_types.Stack) -> heat_types.Context:
        """Return a context with the credentials that the stack has now.

        An update of the stack replaces its credentials, which the stack in
        memory does not notice.

        :raises errors.Denied: there are none that can be used.
        """
        try:
            row = stack_objects.Stack.get_by_id(
                stack.context, self.root_stack_id, eager_load=False
            )
            if row is not None:
                stack = copy.copy(stack)
                stack.user_creds_id = row.user_creds_id
            return stack.stored_context()
        except Exception as exc:
            raise errors.Denied(
                'Cannot use the stored credentials of stack '
                f'{self.root_stack_id}: {type(exc).__name__}'
            ) from exc

    def call(self, stack: heat_types.Stack, do: abc.Callable[[], T]) -> T:
        """Do something with the object store, as the owner of a stack.

        It retries once if credentials that worked are refused: an update
        of the stack by another user replaces them.

        :raises errors.Denied: there are no credentials, or they do not work.
        """
        self.adopt(stack)
        try:
            return self._try(do)
        except errors.ServiceError:
            if self._trusted or not self._proven:
                raise
        self.adopt(stack)
        return self._try(do)

    def _try(self, do: abc.Callable[[], T]) -> T:
        """Call the store; note whether it accepts the stack's credentials."""
        try:
            result = do()
        except errors.ServiceError as exc:
            if exc.is_denial:
                self._trusted = False
            raise
        self._proven = True
        return result

    def fetch(self, name: str, limit: int) -> bytes:
        """Fetch a signal in its turn; see `stores.ObjectStore.get_object`."""
        with self.fetching.turn():
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
        """Tell a server to stop an action; a failure is logged."""
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
        """Delete the taken signals in a thread, so that no caller waits.

        What the end of the process leaves goes with the container.
        """
        taken = self._bin.take(is_last=is_last)
        if taken:
            self._await_emptied = in_background(self._delete_taken, taken)

    def _delete_taken(self, taken: abc.Collection[str]) -> None:
        """Delete signals that were read; a failure is only logged."""
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
        """Delete a container and its leftovers; see `cleaning.drop`."""
        # They go with it.
        self._bin.take(is_last=True)
        try:
            cleaning.drop(self.store, container)
        finally:
            self.contents.forget()
            self.signing.forget()


#: The hubs of this process, by project and root stack.
HUBS: process.Shared[tuple[str, str], Hub] = process.Shared(
    lambda key: Hub(key[1]), lambda hub: not len(hub.watcher), _IDLE_HUBS
)
