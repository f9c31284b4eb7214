# SPDX-License-Identifier: Apache-2.0
"""Events without end, over the whole life of a stack.

For each event of a stack heat-engine starts a thread that tells those who
have asked for events. Heat 25 and later, whose threads are native ones, keep a
list of them for each stack, from which none that has ended is taken
(``heat.engine.service.ThreadGroup.add_thread`` overrides what oslo.service
does about that). At 1000 it is full, after some hundred actions or signals:
``Maximum number of threads reached``. Whatever the stack does then fails,
without an end, until heat-engine is started anew.
"""

import threading

# Those that have ended are sought only if there are more threads than that.
_MANY = 100


class Eventful:
    """Mixed into a resource type, in front of Heat's class."""

    def _add_event(self, action, status, reason):
        forget_ended_threads(self.stack)
        super()._add_event(action, status, reason)


def forget_ended_threads(stack):
    """Make room in the list of a stack's threads."""
    groups = getattr(stack.thread_group_mgr, 'groups', {})
    group = groups.get(stack.id)
    if group is None or len(group.threads) < _MANY:
        return
    # With eventlet there are none of these: Heat forgets them by itself.
    if any(_ended(thread) for thread in group.threads[:]):
        with group._lock:
            group.threads[:] = [
                thread for thread in group.threads if not _ended(thread)
            ]


def _ended(thread):
    return (
        isinstance(thread, threading.Thread)
        and thread.ident is not None
        and not thread.is_alive()
    )
