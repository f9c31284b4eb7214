# SPDX-License-Identifier: Apache-2.0
"""Show the progress of a command: a line on a terminal, lines in a log.

`Display` is the only one that writes; the other classes say in its terms
the states of runs, of a plan's stack and of validations.
"""

from collections import abc
import contextlib
import os
import sys
import threading
import time
from typing import Any, TextIO

from rich import console
from rich import progress
from rich import table

from heat_plugins import foreign
from heat_plugins.nodes import moving
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.runs import summary

# Terminals that cannot move the cursor.
_DUMB = ('dumb', 'unknown')


class Display:
    """Shows on standard error that a command works; a context.

    A terminal has a line that goes when the command ends, as wide as the
    terminal is. Where lines stay, one is printed every `interval` seconds.

    :param stream: a text stream; None for standard error.
    :ivar live: whether there is such a terminal.
    :cvar delay: seconds until the line appears: most commands are quicker.
    """

    delay = 1.0
    interval = 30.0

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        stream = stream or sys.stderr
        dumb = os.environ.get('TERM', '').lower() in _DUMB
        self.live = stream.isatty() and not dumb
        self._console = console.Console(
            file=stream,
            force_terminal=self.live,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
        )
        rest = table.Column(ratio=1, no_wrap=True, overflow='crop')
        self._bar = progress.Progress(
            progress.TimeElapsedColumn(),
            progress.BarColumn(bar_width=10),
            progress.TextColumn('{task.fields[counted]}', markup=False),
            progress.TextColumn(
                '{task.description}', markup=False, table_column=rest
            ),
            console=self._console,
            transient=True,
            expand=True,
            # What a command prints there does not belong into this line.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        task_id = self._bar.add_task(what, total=None, counted='')
        self._task = self._bar.tasks[task_id]
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep_up, daemon=True)

    def __enter__(self) -> 'Display':
        self._keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Show nothing from now on."""
        self._over.set()
        self._keeper.join()

    def say(self, *lines: str) -> None:
        """Print lines that stay."""
        if lines:
            # Of many servers there are thousands of lines a second.
            self._console.print('\n'.join(map(foreign.line, lines)))

    def show(
        self,
        what: str,
        done: float | None = None,
        total: float | None = None,
        *,
        counted: str | None = None,
        since: float | None = None,
    ) -> None:
        """Change the text of the line.

        :param done: how much of `total` is done; None if that is unknown.
        :param counted: both in words, unless "<done> of <total>" does.
        :param since: when it started, in seconds since the epoch; None for
            the start of the command.
        """
        if counted is None:
            counted = '' if total is None else f'{done} of {total}'
        self._bar.update(
            self._task.id,
            description=foreign.line(what),
            completed=done or 0,
            total=total,
            counted=counted,
        )
        if since is not None:
            age = max(0, time.time() - since)
            self._task.start_time = self._bar.get_time() - age

    def _keep_up(self) -> None:
        """Show a progress bar after a delay, or print lines at intervals."""
        if self.live:
            if not self._over.wait(self.delay):
                with self._bar:
                    self._over.wait()
            return
        # A closed output does not end the command.
        with contextlib.suppress(OSError, ValueError):
            while not self._over.wait(self.interval):
                counted = self._task.fields['counted']
                taken = summary.spell(int(self._task.elapsed or 0))
                parts = (self._task.description, counted, taken)
                self.say(': '.join(part for part in parts if part))


class JobProgress:
    """Shows what a job does.

    :ivar what: such as ``plan shop``; '' where that is plain.
    """

    def __init__(self, display: Display, what: str = '') -> None:
        self._display = display
        self.what = what
        self._noted: set[str] = set()

    def note(self, sentence: str) -> None:
        """Print a line that stays, once."""
        line = f'{self.what}: {sentence}' if self.what else sentence
        if line not in self._noted:
            self._noted.add(line)
            self._display.say(f'{line[:1].upper()}{line[1:]}')

    def warn(self, warnings: abc.Iterable[str]) -> None:
        """Print warnings, each once."""
        for warning in warnings:
            if warning not in self._noted:
                self._noted.add(warning)
                self._display.say(f'Warning: {warning}')


class DeploymentProgress(JobProgress):
    """Shows the progress of a plan's stack.

    A log has a line when the status changes, and one for each failure.
    """

    def __init__(self, display: Display, plan: str) -> None:
        super().__init__(display, f'plan {plan}')
        self.plan = plan
        self._status: str | None = None
        self._failures = 0

    def changed(self, stack: plan_stacks.StackProgress) -> None:
        """Show the status of the stack, if there is one."""
        if not stack.status:
            return
        for failure in stack.failures[self._failures :]:
            self._display.say(failure)
        self._failures = len(stack.failures)
        if stack.status != self._status:
            self._status = stack.status
            if not self._display.live:
                self._display.say(f'Stack {self.plan}: {stack.status}')
        self._display.show(
            f'{self.plan} {stack.status}  {stack.under_way}',
            counted=f'{stack.done} resources',
        )


class Nodes(JobProgress):
    """Shows the moves of nodes; a log has a line when a number changes."""

    _line = ''

    def changed(self, move: moving.NodeMove) -> None:
        """Show the states of the nodes of a move."""
        line = move.counted
        self._display.show(line)
        if line != self._line and not self._display.live:
            self._display.say(line)
        self._line = line


class Validations(JobProgress):
    """Shows a run of validations."""

    def __init__(self, display: Display) -> None:
        super().__init__(display)
        self._states: dict[str, str] = {}
        self.run_id: str | None = None

    def begun(self, run_id: str) -> None:
        """Say which run it is."""
        self.run_id = run_id
        self.note(f'run {run_id}')

    def changed(self, run: dict[str, Any]) -> None:
        """Show the state of a run; see `validation_operations.report`."""
        self.begun(run['id'])
        for outcome in run['outcomes']:
            name, state = outcome['validation'], outcome['state']
            # A run that is repeated waits again.
            if state in ('WAITING', self._states.get(name)):
                continue
            self._states[name] = state
            line = f'{name}: started'
            if state != 'RUNNING':
                reason = f': {outcome["reason"]}' if outcome['reason'] else ''
                taken = summary.spell(outcome['seconds'])
                line = f'{name}: {state} after {taken}{reason}'
            self._display.say(line)
        under_way = [
            f'{outcome["validation"]} {outcome["under_way"]}'.strip()
            for outcome in run['outcomes']
            if outcome['state'] == 'RUNNING'
        ]
        waiting = ('WAITING', 'RUNNING')
        self._display.show(
            ', '.join(under_way),
            sum(
                outcome['state'] not in waiting for outcome in run['outcomes']
            ),
            len(run['outcomes']),
        )
