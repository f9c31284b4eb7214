# SPDX-License-Identifier: Apache-2.0
"""What the deployments of one root stack share in one engine process.

A hub has one context, with the stack's stored credentials, one connection to
the object store, the signer of the stack's container, and the watcher. It
lives as long as it is used, and a while longer: the next action finds the
token, the storage URL and the container ready.
"""

import collections
from collections import abc
import contextlib
import copy
import math
import threading
import time
from typing import TypeVar

from heat.common import crypt
from heat.objects import stack as stack_objects
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_log import log as logging

from heat_plugins import config
from heat_plugins.clients import heat_swift
from heat_plugins.engine import rows
from heat_plugins.signals import errors
from heat_plugins.signals import keys
from heat_plugins.signals import names
from heat_plugins.signals import store as store_module
from heat_plugins.signals import watcher

LOG = logging.getLogger(__name__)

config.register_opts(cfg.CONF)

T = TypeVar('T')

# How many hubs without a waiting deployment to keep.
_IDLE_HUBS = 256

_DROP_ATTEMPTS = 3

# How often to ask whether a stack was cancelled, in seconds.
_CANCEL_LOOK = 3

# For how long to believe that the key of an account is what it was.
_ACCOUNT_KEY_SECONDS = 300

_hubs: collections.OrderedDict[tuple[str, str], 'Hub'] = (
    collections.OrderedDict()
)
_lock = threading.Lock()


def temp_url_secret() -> str | None:
    """Return what TempURL keys are derived from.

    None if that would be what Heat's source publishes.
    """
    secret = cfg.CONF.heat_plugins.temp_url_secret
    if secret:
        return secret
    default = next(
        opt.default
        for opt in crypt.auth_opts
        if opt.name == 'auth_encryption_key'
    )
    key = cfg.CONF.auth_encryption_key
    return None if key == default else key


def hub_for(stack, root_stack_id: str) -> 'Hub':
    """Return the hub of a stack's root stack.

    :param stack: any `heat.engine.stack.Stack` below that root.
    """
    key = (stack.context.project_id, root_stack_id)
    with _lock:
        hub = _hubs.get(key)
        if hub is None:
            hub = _hubs[key] = Hub(root_stack_id)
            _forget_idle()
        _hubs.move_to_end(key)
    hub.adopt(stack)
    return hub


def _forget_idle() -> None:
    idle = [key for key, hub in _hubs.items() if not len(hub.watcher)]
    for key in idle[: max(0, len(idle) - _IDLE_HUBS)]:
        del _hubs[key]


class Hub:
    """The shared side of one root stack; see the module."""

    def __init__(self, root_stack_id: str) -> None:
        options = cfg.CONF.heat_plugins
        self.root_stack_id = root_stack_id
        self.container = names.container(root_stack_id)
        self.watcher = watcher.Watcher(
            self,
            watcher.Pace(
                interval=options.signal_poll_interval,
                interval_max=options.signal_poll_interval_max,
                direct=options.signal_direct_look_interval,
            ),
        )
        self._context = None
        self._action_limit = 0
        # Whether the context's credentials are believed to work, and whether
        # they have done so.
        self._trusted = False
        self._proven = False
        self._store: store_module.ObjectStore | None = None
        self._signer: keys.Signer | None = None
        self._signer_until = math.inf
        self._former_signer: keys.Signer | None = None
        self._lock = threading.RLock()
        # What stacks do, by id, and when that was read.
        self._traversals: dict[str, tuple[float, rows.Traversal | None]] = {}

    def adopt(self, stack) -> None:
        """Take the stored credentials of a stack, if there is need."""
        with self._lock:
            self._action_limit = max(self._action_limit, stack.timeout_secs())
            if self._trusted:
                return
            context = self._stored_context(stack)
            self._store = context.clients.client(heat_swift.CLIENT_NAME)
            # Clients hold their context by a weak reference.
            self._context = context
            self._signer = None
            self._trusted = True
            self._proven = False

    def _stored_context(self, stack):
        """Return a context with the credentials that the stack has by now.

        Whoever updates a stack leaves it other credentials than the one in
        memory knows of, and takes the old ones away.

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
                f'The stored credentials of stack {self.root_stack_id} cannot '
                f'be used: {type(exc).__name__}'
            ) from exc

    def call(self, stack, do: abc.Callable[[], T]) -> T:
        """Do something; once more, if credentials that worked do no more.

        A stack gets other credentials when somebody else updates it.
        """
        try:
            return self._try(do)
        except errors.SignalError:
            if self._trusted or not self._proven:
                raise
        self.adopt(stack)
        return self._try(do)

    def _try(self, do: abc.Callable[[], T]) -> T:
        try:
            result = do()
        except errors.SignalError as exc:
            if errors.Denied in (type(exc), type(exc.__cause__)):
                self._trusted = False
            raise
        self._proven = True
        return result

    def fetch(self, name: str, limit: int) -> bytes:
        """Fetch a signal; see `store.ObjectStore.get_object`."""
        return self._try(
            lambda: self.store.get_object(self.container, name, limit)
        )

    def discard(self, name: str) -> None:
        """Delete a signal."""
        self._try(lambda: self.store.delete_object(self.container, name))

    @property
    def store(self) -> store_module.ObjectStore:
        if self._store is None:
            raise errors.TempURLUnusable('This stack has no object store')
        return self._store

    def signer(self) -> keys.Signer:
        """Return what signs URLs of the container; makes both if need be.

        :raises errors.SignalError: as `keys.KeyKeeper.ensure`.
        """
        with self._lock:
            now = time.monotonic()
            if self._signer is None or now > self._signer_until:
                self._signer = self._keeper().ensure(
                    self.container, self._former_signer
                )
                self._former_signer = self._signer
                self._signer_until = math.inf
                if self._signer.kind == keys.ACCOUNT:
                    self._signer_until = now + _ACCOUNT_KEY_SECONDS
            return self._signer

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
        return max(
            options.temp_url_lifetime_max,
            self._action_limit + options.temp_url_margin,
        )

    # watcher.Source

    def names(self) -> abc.Collection[str]:
        """List the signals; a container that is gone is made again."""
        try:
            found = self._try(
                lambda: self.store.list_objects(self.container, names.SIGNALS)
            )
        except errors.NotFound:
            LOG.warning(
                'Container %s is gone while deployments wait for signals in '
                'it; making it again',
                self.container,
            )
            with self._lock:
                self._signer = None
                self.signer()
            return ()
        return {entry.name for entry in found}

    def rows(self, ids: abc.Collection[str]) -> abc.Mapping[str, watcher.Row]:
        try:
            return rows.read(self._context, ids)
        except db_exception.DBError as exc:
            raise errors.Unavailable(
                f"Heat's database does not answer: {type(exc).__name__}"
            ) from exc

    def cancelled(self, stack, since: float) -> bool:
        """Say whether a stack's action was cancelled or is rolled back.

        Heat lets what is in progress go on then, and tells it nothing.

        :param stack: as it was when the action began.
        :param since: when that was, by `time.monotonic`; what was read
            before says nothing about this action.
        """
        with self._lock:
            now = time.monotonic()
            read_at, found = self._traversals.get(stack.id, (since, None))
            if read_at <= since or now - read_at >= _CANCEL_LOOK:
                # Without an answer there will be another look.
                found = None
                with contextlib.suppress(db_exception.DBError):
                    found = rows.traversal(self._context, stack.id)
                self._traversals[stack.id] = now, found
        if found is None or found.id == stack.current_traversal:
            return False
        if not found.id:
            # Something else in the stack has failed; what goes on may end.
            return False
        return found.status == stack.FAILED or found.action == stack.ROLLBACK

    def sweep(self, container: str, prefix: str) -> None:
        """Delete all objects below a prefix of a container."""
        try:
            entries = self.store.list_objects(container, prefix)
        except errors.NotFound:
            return
        for entry in entries:
            self.store.delete_object(container, entry.name)

    def drop_container(self, container: str) -> None:
        """Delete a container and what is left in it.

        What arrives meanwhile makes it not empty again, hence the attempts,
        and an end to all URLs if the first fails.

        :raises errors.Conflict: something kept arriving.
        """
        with self._lock:
            self._signer = None
            for attempt in range(_DROP_ATTEMPTS):
                try:
                    if attempt:
                        keys.withdraw(self.store, container)
                    self.sweep(container, '')
                    self.store.delete_container(container)
                except errors.NotFound:
                    return
                except errors.Conflict:
                    if attempt + 1 == _DROP_ATTEMPTS:
                        raise
                else:
                    return
