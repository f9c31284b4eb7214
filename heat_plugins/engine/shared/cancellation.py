# SPDX-License-Identifier: Apache-2.0
"""Whether what a stack does has been cancelled, seen by those who wait.

Heat lets what is in progress go on when a stack's action is cancelled or
rolled back, and does not notify it. So a resource that waits must poll; all
that wait below one root stack in one engine process share the answer.
"""

import threading
import time

from oslo_db import exception as db_exception

from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources

# How often to ask, in seconds.
_INTERVAL = 3

# Seconds to keep polling for a stack that no caller asks about.
_MEMORY = 60


class Cancellation:
    """Looks for cancelled stacks below one root stack; see the module."""

    def __init__(self, root_stack_id: str) -> None:
        self._root_stack_id = root_stack_id
        self._looking = threading.Lock()
        # When a caller last asked about a stack, by its ID.
        self._wanted: dict[str, float] = {}
        self._seen: tuple[float, dict[str, resources.Traversal]] = (0.0, {})
        self._next_look = 0.0

    def of(self, stack: heat_types.Stack, since: float) -> bool:
        """Say whether a stack's action was cancelled or is rolled back.

        :param stack: as it was when the action began.
        :param since: when that was, by `time.monotonic`; what was read
            before says nothing about this action.
        """
        self._wanted[stack.id] = time.monotonic()
        self._look_if_due(stack.context)
        seen_at, seen = self._seen
        traversal = seen.get(stack.id) if seen_at > since else None
        if traversal is None or traversal.id == stack.current_traversal:
            return False
        if not traversal.id:
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

    def _look_if_due(self, context: heat_types.Context) -> None:
        # Who comes while another one looks has that answer the next time.
        if not self._looking.acquire(blocking=False):
            return
        try:
            now = time.monotonic()
            if now < self._next_look:
                return
            self._next_look = now + _INTERVAL
            self._wanted = {
                stack_id: wanted
                for stack_id, wanted in self._wanted.copy().items()
                if now - wanted < _MEMORY
            }
            wanted = {*self._wanted, self._root_stack_id}
            self._seen = now, resources.traversals(context, wanted)
        except db_exception.DBError:
            # Without an answer there will be another look.
            self._seen = 0.0, {}
        finally:
            self._looking.release()
