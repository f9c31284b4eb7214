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

from collections import abc
import inspect
import time
from typing import Any

# Heat asks as often, in seconds.
_SECOND = 1.0


class Loop:
    """Heat's loop around the checks of one action.

    :param seconds: until the stack's time is up.
    :param ask: raises if the stack has cancelled the action.
    """

    def __init__(
        self, seconds: float, ask: abc.Callable[[], None] | None = None
    ) -> None:
        self._until = time.monotonic() + seconds
        self._ask = ask

    def patience(self, *deadlines: float | None) -> float:
        """Return the seconds for which a check may block now.

        :param deadlines: when there is something else to do, by
            `time.monotonic`; None counts as never.
        """
        times = [self._until, *(each for each in deadlines if each)]
        return max(0.0, min(_SECOND, min(times) - time.monotonic()))

    def goes_on(self) -> bool:
        """Ask what Heat asks between two checks; say if there is time.

        :raises BaseException: the stack has cancelled the action.
        """
        if time.monotonic() >= self._until:
            return False
        if self._ask is not None:
            self._ask()
        return True


#: Where no check may block.
NONE = Loop(seconds=float('-inf'))


def _with_loop(name: str) -> Any:
    """Return a method that notes the loop, and calls Heat's method."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        heats = getattr(super(Blocking, self), name)
        given = inspect.signature(heats).bind(*args, **kwargs).arguments
        self._loop = Loop(given['timeout'], given.get('progress_callback'))
        try:
            return heats(*args, **kwargs)
        finally:
            self._loop = NONE

    method.__name__ = name
    method.__doc__ = "Do as Heat's method does; its checks may block."
    return method


class Blocking:
    """The part of a resource whose checks may block; before Heat's class."""

    _loop = NONE

    create_convergence = _with_loop('create_convergence')
    update_convergence = _with_loop('update_convergence')
    suspend_convergence = _with_loop('suspend_convergence')
    resume_convergence = _with_loop('resume_convergence')
    delete_convergence = _with_loop('delete_convergence')
