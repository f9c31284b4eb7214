# SPDX-License-Identifier: Apache-2.0
"""Let several callers share one attempt, one round or one batch."""

from collections import abc
from concurrent import futures
import threading
from typing import Any, Generic, TypeVar

from heat_plugins import errors

T = TypeVar('T')
Key = TypeVar('Key', bound=abc.Hashable)
Item = TypeVar('Item')


class SharedAttempt(Generic[T]):
    """Runs a function once for all callers that arrive until it ends.

    With a lock they would try one after another, and each would wait for all
    before it: if a service does not answer, for one timeout each.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._future: futures.Future[T] | None = None

    def share(self, do: abc.Callable[[], T]) -> T:
        """Run the function, or wait for the attempt that is running.

        :returns: the result of the attempt.
        :raises Exception: the error of the attempt, for all its callers.
        :raises errors.Unavailable: the thread that ran it was stopped.
        """
        with self._lock:
            shared = self._future
            future = shared or futures.Future()
            self._future = future
        if shared is not None:
            return shared.result()
        try:
            try:
                result = do()
            finally:
                # Before the others go on: they may begin another attempt.
                with self._lock:
                    self._future = None
        except BaseException as exc:
            future.set_exception(_shared_error(exc))
            raise
        future.set_result(result)
        return result


class _Round(Generic[T]):
    """The callers that share a round; `items` are theirs."""

    def __init__(self) -> None:
        self.future: futures.Future[T] = futures.Future()
        self.items: dict[Any, Any] = {}


class Rounds(Generic[T]):
    """Runs a function for many callers, one round after another.

    A caller that arrives while a round runs shares the next one, since the
    round in progress may have started too early to see what the caller has
    changed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = threading.Lock()
        self._next: _Round[T] | None = None

    def share(
        self,
        do: abc.Callable[[dict[Any, Any]], T],
        items: abc.Mapping[Any, Any],
    ) -> T:
        """Run a round, or wait for one that begins after this call.

        :param do: takes the items of all who share the round.
        :returns: the result of that round.
        :raises Exception: what that round has raised.
        :raises errors.Unavailable: the thread that ran it was stopped.
        """
        with self._lock:
            is_open = self._next is not None
            shared = self._next = self._next or _Round()
            shared.items.update(items)
        if is_open:
            return shared.future.result()
        try:
            with self._running:
                self._close(shared)
                result = do(shared.items)
        except BaseException as exc:
            # It may be stopped also while it waits for its turn.
            self._close(shared)
            shared.future.set_exception(_shared_error(exc))
            raise
        shared.future.set_result(result)
        return result

    def _close(self, shared: _Round[T]) -> None:
        """Close a round to further callers; the next may be open already."""
        with self._lock:
            if self._next is shared:
                self._next = None


class Batches(Generic[Key, Item]):
    """Runs a function once for the items of many callers.

    Items that arrive while a batch runs share the next one.

    :param do: takes items by their keys, and returns the keys of some.
    :param may_be_of_one: says whether a single item may have caused an error;
        then each item is retried alone, and only that one fails.
    """

    def __init__(
        self,
        do: abc.Callable[[dict[Key, Item]], abc.Collection[Key]],
        may_be_of_one: abc.Callable[[Exception], bool] = lambda exc: True,
    ) -> None:
        self._do = do
        self._may_be_of_one = may_be_of_one
        self._rounds: Rounds[tuple[set[Key], dict[Key, Exception]]] = Rounds()

    def share(self, items: abc.Mapping[Key, Item]) -> set[Key]:
        """Hand in items, and wait until they are done.

        :returns: those of their keys that `do` has returned.
        :raises Exception: what `do` has raised for one of them, or for the
            whole batch.
        :raises errors.Unavailable: see `Rounds.share`.
        """
        if not items:
            return set()
        done, failures = self._rounds.share(self._do_all, items)
        for key in failures.keys() & items.keys():
            raise failures[key]
        return {key for key in items if key in done}

    def _do_all(
        self, items: dict[Key, Item]
    ) -> tuple[set[Key], dict[Key, Exception]]:
        """Do all at once; one by one if one of them spoils that."""
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


def _shared_error(exc: BaseException) -> Exception:
    """Return the error of a failed attempt for its other callers.

    What stops a thread, such as GreenletExit, is for that thread alone.
    """
    if isinstance(exc, Exception):
        return exc
    return errors.Unavailable(
        'The thread that sent this request for all callers was stopped: '
        f'{type(exc).__name__}'
    )
