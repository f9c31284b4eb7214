# SPDX-License-Identifier: Apache-2.0
"""Following runs to their end from a command."""

from collections import abc
import shlex
import time

from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.osc.runs import run_output
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.follow import waiting

# The follower of an output also waits for the end of the run.
_QUICK = waiting.Pace(most=2.0)


class Follower:
    """Waits for runs in a command.

    :param command: the command; its exit code is set.
    :param stack: the stack as the user has named it, to name it again.
    :param output: shows what the runs print; None if that is not wanted.
    """

    def __init__(
        self,
        command: common.Command,
        service: run_service.Runs,
        stack: str,
        *,
        limit: float | None = None,
        output: run_output.Output | None = None,
    ) -> None:
        self._command = command
        self._service = service
        self._stack = stack
        self._until = None if limit is None else time.monotonic() + limit
        self.shown = progress.Runs(command.progress)
        self._output = output

    def started(self, run: runs.Run) -> None:
        """Say that a run is on its way, and follow it."""
        self.shown.started(run)
        if self._output:
            self._output.add(run)

    def wait(self, started: abc.Sequence[runs.Run]) -> list[runs.Run]:
        """Wait for runs of one root stack; return them as they end."""
        if not started:
            return []
        waiter = self._waiter(started[0].stack_id)
        for run in started:
            waiter.add(run)
            self.shown.changed(run)
        code = common.waited(lambda: self._see_to_the_end(waiter))
        pending = [run for run in waiter.all if not run.ended]
        if code is not None and pending:
            self._say_how_to_come_back(pending)
        self._command.exit_code = (
            common.exit_code(waiter.all) if code is None else code
        )
        return waiter.all

    def _see_to_the_end(self, waiter: waiting.Waiter) -> None:
        while waiter.pending:
            waiter.step()
        for run in waiter.all:
            if self._output:
                self._output.finish(run)

    def _waiter(self, root_stack_id: str) -> waiting.Waiter:
        return self._service.waiter(
            root_stack_id,
            self._changed,
            self._tick,
            _QUICK if self._output else None,
            note=self._command.progress.say,
        )

    def _changed(self, run: runs.Run) -> None:
        if self._output and run.ended:
            # What it has printed comes before what became of it.
            self._output.finish(run)
        self.shown.changed(run)

    def _tick(self) -> None:
        self.shown.tick()
        if self._output:
            self._output.poll()
        if self._until is not None and time.monotonic() > self._until:
            raise common.TooLong

    def _say_how_to_come_back(self, pending: abc.Sequence[runs.Run]) -> None:
        noun = 'run continues' if len(pending) == 1 else 'runs continue'
        ids = ' '.join(run.id for run in pending)
        stack = shlex.quote(self._stack)
        prefix = 'openstack software deployment run'
        self._command.progress.say(
            f'Stopped waiting; the {noun}. Wait again, or cancel:',
            f'  {prefix} wait {stack} {ids}',
            f'  {prefix} cancel {stack} {ids}',
        )
