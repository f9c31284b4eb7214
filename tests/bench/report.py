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
    record: records.Record,
    folder: pathlib.Path,
    say: Callable[[str], None],
    second: pathlib.Path | None = None,
) -> None:
    """Write the files that the documentation includes, and show the tables.

    What was not measured keeps its files.

    :param second: the table of the goals of another run.
    """
    if record.options.get('store') == 'rgw':
        _write_rgw(record, folder, say)
        return
    made = _rounds(record, folder) if record.measured else {}
    if second is not None:
        made['goals'] = tables.of_two(made['goals'], tables.read(second))
    if record.completing:
        made['completing'] = tables.completing(record.completing)
    if record.paces:
        made['paces'] = tables.paces(record.paces)
        plots.paces(record.paces, pacing.compute(), folder / 'paces.svg')
    for name in (
        *('live', 'quick', 'runs'),
        *('scheduled', 'answered', 'profile'),
    ):
        if table := getattr(record, name):
            made[name] = table
    for name, table in made.items():
        tables.write(table, folder / f'{name}.csv')
    say(machine.sentence(record.machine))
    say("The goals: at most so much, or such a part of Heat's own:")
    for table in made.values():
        say(tables.text(table))
    for one in tables.troubles(record.measured):
        say(one)
    say(f'Written to {folder}')


def _rounds(
    record: records.Record, folder: pathlib.Path
) -> dict[str, tables.Table]:
    """Draw the rounds; return their tables."""
    found = record.measured
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
    return {
        'goals': tables.goals(
            found,
            record.options['goals_at'],
            record.cycled,
        ),
        **{
            name: tables.by_scenario(found, shown)
            for name, shown in _TABLES.items()
        },
    }


def _write_rgw(
    record: records.Record, folder: pathlib.Path, say: Callable[[str], None]
) -> None:
    """Write what Ceph's gateway makes of our figures: its table alone."""
    said = machine.sentence(record.machine)
    table = tables.ours(record.measured, record.options['goals_at'])
    tables.write(table, folder / 'rgw.csv')
    _write_lines(folder / 'rgw-machine.rst', [said])
    for text in (said, tables.text(table), *tables.troubles(record.measured)):
        say(text)


def _write_lines(file: pathlib.Path, lines: list[str]) -> None:
    file.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
