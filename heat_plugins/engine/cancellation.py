# SPDX-License-Identifier: Apache-2.0
"""Whether what a stack does has been cancelled, seen by those who wait.

Heat lets what is in progress go on when a stack's action is cancelled or
rolled back, and tells it nothing: so whoever waits has to ask. All that wait
below one root stack in one engine process share the answer.
"""

import threading
import time

from oslo_db import exception as db_exception

from heat_plugins.engine import heat_types
from heat_plugins.engine import rows

# How often to ask, in seconds.
_INTERVAL = 3

# For how long to go on asking for a stack of which nobody wants to know.
_MEMORY = 60


class Cancellation:
    """Looks for cancelled stacks below one root stack; see the module."""

    def __init__(self) -> None:
        self._looking = threading.Lock()
        # When somebody last wanted to know of a stack, by its id.
        self._wanted: dict[str, float] = {}
        self._seen: tuple[float, dict[str, rows.Traversal]] = (0.0, {})
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
        found = seen.get(stack.id) if seen_at > since else None
        if found is None or found.id == stack.current_traversal:
            return False
        if not found.id:
            # Something else in the stack has failed; what goes on may end.
            return False
        return found.status == stack.FAILED or found.action == stack.ROLLBACK

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
            self._seen = now, rows.traversals(context, self._wanted)
        except db_exception.DBError:
            # Without an answer there will be another look.
            self._seen = 0.0, {}
        finally:
            self._looking.release()
