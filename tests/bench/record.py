# SPDX-License-Identifier: Apache-2.0
"""All that was measured, as JSON and as the documentation includes it."""

import dataclasses
from importlib import metadata
import json
import os
import pathlib
import platform
import re
import subprocess
from typing import Any

from tests.bench import counting
from tests.bench import figures
from tests.bench import rounds
from tests.bench import stacks
from tests.bench import tables
from tests.functional import base

_DISTRIBUTIONS = (
    'openstack-heat',
    'swift',
    'keystone',
    'oslo.messaging',
    'SQLAlchemy',
)


def machine() -> dict[str, object]:
    """Return what one must know to compare figures with others."""
    return {
        'processor': _field('/proc/cpuinfo', 'model name'),
        'cores': os.cpu_count(),
        'memory_bytes': int(_field('/proc/meminfo', 'MemTotal').split()[0])
        * 1024,
        'kernel': platform.release(),
        'python': platform.python_version(),
        'versions': {name: metadata.version(name) for name in _DISTRIBUTIONS},
        'commit': _commit(),
        # Above 0 other programs were at work, and the figures say so.
        'load_before': os.getloadavg()[0],
    }


def _sentence(found: dict[str, object]) -> str:
    versions = ', '.join(
        f'{name} {version}' for name, version in found['versions'].items()
    )
    return (
        f'{found["cores"]} cores ({found["processor"]}), '
        f'{found["memory_bytes"] / 2**30:.0f} GiB of memory, Linux '
        f'{found["kernel"]}, Python {found["python"]}; {versions}; '
        f'heat-plugins {found["commit"]}; load before: '
        f'{found["load_before"]:.1f}'
    )


def _field(file: str, name: str) -> str:
    text = pathlib.Path(file).read_text()
    found = re.search(rf'^{name}\s*: *(.*)$', text, re.M)
    return found[1] if found else '0'


def _commit() -> str:
    described = subprocess.run(
        ['git', 'describe', '--always', '--dirty'],
        cwd=base.ROOT,
        capture_output=True,
        text=True,
    )
    return described.stdout.strip() or 'of no commit'


@dataclasses.dataclass(kw_only=True)
class Record:
    """One run of the bench.

    :ivar machine: see `machine`.
    :ivar options: what the run was asked for.
    :ivar made_at: when it began, in UTC.
    :ivar seconds: how long it took.
    """

    machine: dict[str, Any]
    options: dict[str, Any]
    made_at: str
    seconds: float = 0.0
    measured: list[rounds.Round] = dataclasses.field(default_factory=list)
    cycling: list[rounds.Cycled] = dataclasses.field(default_factory=list)
    completing: tables.Table | None = None
    live: tables.Table | None = None
    quick: tables.Table | None = None
    runs: tables.Table | None = None
    scheduling: tables.Table | None = None
    answering: tables.Table | None = None

    def write(self, file: pathlib.Path) -> None:
        text = json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True)
        file.write_text(text + '\n', encoding='utf-8')


def read(file: pathlib.Path) -> Record:
    content = json.loads(file.read_text(encoding='utf-8'))
    content['measured'] = [_round(one) for one in content['measured']]
    content['cycling'] = [rounds.Cycled(**one) for one in content['cycling']]
    return Record(**content)


def _round(content: dict[str, Any]) -> rounds.Round:
    content['counts'] = {
        phase: counting.Counts(**counts)
        for phase, counts in content['counts'].items()
    }
    for key in ('signals', 'update_signals'):
        if content[key] is not None:
            content[key] = stacks.Signalled(**content[key])
    return rounds.Round(**content)


#: The table of each file.
_TABLES = {
    'waiting': figures.WAITING,
    'times': figures.TIMES,
    'costs': figures.COSTS,
}


def render(record, folder, say):
    """Write what the documentation includes, and show the tables.

    What was not measured keeps its files.
    """
    if record.options.get('store') == 'rgw':
        _write_rgw(record, folder, say)
        return
    made = {}
    if found := record.measured:
        _write_lines(folder / 'machine.rst', [_sentence(record.machine)])
        troubles = tables.troubles(found) or ['Nothing.']
        _write_lines(folder / 'troubles.rst', [f'- {one}' for one in troubles])
        made['goals'] = tables.goals(found, record.cycling)
        for name, shown in _TABLES.items():
            made[name] = tables.by_scenario(found, shown)
    for name in ('completing', 'live', 'quick', 'runs', 'scheduling'):
        if table := getattr(record, name):
            made[name] = table
    for name, table in made.items():
        tables.write(table, folder / f'{name}.csv')
    say(_sentence(record.machine))
    say("The goals: at most so much, or such a part of Heat's own:")
    for table in made.values():
        say(tables.text(table))
    for one in tables.troubles(record.measured):
        say(one)
    say(f'Written to {folder}')


def _write_rgw(record, folder, say):
    """Write what Ceph's gateway makes of our figures: its table alone."""
    said = _sentence(record.machine)
    table = tables.ours(record.measured)
    tables.write(table, folder / 'rgw.csv')
    _write_lines(folder / 'rgw-machine.rst', [said])
    for text in (said, tables.text(table), *tables.troubles(record.measured)):
        say(text)


def _write_lines(file: pathlib.Path, lines: list[str]) -> None:
    file.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
