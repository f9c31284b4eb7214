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
from heat_plugins.nodes import convoy as convoys
from heat_plugins.plans.deploy import stack_following
from heat_plugins.runs import runs
from heat_plugins.runs import summary

# Terminals that cannot move the cursor.
_DUMB = ('dumb', 'unknown')

_WORDS = {
    runs.State.STARTING: 'starting',
    runs.State.WAITING: 'waiting for the server (no start report)',
    runs.State.RUNNING: 'running',
}


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
        """Change what the line says.

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
        """Let the line appear, or print one from time to time."""
        if self.live:
            if not self._over.wait(self.delay):
                with self._bar:
                    self._over.wait()
            return
        # The reader of the output may be gone; the command is not.
        with contextlib.suppress(OSError, ValueError):
            while not self._over.wait(self.interval):
                counted = self._task.fields['counted']
                taken = summary.spell(int(self._task.elapsed or 0))
                parts = (self._task.description, counted, taken)
                self.say(': '.join(part for part in parts if part))


class Runs:
    """Shows runs of actions."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._runs: dict[str, runs.Run] = {}

    def started(self, run: runs.Run) -> None:
        """Say that a run is on its way."""
        self._runs[run.id] = run
        self._display.say(f'Run {run.id}: {run.action} on {run.resource}')

    def changed(self, run: runs.Run) -> None:
        """Show that a run has changed."""
        before = self._runs.get(run.id)
        self._runs[run.id] = run
        self.tick()
        if self._display.live and not run.ended:
            return
        if run.ended or before is None or _line(before) != _line(run):
            self._display.say(f'Run {run.id}: {_line(run)}')

    def tick(self) -> None:
        """Show how the runs stand now."""
        pending = [run for run in self._runs.values() if not run.ended]
        if not pending:
            return
        since = min(run.started_at for run in pending)
        if len(self._runs) == 1:
            (run,) = pending
            self._display.show(
                f'{run.action} on {run.resource}: {_line(run)}',
                run.progress,
                None if run.progress is None else 100,
                counted='',
                since=since,
            )
            return
        ended = len(self._runs) - len(pending)
        self._display.show(
            'runs have ended', ended, len(self._runs), since=since
        )


def _line(run: runs.Run) -> str:
    if run.ended:
        taken = summary.spell(run.duration)
        return f'{run.state.value} after {taken}. {run.reason}'
    line = _WORDS[run.state]
    if run.progress is not None:
        line += f' {run.progress:.0f}%'
    return f'{line} {run.message}' if run.message else line


class JobProgress:
    """Shows what a job does.

    :ivar what: such as ``plan shop``; '' where that is plain.
    :ivar execution_id: of Mistral; '' where the command does the work.
    """

    def __init__(self, display: Display, what: str = '') -> None:
        self._display = display
        self.what = what
        self.execution_id = ''
        self._noted: set[str] = set()

    def note(self, sentence: str) -> None:
        """Print a line that stays, once."""
        line = f'{self.what}: {sentence}' if self.what else sentence
        if line not in self._noted:
            self._noted.add(line)
            self._display.say(f'{line[:1].upper()}{line[1:]}')

    def executes(self, execution_id: str) -> None:
        """Say which execution of Mistral does the work."""
        self.execution_id = execution_id
        self.note(f'execution {execution_id}')

    def warn(self, warnings: abc.Iterable[str]) -> None:
        """Say what is no error, once."""
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

    def changed(self, stack: stack_following.StackProgress) -> None:
        """Show how the stack stands, if there is one."""
        if not stack.status:
            return
        for failure in stack.failures[self._failures :]:
            self._display.say(failure)
        self._failures = len(stack.failures)
        if stack.status != self._status:
            self._status = stack.status
            if not self._display.live:
                self._display.say(f'Stack {self.plan}: {stack.status}')
        of = '' if stack.total is None else f' of {stack.total}'
        self._display.show(
            f'{self.plan} {stack.status}  {stack.under_way}',
            stack.done,
            stack.total,
            counted=f'{stack.done}{of} resources',
        )


class Nodes(JobProgress):
    """Shows the moves of nodes; a log has a line when a number changes."""

    _line = ''

    def changed(self, convoy: convoys.Convoy) -> None:
        """Show how the nodes of a move stand."""
        phases = sorted(member.phase for member in convoy.members)
        counted = ', '.join(
            f'{phases.count(phase)} {phase}' for phase in dict.fromkeys(phases)
        )
        line = f'{convoy.verb}: {counted or "no nodes"}'
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
        """Show how a run stands; see `validation_operations.report`."""
        self.begun(run['id'])
        for outcome in run['outcomes']:
            self._changed(outcome)
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

    def _changed(self, outcome: dict[str, Any]) -> None:
        name, state = outcome['validation'], outcome['state']
        # A run that is repeated waits again.
        if state in ('WAITING', self._states.get(name)):
            return
        self._states[name] = state
        if state == 'RUNNING':
            self._display.say(f'{name}: started')
            return
        reason = f': {outcome["reason"]}' if outcome['reason'] else ''
        taken = summary.spell(outcome['seconds'])
        self._display.say(f'{name}: {state} after {taken}{reason}')
