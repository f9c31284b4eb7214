# SPDX-License-Identifier: Apache-2.0
"""What the documentation includes: tables, plots, the machine in words."""

from collections.abc import Callable
import pathlib

from tests.bench import figures
from tests.bench import machine
from tests.bench import pacing
from tests.bench import plots
from tests.bench import record as records
from tests.bench import tables

#: The table of each file.
_TABLES = {
    'waiting': figures.WAITING,
    'times': figures.TIMES,
    'costs': figures.COSTS,
}


def write(
    record: records.Record, folder: pathlib.Path, say: Callable[[str], None]
) -> None:
    """Write all files that the documentation includes, and show the tables."""
    found = record.measured
    n = record.options['goals_at']
    made = {
        'goals': tables.goals(found, n),
        **{
            name: tables.by_scenario(found, shown)
            for name, shown in _TABLES.items()
        },
    }
    if record.completing:
        made['completing'] = tables.completing(record.completing)
    if record.paces:
        made['paces'] = tables.paces(record.paces)
        plots.paces(record.paces, pacing.compute(), folder / 'paces.svg')
    if record.triggered:
        made['triggered'] = tables.triggered(record.triggered)
    if record.profile:
        made['profile'] = record.profile
    for name, table in made.items():
        tables.write(table, folder / f'{name}.csv')
    _write_lines(folder / 'machine.rst', [machine.sentence(record.machine)])
    troubles = tables.troubles(found) or ['Nothing.']
    _write_lines(folder / 'troubles.rst', [f'- {one}' for one in troubles])
    plots.by_count(found, figures.WAITING, folder / 'waiting.svg')
    plots.by_count(
        found,
        (
            figures.SETUP,
            figures.MEDIAN,
            figures.WORST,
            figures.UPDATE,
            figures.DELETE,
            figures.LIFE_SWIFT,
        ),
        folder / 'times.svg',
    )
    say(machine.sentence(record.machine))
    say("The goals: at most so much, or such a part of Heat's own:")
    for table in made.values():
        say(tables.text(table))
    for one in troubles:
        say(one)
    say(f'Written to {folder}')


def _write_lines(file: pathlib.Path, lines: list[str]) -> None:
    file.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
