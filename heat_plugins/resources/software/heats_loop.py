# SPDX-License-Identifier: Apache-2.0
"""What Heat does between two checks of an action, for checks that block.

Heat checks once a second whether an action is complete, and sleeps between
two checks. In between it asks whether the stack has cancelled the action, and
whether the stack's time is up. A check that asks that itself may block for as
long as it likes, and end as soon as there is news.

That holds where an action has its thread for itself: in the methods
``*_convergence``. Without convergence, Heat checks all resources of a stack
in one thread, and no check may block there.
"""

import inspect
from typing import Any

from heat_plugins.deployments import lifecycle


def _with_loop(name: str) -> Any:
    """Return a method that notes the loop, and calls Heat's method."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        heats = getattr(super(Blocking, self), name)
        given = inspect.signature(heats).bind(*args, **kwargs).arguments
        self._loop = lifecycle.Loop(
            given['timeout'], given.get('progress_callback')
        )
        try:
            return heats(*args, **kwargs)
        finally:
            self._loop = lifecycle.NO_LOOP

    method.__name__ = name
    method.__doc__ = "Do as Heat's method does; its checks may block."
    return method


class Blocking:
    """The part of a resource whose checks may block; before Heat's class."""

    _loop = lifecycle.NO_LOOP

    create_convergence = _with_loop('create_convergence')
    update_convergence = _with_loop('update_convergence')
    suspend_convergence = _with_loop('suspend_convergence')
    resume_convergence = _with_loop('resume_convergence')
    delete_convergence = _with_loop('delete_convergence')
