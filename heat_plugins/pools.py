# SPDX-License-Identifier: Apache-2.0
"""Many requests at a time, up to a limit, with retries."""

from collections import abc
from concurrent import futures
import threading
import time
from typing import Any, TypeVar

from heat_plugins import retrying

_Item = TypeVar('_Item')
_Result = TypeVar('_Result')

#: Told (done, all) of uploads, fetches and deletions, one call at a time.
Progress = abc.Callable[[int, int], None]

#: More of them gain nothing from one proxy, and keep others waiting.
_WORKERS = 8


class Pool:
    """Calls a function for each of many items.

    :param workers: the most calls at a time.
    :param wait: seconds before the second attempt; then twice as long.
    :param attempts: the most attempts of a call; 1 means no retry.
    """

    def __init__(
        self, workers: int = _WORKERS, wait: float = 0.5, attempts: int = 4
    ) -> None:
        self._workers = workers
        self._wait = wait
        self._attempts = attempts

    def each(
        self,
        function: abc.Callable[[_Item], _Result],
        items: abc.Collection[_Item],
        progress: Progress | None = None,
    ) -> list[_Result]:
        """Return the results of `function`, in the order of `items`.

        A single call runs in the caller's thread. After the first error no
        further call starts.
        """
        done = 0
        lock = threading.Lock()
        failed: list[BaseException] = []

        def call(item: _Item) -> _Result:
            """Do one item, unless another one has failed; count it."""
            nonlocal done
            if failed:
                raise failed[0]
            try:
                result = self.insist(function, item)
            except BaseException as exc:
                failed.append(exc)
                raise
            if progress is not None:
                with lock:
                    done += 1
                    progress(done, len(items))
            return result

        workers = min(self._workers, len(items))
        if workers <= 1:
            return [call(item) for item in items]
        with futures.ThreadPoolExecutor(workers) as executor:
            # It cancels what has not started after an error.
            return list(executor.map(call, items))

    def pause(self) -> None:
        """Sleep before the next attempt."""
        time.sleep(self._wait)

    def insist(
        self, function: abc.Callable[..., _Result], *arguments: Any
    ) -> _Result:
        """Call a function; retry while the object store fails temporarily."""
        return retrying.insist(
            function, *arguments, attempts=self._attempts, wait=self._wait
        )
