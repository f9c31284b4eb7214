# SPDX-License-Identifier: Apache-2.0
"""The add-on's packages install what its own program installs."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.unit import agent


def tree(folder):
    """Return what lies below a folder: path, and whether it is a program."""
    return {
        str(path.relative_to(folder)): os.access(path, os.X_OK)
        for path in folder.rglob('*')
        if path.is_file() and not path.is_symlink()
    }


def run(*command, **environment):
    found = subprocess.run(
        command,
        env={'PATH': os.environ['PATH'], **environment},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_packages_install_the_same(tmp_path):
    built, program, image, venv = (
        tmp_path / name for name in ('built', 'program', 'image', 'venv')
    )
    # As `make agent-packages` does.
    run(agent.ADD_ON / 'packages', built, sys.executable)
    run(agent.ADD_ON / 'install', DESTDIR=str(program))
    installed = tree(program)
    (wheel,) = built.glob('*.whl')
    run(sys.executable, '-m', 'venv', '--without-pip', venv)
    run(
        *(sys.executable, '-m', 'pip', '--python', venv, 'install'),
        *('--no-deps', '--no-index', wheel),
    )
    run(venv / 'bin/heat-config-supervisor-install', DESTDIR=str(image))
    assert tree(image) == installed

    if not shutil.which('dpkg') or os.geteuid() != 0:
        pytest.skip('needs dpkg, and root')
    (package,) = built.glob('*.deb')
    root = tmp_path / 'root'
    database = root / 'var/lib/dpkg'
    for folder in ('info', 'updates', 'triggers'):
        (database / folder).mkdir(parents=True)
    (database / 'status').touch()
    dpkg = ['dpkg', f'--root={root}', '--force-depends', '--log=/dev/null']
    run(*dpkg, '--install', package)
    wanted = {
        path.replace('etc/systemd/system', 'usr/lib/systemd/system'): program
        for path, program in installed.items()
    }
    found = {
        path: program
        for path, program in tree(root).items()
        if path.startswith(('usr/', 'etc/'))
        and not path.startswith('usr/share/doc/')
    }
    assert found == wanted
    run(*dpkg, '--purge', 'heat-config-supervisor')
    assert not (root / 'usr/libexec/heat-config-supervisor').exists()
