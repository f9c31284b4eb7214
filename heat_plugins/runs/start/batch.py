# SPDX-License-Identifier: Apache-2.0
"""Runs of one action on several deployments of a stack."""

from collections import abc
import dataclasses

from heat_plugins import errors
from heat_plugins.runs import run as runs
from heat_plugins.runs import run_service as services
from heat_plugins.runs.follow import waiting
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """A run that was not started."""

    target: targets.Target
    error: errors.Error | errors.ServiceError


class Batch:
    """Starts runs, some at a time, and waits for them.

    :param concurrent: the most that run at the same time; None: all.
    :param started: called with each run as soon as there is one.
    """

    def __init__(
        self,
        service: services.Runs,
        wanted: abc.Iterable[targets.Target],
        order: starting.Order,
        *,
        concurrent: int | None = None,
        started: waiting.Watch = lambda run: None,
    ) -> None:
        self._service = service
        self._queue = list(wanted)
        self._order = order
        self._concurrent = concurrent or len(self._queue)
        self._started = started
        self.runs: list[runs.Run] = []
        self.failures: list[Failure] = []

    def check(self) -> None:
        """Find out that nothing of it could be started, before any is.

        :raises errors.Refused: an action is not there, or its inputs are
            not what it needs.
        """
        for target in self._queue:
            starting.check(target, self._order)

    def start(self) -> None:
        """Start as many as may run; another one for each that has ended.

        One that cannot be started does not keep the others from it.
        """
        while self._queue and self._room():
            target = self._queue.pop(0)
            try:
                run = self._service.start(target, self._order)
            except errors.Error as exc:
                self.failures.append(Failure(target=target, error=exc))
                continue
            self.runs.append(run)
            self._started(run)

    def follow(self, waiter: waiting.Waiter) -> None:
        """Start all there are, and wait until they have ended."""
        while True:
            before = len(self.runs)
            self.start()
            for run in self.runs[before:]:
                waiter.add(run)
            if not self._queue and not waiter.pending:
                return
            waiter.step()
            self.runs = waiter.all

    def _room(self) -> bool:
        pending = [run for run in self.runs if not run.ended]
        return len(pending) < self._concurrent
