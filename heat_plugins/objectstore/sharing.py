# SPDX-License-Identifier: Apache-2.0
"""One attempt for all who want the same thing at the same time."""

from collections import abc
from concurrent import futures
import threading
from typing import Generic, TypeVar

from heat_plugins import errors

T = TypeVar('T')
Key = TypeVar('Key', bound=abc.Hashable)
Item = TypeVar('Item')


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
        :raises Exception: what it has raised, for all who share it.
        :raises errors.Unavailable: who made it was stopped meanwhile.
        """
        with self._lock:
            shared = self._future
            future = shared or futures.Future()
            self._future = future
        if shared is not None:
            return shared.result()
        try:
            result = do()
        except BaseException as exc:
            self._close()
            future.set_exception(_told(exc))
            raise
        self._close()
        future.set_result(result)
        return result

    def _close(self) -> None:
        with self._lock:
            self._future = None


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
        :raises Exception: what that round has raised.
        :raises errors.Unavailable: who made it was stopped meanwhile.
        """
        with self._lock:
            shared = self._next
            future = shared or futures.Future()
            self._next = future
        if shared is not None:
            return shared.result()
        try:
            with self._running:
                self._close(future)
                result = do()
        except BaseException as exc:
            # It may be stopped also while it waits for its turn.
            self._close(future)
            future.set_exception(_told(exc))
            raise
        future.set_result(result)
        return result

    def _close(self, future: futures.Future[T]) -> None:
        """Let nobody else share a round; there may be another by now."""
        with self._lock:
            if self._next is future:
                self._next = None


class Batches(Generic[Key, Item]):
    """Does something for many items together, whoever hands them in.

    Who hands in something while a batch is done shares the next one.

    :param do: takes items by their keys, and returns the keys of some.
    :param may_be_of_one: says whether an error may be the fault of one item;
        then each is done by itself, and only that one fails.
    """

    def __init__(
        self,
        do: abc.Callable[[dict[Key, Item]], abc.Collection[Key]],
        may_be_of_one: abc.Callable[[Exception], bool] = lambda exc: True,
    ) -> None:
        self._do = do
        self._may_be_of_one = may_be_of_one
        self._lock = threading.Lock()
        self._items: dict[Key, Item] = {}
        self._rounds: Rounds[tuple[set[Key], dict[Key, Exception]]] = Rounds()

    def share(self, items: abc.Mapping[Key, Item]) -> set[Key]:
        """Hand in items, and wait until they are done.

        :returns: those of their keys that `do` has returned.
        :raises Exception: what `do` has raised for one of them, or for the
            whole batch.
        :raises errors.Unavailable: see `Rounds.share`.
        """
        with self._lock:
            self._items.update(items)
        done, failures = self._rounds.share(self._do_all)
        for key in items:
            if key in failures:
                raise failures[key]
        return {key for key in items if key in done}

    def _do_all(self) -> tuple[set[Key], dict[Key, Exception]]:
        with self._lock:
            items, self._items = self._items, {}
        try:
            return set(self._do(items)), {}
        except Exception as exc:
            if len(items) == 1 or not self._may_be_of_one(exc):
                raise
        done: set[Key] = set()
        failures: dict[Key, Exception] = {}
        for key, item in items.items():
            try:
                done.update(self._do({key: item}))
            except Exception as exc:
                failures[key] = exc
        return done, failures


def _told(exc: BaseException) -> Exception:
    """Return what those are told who share what was not done.

    What stops a thread, such as GreenletExit, is for that thread alone.
    """
    if isinstance(exc, Exception):
        return exc
    return errors.Unavailable(
        f'Who did it for all was stopped: {type(exc).__name__}'
    )
