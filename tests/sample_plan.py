# SPDX-License-Identifier: Apache-2.0
"""A plan as large and as old as those in the field, and validations.

They are fetched once from the package index that pip is configured for, into
the mini cloud's cache. Where that cannot be done, tests of them are skipped.
"""

import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

from heat_plugins.content import tarballs

_PLAN = ('tripleo-heat-templates', '7.0.18')
_VALIDATIONS = ('validations-common', '1.9.0')

# They are older than the tools that build packages today: those take the
# folders of a plan for Python packages, and refuse to build several at once.
_TOOLS = ('setuptools==75.8.2', 'wheel', 'pbr')
_LOOK_FOR_NONE = """\
import setuptools.discovery

setuptools.discovery.ConfigDiscovery.__call__ = lambda *_, **__: None
"""

_HOME = pathlib.Path(
    os.environ.get(
        'MINICLOUD_HOME', pathlib.Path(__file__).parents[1] / '.minicloud'
    )
)
_CACHE = _HOME / 'cache' / 'sample-plan'


def content():
    """Return the plan's files, or skip the test."""
    with _tarball(*_PLAN).open('rb') as file:
        return tarballs.read(file)


def validations():
    """Return the files of a published set, or skip the test."""
    with _tarball(*_VALIDATIONS).open('rb') as file:
        found = tarballs.read(file)
    return {
        path: text
        for path, text in found.items()
        # The rest is how they test themselves.
        if path.startswith('validations_common/') and '/tests/' not in path
    }


def _tarball(package, version):
    path = _CACHE / f'{package}-{version}.tar.gz'
    if not path.exists():
        _CACHE.mkdir(parents=True, exist_ok=True)
        with (_CACHE / 'lock').open('w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _fetch(package, version)
    return path


def _fetch(package, version):
    tools = _CACHE / 'tools'
    pip = [tools / 'bin' / 'python', '-m', 'pip', '--quiet']
    options = ['--no-deps', '--no-binary=:all:', '--no-build-isolation']

    def run(*command):
        subprocess.run(command, check=True, timeout=300, capture_output=True)

    try:
        run(sys.executable, '-m', 'venv', tools)
        run(*pip, 'install', *_TOOLS)
        for folder in tools.glob('lib/python*/site-packages'):
            (folder / 'sitecustomize.py').write_text(_LOOK_FOR_NONE)
        source = f'{package}=={version}'
        run(*pip, 'download', '--dest', _CACHE, *options, source)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f'{package} cannot be fetched: {error}')
