# SPDX-License-Identifier: Apache-2.0
"""One attempt for all who want the same thing at the same time."""

from collections import abc
from concurrent import futures
import threading
from typing import Generic, TypeVar

T = TypeVar('T')


class Attempt(Generic[T]):
    """Does something once for all who ask while it goes on.

    Behind a lock they would try one after another, and each would wait for
    all those before it: with a service that does not answer, for a time-out
    each.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._future: futures.Future[T] | None = None

    def share(self, do: abc.Callable[[], T]) -> T:
        """Do something, or wait for what is being done.

        :returns: what came of the one attempt.
        :raises BaseException: what it has raised, for all who share it.
        """
        with self._lock:
            shared = self._future
            future = shared or futures.Future()
            self._future = future
        if shared is not None:
            return shared.result()
        try:
            future.set_result(do())
        except BaseException as exc:
            future.set_exception(exc)
        finally:
            with self._lock:
                self._future = None
        return future.result()


class Rounds(Generic[T]):
    """Does something for all who ask, one round after another.

    Who asks while a round goes on shares the next one, since the one that
    goes on may have begun too early to see what they have changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._next: futures.Future[T] | None = None

    def share(self, do: abc.Callable[[], T]) -> T:
        """Do something, or wait until somebody has begun to and is done.

        :returns: what came of a round that began after this was called.
        :raises BaseException: what that round has raised.
        """
        with self._lock:
            shared = self._next
            future = shared or futures.Future()
            self._next = future
        if shared is not None:
            return shared.result()
        with self._running:
            with self._lock:
                self._next = None
            try:
                future.set_result(do())
            except BaseException as exc:
                future.set_exception(exc)
        return future.result()
