# SPDX-License-Identifier: Apache-2.0
"""Many requests at a time, but not too many, each ridden out."""

from collections import abc
from concurrent import futures
import threading
import time
from typing import Any, TypeVar

from heat_plugins import retrying

_Thing = TypeVar('_Thing')
_Result = TypeVar('_Result')

#: Told (done, all) of uploads, fetches and deletions, one call at a time.
Progress = abc.Callable[[int, int], None]

#: More of them gain nothing from one proxy, and keep others waiting.
_WORKERS = 8


class Pool:
    """Calls a function for each of many things.

    :param workers: the most calls at a time.
    :param wait: seconds before the second attempt; then twice as long.
    :param attempts: the most of one call; 1 repeats none.
    """

    def __init__(
        self, workers: int = _WORKERS, wait: float = 0.5, attempts: int = 4
    ) -> None:
        self._workers = workers
        self._wait = wait
        self._attempts = attempts

    def each(
        self,
        function: abc.Callable[[_Thing], _Result],
        things: abc.Collection[_Thing],
        progress: Progress | None = None,
    ) -> list[_Result]:
        """Return what `function` returns, in the order of `things`.

        Calls that cannot overlap are made in the caller's thread. The first
        error ends it: what has not begun will not begin.
        """
        done = 0
        lock = threading.Lock()
        failed: list[BaseException] = []

        def call(item: _Thing) -> _Result:
            nonlocal done
            if failed:
                raise futures.CancelledError
            try:
                result = self.insist(function, item)
            except BaseException as exc:
                failed.append(exc)
                raise
            if progress is not None:
                with lock:
                    done += 1
                    progress(done, len(things))
            return result

        workers = min(self._workers, len(things))
        if workers <= 1:
            return [call(item) for item in things]
        with futures.ThreadPoolExecutor(workers) as executor:
            begun = [executor.submit(call, item) for item in things]
            try:
                return [future.result() for future in begun]
            except BaseException as exc:
                executor.shutdown(cancel_futures=True)
                # A thing before the one that failed may not have started.
                if failed and isinstance(exc, futures.CancelledError):
                    raise failed[0] from None
                raise

    def shared(self, number: int) -> 'Pool':
        """Return a pool for each of N calls of this one.

        Together they make no more calls at a time than this one does.
        """
        calls = max(1, min(number, self._workers))
        return Pool(self._workers // calls, self._wait, self._attempts)

    def pause(self) -> None:
        """Let the object store come round."""
        time.sleep(self._wait)

    def insist(
        self, function: abc.Callable[..., _Result], *arguments: Any
    ) -> _Result:
        """Call a function again while the object store is out of order."""
        return retrying.insist(
            function, *arguments, attempts=self._attempts, wait=self._wait
        )
