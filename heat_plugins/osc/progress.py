# SPDX-License-Identifier: Apache-2.0
"""Waiting, as it shows on a terminal and in a log."""

import time

from heat_plugins.runs import run as runs
from heat_plugins.runs import summary

_CLEAR = '\r\x1b[K'

_WORDS = {
    runs.State.STARTING: 'starting',
    runs.State.WAITING: 'waiting for the server (no start report)',
    runs.State.RUNNING: 'running',
}


class Progress:
    """One line on a terminal; elsewhere a line for each change.

    :param stream: the standard error, so that the output stays clean.
    """

    def __init__(self, stream, clock=time.time, width=79):
        self._stream = stream
        self._clock = clock
        self._width = width
        self._live = stream.isatty()
        self._runs = {}

    def say(self, line):
        """Print a line that stays."""
        self._stream.write(f'{_CLEAR if self._live else ""}{line}\n')
        self._stream.flush()

    def started(self, run):
        """Say that a run is on its way."""
        self._runs[run.id] = run
        self.say(f'Run {run.id}: {run.action} on {run.resource}')

    def changed(self, run):
        """Show that a run has changed."""
        before = self._runs.get(run.id)
        self._runs[run.id] = run
        if self._live and not run.ended:
            return
        if run.ended or before is None or _line(before) != _line(run):
            self.say(f'Run {run.id}: {_line(run)}')

    def tick(self):
        """Show that time goes by."""
        pending = [run for run in self._runs.values() if not run.ended]
        if not self._live or not pending:
            return
        if len(pending) == 1:
            (run,) = pending
            what = f'{run.action} on {run.resource}: {_line(run)}'
        else:
            ended = len(self._runs) - len(pending)
            what = f'{ended} of {len(self._runs)} runs have ended'
        since = min(run.started_at for run in pending)
        elapsed = max(0, int(self._clock() - since))
        line = f'{elapsed // 60:d}:{elapsed % 60:02d}  {what}'
        self._stream.write(_CLEAR + line[: self._width])
        self._stream.flush()

    def end(self):
        """Leave the line."""
        if self._live:
            self._stream.write(_CLEAR)
            self._stream.flush()


def _line(run):
    if run.ended:
        taken = summary.duration(run)
        return f'{run.state.value} after {taken} s. {run.reason}'
    said = _WORDS[run.state]
    if run.progress is not None:
        said += f' {run.progress:.0f}%'
    return f'{said} {run.message}' if run.message else said
