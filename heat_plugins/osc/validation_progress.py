# SPDX-License-Identifier: Apache-2.0
"""How a run of validations gets on: a bar on a terminal, lines elsewhere."""

import sys

from rich import console
from rich import markup
from rich import progress

from heat_plugins.osc import columns


class Validations:
    """Shows a run; a context."""

    def __init__(self, stream=None):
        self._console = console.Console(
            file=stream or sys.stderr, highlight=False, soft_wrap=True
        )
        self._bar = progress.Progress(
            progress.TextColumn('{task.description}', markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bar.add_task('Validations', total=None)
        self._states = {}
        self.run_id = None

    def __enter__(self):
        self._bar.start()
        return self

    def __exit__(self, *_):
        self._bar.stop()

    def begun(self, run_id):
        """Say which run it is."""
        if self.run_id is None:
            self.run_id = run_id
            self.say(f'Run {run_id}')

    def changed(self, run):
        """Show how a run stands; see `operations.report`."""
        self.begun(run['id'])
        for one in run['outcomes']:
            self._changed(one)
        under_way = [
            f'{one["validation"]} {one["under_way"]}'.strip()
            for one in run['outcomes']
            if one['state'] == 'RUNNING'
        ]
        waiting = ('WAITING', 'RUNNING')
        self._bar.update(
            self._task,
            description=columns.text(', '.join(under_way)[:60]),
            completed=sum(
                one['state'] not in waiting for one in run['outcomes']
            ),
            total=len(run['outcomes']),
        )

    def _changed(self, one):
        name, state = one['validation'], one['state']
        if self._states.get(name, 'WAITING') == state:
            return
        self._states[name] = state
        if state == 'RUNNING':
            self.say(f'{name}: begun')
            return
        reason = f': {columns.text(one["reason"])}' if one['reason'] else ''
        self.say(f'{name}: {state} after {one["seconds"]:.0f} s{reason}')

    def say(self, line):
        self._bar.console.print(markup.escape(line))
