# SPDX-License-Identifier: Apache-2.0
"""All that was measured, as JSON and as the documentation includes it."""

import csv
import datetime
from importlib import metadata
import json
import os
import pathlib
import platform
import re
import subprocess

from tests.bench import figures
from tests.functional import base

_DISTRIBUTIONS = (
    'openstack-heat',
    'swift',
    'keystone',
    'oslo.messaging',
    'SQLAlchemy',
)

#: The measurements that are tables.
_MEASURED = ('completing', 'live', 'quick', 'runs', 'scheduling')


def new(options):
    """Return the record of a run of the bench, which begins now.

    What it measures is added to it, each by its name.
    """
    return {
        'machine': _machine(),
        'options': {
            name: value if isinstance(value, list | int) else str(value)
            for name, value in vars(options).items()
        },
        'made_at': datetime.datetime.now(datetime.UTC).isoformat(),
        'measured': [],
        'cycling': [],
    }


def _machine():
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


def _sentence(found):
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


def _field(file, name):
    text = pathlib.Path(file).read_text()
    found = re.search(rf'^{name}\s*: *(.*)$', text, re.M)
    return found[1] if found else '0'


def _commit():
    described = subprocess.run(
        ['git', 'describe', '--always', '--dirty'],
        cwd=base.ROOT,
        capture_output=True,
        text=True,
    )
    return described.stdout.strip() or 'of no commit'


def write(record, file):
    text = json.dumps(record, indent=1, sort_keys=True)
    file.write_text(text + '\n', encoding='utf-8')


def render(record, folder, say):
    """Write what the documentation includes, and show the tables.

    What was not measured keeps its files.
    """
    found = record['measured']
    machine, prefix = _sentence(record['machine']), ''
    troubles = figures.troubles(found)
    made = {}
    if record['options'].get('store') == 'rgw':
        # Ceph's gateway: our figures of the goals, as Heat has none.
        rows = figures.goals(found)
        made['rgw'] = [row[:3] for row in rows if row[2]]
        prefix = 'rgw-'
    else:
        if found:
            lines = [f'- {each}' for each in troubles or ['Nothing.']]
            _write_lines(folder / 'troubles.rst', lines)
            made['goals'] = figures.goals(found, record['cycling'])
            for name, shown in figures.TABLES.items():
                made[name] = figures.by_scenario(found, shown)
        for name in _MEASURED:
            if table := record.get(name):
                made[name] = table
    if found:
        _write_lines(folder / f'{prefix}machine.rst', [machine])
    say(machine)
    for name, table in made.items():
        with (folder / f'{name}.csv').open('w', newline='') as stream:
            csv.writer(stream, lineterminator='\n').writerows(table)
        say(figures.text(table))
    for each in (*troubles, f'Written to {folder}'):
        say(each)


def _write_lines(file, lines):
    file.write_text(''.join(f'{line}\n' for line in lines), encoding='utf-8')
