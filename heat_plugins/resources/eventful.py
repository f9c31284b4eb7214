# SPDX-License-Identifier: Apache-2.0
"""Events: what they say is safe to show, and a stack may have any number.

Reasons and signals quote what servers, services and users have sent. Heat
writes them to its database and log, and sends them to subscribers.

For each event of a stack heat-engine starts a thread that notifies the
subscribers. Heat 25 and later, whose threads are native ones, keep a
list of them for each stack, from which none that has ended is taken
(``heat.engine.service.ThreadGroup.add_thread`` overrides what oslo.service
does about that). At 1000 it is full, after some hundred actions or signals:
``Maximum number of threads reached``. Whatever the stack does then fails,
without an end, until heat-engine restarts.

Each of these threads keeps the context of a request with its clients, and Heat
keeps the list of a stack that is deleted, too: so heat-engine grows with each
stack.
"""

from collections import abc
import contextlib
import threading
import time
from typing import TYPE_CHECKING, Any, TypeAlias

from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins.engine import heat_types

if TYPE_CHECKING:
    from heat.engine import resource

    _Resource: TypeAlias = resource.Resource
else:
    _Resource = object

# Those that have ended are sought only if there are more threads than that.
_MANY = 100

# Seconds between two searches in the lists of all stacks.
_SECONDS = 60
_next_search = 0.0


class Eventful(_Resource):
    """Mixed into a resource type, in front of Heat's class."""

    def _add_event(self, action: str, status: str, reason: object) -> None:
        forget_ended_threads(self.stack)
        super()._add_event(action, status, shown(reason))

    def state_set(
        self,
        action: str,
        status: str,
        reason: object = 'state changed',
        *args: Any,
        **more: Any,
    ) -> Any:
        """Set the state, with a reason that is safe to show."""
        return super().state_set(action, status, shown(reason), *args, **more)

    @contextlib.contextmanager
    def _action_recorder(
        self, *args: Any, **kwargs: Any
    ) -> abc.Iterator[None]:
        # Heat logs why an action fails before it sets the state.
        with super()._action_recorder(*args, **kwargs), foreign.errors(shown):
            yield


def shown(reason: object) -> str:
    """Return a reason as one line that is safe to show and to store."""
    return foreign.stored(masking.signatures(str(reason)))


def forget_ended_threads(stack: heat_types.Stack) -> None:
    """Make room in the list of a stack's threads, at times in all lists."""
    global _next_search
    groups = getattr(stack.thread_group_mgr, 'groups', {})
    now = time.monotonic()
    if now >= _next_search:
        _next_search = now + _SECONDS
        for group in list(groups.values()):
            _forget_ended(group)
        return
    found = groups.get(stack.id)
    if found is not None and len(found.threads) >= _MANY:
        _forget_ended(found)


def _forget_ended(group: Any) -> None:
    # With eventlet there are none of these: Heat forgets them by itself.
    if any(_ended(thread) for thread in group.threads[:]):
        with group._lock:
            group.threads[:] = [
                thread for thread in group.threads if not _ended(thread)
            ]


def _ended(thread: object) -> bool:
    return (
        isinstance(thread, threading.Thread)
        and thread.ident is not None
        and not thread.is_alive()
    )
