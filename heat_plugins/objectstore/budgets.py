# SPDX-License-Identifier: Apache-2.0
"""Limit what reading other users' records may cost.

A `Budget` counts the requests of a store, their time and the bytes of the
responses. A request gets no more time than is left, so one that hangs is over
budget, too.
"""

from collections import abc
import dataclasses
import threading
import time

from heat_plugins import errors
from heat_plugins.objectstore import wire


class Budget:
    """A number of requests, of seconds and of bytes; safe for threads.

    :param what: what they are for, such as "operation X"; for messages.
    :param size: the bytes of all responses; None for no limit. Each request
        has a limit of its own as well.
    """

    def __init__(
        self,
        what: str,
        *,
        requests: int,
        seconds: float,
        size: int | None = None,
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._requests = requests
        self._seconds = seconds
        self._clock = clock
        self._until = clock() + seconds
        self._left = requests
        self._size = size
        self._received = 0
        self._is_lifted = False
        self._lock = threading.Lock()

    def spend(self) -> float:
        """Take one request; return the seconds that are left.

        :raises errors.OverBudget: nothing is left.
        """
        if self._is_lifted:
            return float('inf')
        with self._lock:
            self._left -= 1
        rest = self._until - self._clock()
        if rest <= 0:
            self._refuse(f'{self._seconds:.0f} s')
        if self._left < 0:
            self._refuse(f'{self._requests} requests')
        return rest

    def receive(self, size: int) -> None:
        """Take the bytes of a response.

        :raises errors.OverBudget: they are more than was left.
        """
        if self._is_lifted or self._size is None:
            return
        with self._lock:
            self._received += size
            is_over = self._received > self._size
        if is_over:
            self._refuse(f'{self._size} bytes')

    def check(self) -> None:
        """Fail if no time is left.

        :raises errors.OverBudget: it is.
        """
        if not self._is_lifted and self._clock() >= self._until:
            self._refuse(f'{self._seconds:.0f} s')

    def lift(self) -> None:
        """Stop counting."""
        self._is_lifted = True

    def _refuse(self, limit: str) -> None:
        raise errors.OverBudget(
            f'Reading the records of {self._what} takes more than {limit}'
        )


class Limited:
    """Sends requests within a budget; see `wire.Transport`."""

    def __init__(self, transport: wire.Transport, budget: Budget) -> None:
        self._transport = transport
        self._budget = budget

    def storage_url(self) -> str:
        return self._transport.storage_url()

    def project_id(self) -> str | None:
        return self._transport.project_id()

    def send(self, request: wire.Request) -> wire.Response:
        rest = self._budget.spend()
        timeout = min(request.timeout, max(1.0, rest))
        try:
            response = self._transport.send(
                dataclasses.replace(request, timeout=timeout)
            )
        except errors.Unavailable:
            # It may be ours that ended it.
            self._budget.check()
            raise
        self._budget.receive(len(response.body))
        return response
