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
    return found.stdout


@pytest.fixture(scope='module')
def packages(tmp_path_factory):
    """A folder with the packages, as `make agent-packages` builds them."""
    found = tmp_path_factory.mktemp('packages')
    run(agent.ADD_ON / 'packages', found, sys.executable)
    return found


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    """What the program `install` makes of the checkout."""
    found = tmp_path_factory.mktemp('installed')
    run(agent.ADD_ON / 'install', DESTDIR=str(found))
    return tree(found)


def test_the_wheel_installs_the_same(packages, installed, tmp_path):
    (wheel,) = packages.glob('*.whl')
    venv = tmp_path / 'venv'
    run(sys.executable, '-m', 'venv', '--without-pip', venv)
    run(
        *(sys.executable, '-m', 'pip', '--python', venv, 'install'),
        *('--no-deps', '--no-index', wheel),
    )
    run(
        venv / 'bin/heat-config-supervisor-install',
        DESTDIR=str(tmp_path / 'image'),
    )
    assert tree(tmp_path / 'image') == installed


def test_the_package_for_debian_installs_the_same(
    packages, installed, tmp_path
):
    if not shutil.which('dpkg') or os.geteuid() != 0:
        pytest.skip('needs dpkg, and root')
    (package,) = packages.glob('*.deb')
    database = tmp_path / 'var/lib/dpkg'
    for folder in ('info', 'updates', 'triggers'):
        (database / folder).mkdir(parents=True)
    (database / 'status').touch()
    dpkg = ['dpkg', f'--root={tmp_path}', '--force-depends', '--log=/dev/null']
    run(*dpkg, '--install', package)
    shown = run('dpkg-query', f'--admindir={database}', '--show')
    assert shown.startswith('heat-config-supervisor\t')
    units = 'lib/systemd/system/heat-config-supervisor'
    wanted = {
        path.replace('etc/systemd/system', 'usr/lib/systemd/system'): program
        for path, program in installed.items()
    }
    found = {
        path: program
        for path, program in tree(tmp_path).items()
        if path.startswith(('usr/', 'etc/'))
        and not path.startswith('usr/share/doc/')
    }
    assert found == wanted
    assert f'usr/{units}.service' in found
    run(*dpkg, '--purge', 'heat-config-supervisor')
    assert not (tmp_path / 'usr/libexec/heat-config-supervisor').exists()
