# SPDX-License-Identifier: Apache-2.0
"""Progress of work on plans: bars on a terminal, lines elsewhere."""

import contextlib
import sys

from rich import console
from rich import markup
from rich import progress

from heat_plugins.osc import columns


def _console(stream):
    return console.Console(
        file=stream or sys.stderr, highlight=False, soft_wrap=True
    )


@contextlib.contextmanager
def files(what, stream=None):
    """Show how many files are done; gives what is told (done, all).

    :param what: what is done with them.
    """
    shown = _console(stream)
    if not shown.is_terminal:
        yield lambda done, total: None
        return
    with progress.Progress(
        progress.TextColumn('{task.description}'),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=shown,
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class Deployment:
    """Shows how a deployment gets on; a context.

    Without a terminal it prints a line when the status changes, and one for
    each failure.
    """

    def __init__(self, plan, stream=None):
        self._plan = plan
        self._console = _console(stream)
        self._live = self._console.is_terminal
        self._bar = progress.Progress(
            progress.TextColumn('{task.description}', markup=False),
            progress.BarColumn(),
            progress.TextColumn('{task.fields[counted]}', markup=False),
            progress.TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bar.add_task(plan, total=None, counted='')
        self._status = None
        self._failures = 0

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def begun(self, what, warnings):
        """Say that it has begun."""
        self.warn(warnings)
        self._say(f'Plan {self._plan}: {what}')

    def warn(self, warnings):
        """Say what is no error."""
        for warning in warnings:
            self._say(f'Warning: {warning}')

    def changed(self, found):
        """Show a `following.Progress`."""
        for failure in found.failures[self._failures :]:
            self._say(failure)
        self._failures = len(found.failures)
        if found.status != self._status:
            self._status = found.status
            if not self._live:
                self._say(f'Stack {self._plan}: {found.status}')
        counted = f'{found.done} resources'
        if found.total is not None:
            counted = f'{found.done} of {found.total} resources'
        self._bar.update(
            self._task,
            description=f'{self._plan} {found.status}',
            completed=found.done,
            total=found.total,
            counted=columns.text(f'{counted}  {found.under_way}'),
        )

    def step(self, what):
        """Say that something begins after the deployment."""
        self._say(f'Plan {self._plan}: {what}')

    def _say(self, line):
        self._bar.console.print(markup.escape(columns.text(line)))
