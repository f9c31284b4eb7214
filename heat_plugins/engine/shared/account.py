# SPDX-License-Identifier: Apache-2.0
"""The object store, as the owner of a stack has it.

The credentials are those that Heat has stored with the stack. They are loaded
once, and reloaded when Keystone refuses them.
"""

from collections import abc
import copy
import threading
from typing import TypeVar

from heat.objects import stack as stack_objects

from heat_plugins import errors
from heat_plugins.clients import heat_swift
from heat_plugins.engine import heat_types
from heat_plugins.objectstore import stores

T = TypeVar('T')


class Account:
    """The account of a root stack's project; see the module."""

    def __init__(self, root_stack_id: str) -> None:
        self.root_stack_id = root_stack_id
        self._context: heat_types.Context | None = None
        # Whether the context's credentials are believed to work, and whether
        # they have done so.
        self._trusted = False
        self._proven = False
        self._store: stores.ObjectStore | None = None
        # For what is here, and never while the object store is asked.
        self._lock = threading.Lock()

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
        with self._lock:
            if self._trusted:
                return
            context = self._stored_context(stack)
            self._store = context.clients.client(heat_swift.CLIENT_NAME)
            # Clients hold their context by a weak reference.
            self._context = context
            self._trusted = True
            self._proven = False

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
        try:
            result = do()
        except errors.ServiceError as exc:
            if exc.is_denial:
                self._trusted = False
            raise
        self._proven = True
        return result
