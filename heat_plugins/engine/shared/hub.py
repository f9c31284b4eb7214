# SPDX-License-Identifier: Apache-2.0
"""What the deployments of one root stack share in one engine process.

A hub has one context, with the stack's stored credentials, one connection to
the object store, the signer of the stack's container, and the watcher. It
lives until the last deployment of the root stack is deleted, or until many
others were used since: the next action finds the token, the storage URL and
the container ready.

No thread holds a lock here during a request to the object store: that may take
a minute to fail, and must not delay those that wait for a signal or a
cancellation.
"""

import collections
from collections import abc
import math
import threading
import time

from heat.common import context as heat_context
from heat.common import crypt
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows
from heat_plugins.engine.shared import account
from heat_plugins.engine.shared import cancellation
from heat_plugins.engine.shared import turns
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import probes
from heat_plugins.objectstore import sharing
from heat_plugins.signals import arrivals
from heat_plugins.signals import live
from heat_plugins.signals import pace
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

# For how long to believe that the key of an account is what it was.
_ACCOUNT_KEY_SECONDS = 300

# For how long to believe that a container is there which was seen.
_CONTAINER_SECONDS = 10

# After how long the store deletes what tells a server to stop.
_STOP_SECONDS = 3600

# Seconds for which deployments that are deleted share a listing.
_LISTING_SECONDS = 1

# Seconds for which AUTO skips an object store after a refusal.
_REFUSAL_SECONDS = 300

# The same after a refused token, which is often temporary.
_TOKEN_REFUSAL_SECONDS = 30

_hubs: collections.OrderedDict[tuple[str, str], 'Hub'] = (
    collections.OrderedDict()
)
_lock = threading.Lock()


def temp_url_secret() -> str | None:
    """Return what TempURL keys are derived from.

    None if that would be what Heat's source publishes.
    """
    secret: str | None = cfg.CONF.heat_plugins.temp_url_secret
    if secret:
        return secret
    default = next(
        opt.default
        for opt in crypt.auth_opts
        if opt.name == 'auth_encryption_key'
    )
    key: str | None = cfg.CONF.auth_encryption_key
    return None if key == default else key


def hub_for(stack: heat_types.Stack, root_stack_id: str) -> 'Hub':
    """Return the hub of a stack's root stack.

    It sends no request, and so cannot fail.

    :param stack: any `heat.engine.stack.Stack` below that root.
    """
    key = (stack.context.project_id, root_stack_id)
    with _lock:
        hub = _hubs.get(key)
        if hub is None:
            hub = _hubs[key] = Hub(root_stack_id)
            _forget_idle()
        _hubs.move_to_end(key)
    return hub


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
    hub = _hubs.get((stack.context.project_id, root_stack_id))
    if hub is not None:
        hub.tidy()


def forget(hub: 'Hub') -> None:
    """Forget a hub whose root stack no longer has a deployment.

    The connections of a hub stay open for as long as it is kept.
    """
    with _lock:
        for key, kept in list(_hubs.items()):
            if kept is hub and not len(hub.watcher):
                del _hubs[key]


def _forget_idle() -> None:
    idle = [key for key, hub in _hubs.items() if not len(hub.watcher)]
    for key in idle[: max(0, len(idle) - _IDLE_HUBS)]:
        del _hubs[key]


class Hub(account.Account):
    """The shared side of one root stack; see the module."""

    def __init__(self, root_stack_id: str) -> None:
        super().__init__(root_stack_id)
        options = cfg.CONF.heat_plugins
        self.container = signal_names.container(root_stack_id)
        self.watcher = watcher.Watcher(
            self,
            watcher.Limits(
                polls=pace.Limits(
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
        self._action_limit = 0
        self._signer: keys.Signer | None = None
        self._signer_since = 0.0
        self._former_signer: keys.Signer | None = None
        self._signer_attempt: sharing.Attempt[keys.Signer] = sharing.Attempt()
        # When the container was last seen.
        self._seen_at = 0.0
        self._refusal: errors.ServiceError | None = None
        self._refused_at = 0.0
        # Signals that were taken, and what waits until the last of them that
        # left the bin are deleted.
        self._bin = cleaning.Bin()
        self._await_emptied: abc.Callable[[], object] = lambda: None
        # All that lay in the container, and when that was listed.
        self._listed: tuple[float, abc.Collection[str]] = (-math.inf, ())
        # When there was too much for that, and what was said of it.
        self._overfull: tuple[float, errors.TooMany | None] = -math.inf, None
        self._listings: sharing.Rounds[abc.Collection[str]] = sharing.Rounds()
        # When there was none to be had.
        self._shut_at = -math.inf

    def adopt(self, stack: heat_types.Stack) -> None:
        """Take the stored credentials of a stack, if there is need."""
        self._action_limit = max(self._action_limit, stack.timeout_secs())
        before = self._store
        super().adopt(stack)
        if self._store is not before:
            self._forget_signer()

    def fetch(self, name: str, limit: int) -> bytes:
        """Fetch a signal in its turn; see `store.ObjectStore.get_object`."""
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
        """Tell a server to stop an action; see `outside.Signals`."""
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

    def leave(self, ticket: watcher.Ticket) -> None:
        """Stop polling for a signal; see `watcher.Watcher.leave`."""
        self.watcher.leave(ticket)

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

    def signer(self, *, certain: bool = False) -> keys.Signer:
        """Return what signs URLs of the container; makes both if need be.

        :param certain: whether to look if the container is still there. For
            as long as no deployment has a URL to it, any engine may drop it.
        :raises errors.ServiceError: as `keys.KeyKeeper.ensure`.
        """
        with self._lock:
            signer = self._signer
            if signer is not None and self._is_good(signer, certain):
                return signer
            attempt = self._signer_attempt
        return attempt.share(lambda: self._new_signer(attempt))

    def _is_good(self, signer: keys.Signer, certain: bool) -> bool:
        """Say whether the signer at hand may be used."""
        now = time.monotonic()
        if certain and now - self._seen_at > _CONTAINER_SECONDS:
            return False
        age = now - self._signer_since
        of_container = signer.kind == keys.CONTAINER
        return of_container or age <= _ACCOUNT_KEY_SECONDS

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer work; see `probes.holds`.

        If they do not, the next URL is made with the key that counts now.
        """
        if probes.holds(self.store, signer):
            return True
        if self._signer is not None and self._signer.key == signer.key:
            self._forget_signer()
        return False

    def _new_signer(
        self, attempt: sharing.Attempt[keys.Signer]
    ) -> keys.Signer:
        try:
            signer = self._keeper().ensure(self.container, self._former_signer)
        except (errors.TempURLUnusable, errors.NotLetIn) as exc:
            self._refusal, self._refused_at = exc, time.monotonic()
            raise
        with self._lock:
            self._refusal = None
            self._former_signer = signer
            # Or else the container may have been dropped meanwhile.
            if attempt is self._signer_attempt:
                self._signer = signer
                self._signer_since = self._seen_at = time.monotonic()
        return signer

    def _forget_signer(self) -> None:
        """Let the next deployment that needs the container recreate it."""
        with self._lock:
            self._signer = None
            self._signer_attempt = sharing.Attempt()

    @property
    def refusal(self) -> errors.ServiceError | None:
        """Why there were no TempURLs to be had a short while ago, if so."""
        refusal = self._refusal
        if refusal is None:
            return None
        believed = _REFUSAL_SECONDS
        if refusal.may_pass:
            believed = _TOKEN_REFUSAL_SECONDS
        age = time.monotonic() - self._refused_at
        return refusal if age <= believed else None

    def _keeper(self) -> keys.KeyKeeper:
        options = cfg.CONF.heat_plugins
        return keys.KeyKeeper(
            self.store,
            secret=temp_url_secret(),
            digests=options.temp_url_digests,
            overlap=self._longest_lifetime(),
        )

    def _longest_lifetime(self) -> int | None:
        """Return the most seconds that a URL may live; None if no limit."""
        options = cfg.CONF.heat_plugins
        if options.temp_url_lifetime_max is None:
            return None
        asked: int = options.temp_url_lifetime_max
        return max(asked, self._action_limit + int(options.temp_url_margin))

    # watcher.Source

    def names(self, wanted: abc.Collection[str]) -> abc.Collection[str]:
        """List the signals; a container that is gone is made again."""
        try:
            found = self._try(lambda: self._poller.poll(self.store, wanted))
        except errors.NoObject:
            self._forget_signer()
            self.signer()
            LOG.warning(
                'Container %s was deleted while deployments wait for signals '
                'in it. heat-engine creates it again; signals that it held '
                'are lost',
                self.container,
            )
            return ()
        self._seen_at = time.monotonic()
        self._empty_bin(is_last=False)
        return found

    def rows(self, ids: abc.Collection[str]) -> abc.Mapping[str, watcher.Row]:
        """Read deployments; see `watcher.Source`."""
        try:
            return rows.read(self._database, ids)
        except db_exception.DBError as exc:
            raise rows.unavailable(exc) from exc

    # Going

    def below(self, container: str, *folders: str) -> abc.Collection[str]:
        """List the objects in folders of a container; none if there is none.

        Those who go within a second share a listing. What arrives in that
        second goes with the container, like all that arrives later.
        """
        try:
            if container != self.container:
                there = cleaning.everything(self.store, container)
            else:
                there = self._listings.share(lambda _: self._everything(), {})
        except errors.TooMany:
            there = [
                name
                for folder in folders
                for name in cleaning.everything(self.store, container, folder)
            ]
        return [name for name in there if name.startswith(folders)]

    def _everything(self) -> abc.Collection[str]:
        too_many_at, too_many = self._overfull
        if time.monotonic() - too_many_at <= arrivals.OVERFULL_SECONDS:
            raise errors.TooMany(str(too_many))
        listed_at, found = self._listed
        if time.monotonic() - listed_at > _LISTING_SECONDS:
            # Else both would delete the same.
            self._await_emptied()
            listed_at = time.monotonic()
            try:
                found = cleaning.everything(self.store, self.container)
            except errors.TooMany as exc:
                self._overfull = listed_at, exc
                raise
            except (errors.Denied, errors.TempURLUnusable) as exc:
                if not exc.may_pass:
                    self._shut_at = listed_at
                raise
            self._listed = listed_at, found
            self._shut_at = -math.inf
        return found

    @property
    def is_shut(self) -> bool:
        """Whether a short while ago nothing could be listed for good.

        There is no object store, or it refuses the stack's owner. This says
        nothing about TempURLs, unlike `refusal`: commands may have started
        runs where this engine cannot use TempURLs.
        """
        return time.monotonic() - self._shut_at <= _REFUSAL_SECONDS

    def drop_empty_container(self) -> None:
        """Delete the container if it is there, and nothing in it."""
        try:
            self.store.delete_container(self.container)
        except (errors.NoObject, errors.Conflict):
            return
        self._forget_signer()

    def drop_container(self, container: str) -> None:
        """Delete a container and what is left in it; see `cleaning.drop`."""
        # They go with it.
        self._bin.take(is_last=True)
        try:
            cleaning.drop(self.store, container)
        finally:
            self._listed = -math.inf, ()
            self._forget_signer()
