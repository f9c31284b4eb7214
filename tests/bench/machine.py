# SPDX-License-Identifier: Apache-2.0
"""On what, and of what, the measurements were made."""

from importlib import metadata
import os
import pathlib
import platform
import subprocess

from tests.functional import base

_DISTRIBUTIONS = (
    'openstack-heat',
    'swift',
    'keystone',
    'oslo.messaging',
    'SQLAlchemy',
)


def about() -> dict[str, object]:
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


def sentence(found: dict[str, object]) -> str:
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
    for line in pathlib.Path(file).read_text().splitlines():
        key, _, value = line.partition(':')
        if key.strip() == name:
            return value.strip()
    return '0'


def _commit() -> str:
    described = subprocess.run(
        ['git', 'describe', '--always', '--dirty'],
        cwd=base.ROOT,
        capture_output=True,
        text=True,
    )
    return described.stdout.strip() or 'of no commit'
