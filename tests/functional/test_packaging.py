# SPDX-License-Identifier: Apache-2.0
"""The distributions hold what they should, and nothing else."""

import configparser
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from tests.functional import debian
from tests.unit import environments

_TOP = 'heat_plugins-0.2.0'
_DATA = f'{_TOP}.data/data/lib/heat/heat_plugins_loader.py'


def output(*command):
    """Return what a command prints, in the checkout."""
    return subprocess.run(
        command, cwd=environments.CHECKOUT, check=True, stdout=subprocess.PIPE
    ).stdout


def tracked(*paths):
    """Return the files of the checkout, the ignored ones left out."""
    command = 'git', 'ls-files', '--cached', '--others', '--exclude-standard'
    names = output(*command, '--', *paths).decode().splitlines()
    return {n for n in names if (environments.CHECKOUT / n).is_file()}


def contents(archive):
    """Return the names of the files in a tarball."""
    return {member.name for member in archive if member.isfile()}


def test_the_wheel_holds_the_package_the_loader_and_what_entry_points_name():
    with zipfile.ZipFile(environments.wheel()) as wheel:
        names = set(wheel.namelist())
        loader = 'heat_plugins/plugin_dir/heat_plugins_loader.py'
        assert wheel.read(_DATA) == wheel.read(loader)
        metadata, points = (
            wheel.read(f'{_TOP}.dist-info/{name}').decode()
            for name in ('METADATA', 'entry_points.txt')
        )
    package = {n for n in names if n.startswith('heat_plugins/')}
    assert package == tracked('heat_plugins')
    more = {n for n in names if not n.startswith(f'{_TOP}.dist-info/')}
    assert more - package == {_DATA}
    setup = configparser.ConfigParser(delimiters=('=',))
    setup.read(environments.CHECKOUT / 'setup.cfg')
    expected = {
        (group, *(part.strip() for part in line.split('=', 1)))
        for group, text in setup['entry_points'].items()
        for line in text.strip().splitlines()
        if line.strip() and not line.startswith('#')
    }
    built = configparser.ConfigParser(delimiters=('=',))
    built.optionxform = str
    built.read_string(points)
    found = {
        (group, name, target)
        for group in built.sections()
        for name, target in built[group].items()
    }
    assert found == expected
    for _, _, target in found:
        module = target.partition(':')[0].replace('.', '/')
        assert {f'{module}.py', f'{module}/__init__.py'} & names, target
    # A laptop with the commands needs no Heat.
    required = {
        re.split('[<>!]', each)[0].strip().lower()
        for each in re.findall('Requires-Dist: (.*)', metadata)
        if 'extra ==' not in each
    }
    assert 'python-heatclient' in required
    assert not required & {'openstack-heat', 'mistral', 'mistral-lib'}


@pytest.mark.skipif(not shutil.which('dpkg-deb'), reason='needs dpkg-deb')
def test_the_package_for_debian_holds_the_wheel_and_the_loader(
    tmp_path, monkeypatch
):
    monkeypatch.setenv('SOURCE_DATE_EPOCH', '1800000000')
    both = []
    for name in ('first', 'second'):
        folder = tmp_path / name
        folder.mkdir()
        debian.release(folder, folder)
        both += folder.glob('*.deb')
    first, second = both
    assert second.read_bytes() == first.read_bytes()
    # apt would remove an older heat-engine; the registry leaves it alone.
    fields = 'Breaks', 'Conflicts'
    assert output('dpkg-deb', '--field', first, *fields) == b''
    packed = io.BytesIO(output('dpkg-deb', '--fsys-tarfile', first))
    with tarfile.open(fileobj=packed) as archive:
        names = {name.removeprefix('./') for name in contents(archive)}
    python = 'usr/lib/python3/dist-packages/'
    packaged = {
        name.removeprefix(python)
        for name in names
        if name.startswith(f'{python}heat_plugins/')
    }
    assert packaged == tracked('heat_plugins')
    assert names >= {
        'usr/lib/heat/heat_plugins_loader.py',
        'usr/bin/heat-plugins-status',
        'usr/share/man/man1/heat-plugins-status.1.gz',
    }
    # pip would remove what dpkg has installed.
    assert 'RECORD' not in {pathlib.Path(name).name for name in names}


def test_debian_is_asked_for_all_that_the_wheel_needs():
    text = (environments.CHECKOUT / 'requirements.txt').read_text()
    required = {
        line.split('>')[0].strip().lower()
        for line in text.splitlines()
        if line and not line.startswith('#')
    }
    wanted = {
        'python3-' + {'pyyaml': 'yaml'}.get(name, name.removeprefix('python-'))
        for name in required
    }
    given = {name.split(' ')[0] for name in debian.build().DEPENDS}
    assert given - {'python3:any'} == wanted


def test_the_manual_page_has_each_option_and_command():
    place = environments.CHECKOUT / 'contrib/packages/heat-plugins-status.1'
    page = place.read_text().replace('\\-', '-')
    # Of the whole command, and of the subcommands.
    for words in ([], ['feature'], ['upgrade']):
        command = sys.executable, '-m', 'heat_plugins.status', *words
        said = output(*command, '--help').decode()
        for option in re.findall(r'(?m)^  (?:-\w.*, )?(--?[\w-]+)', said):
            # Every command of oslo.config has that one.
            assert option == '--shell_completion' or option in page
    for command in ('feature list', 'upgrade check', '--version'):
        assert command in page


def test_the_source_holds_all_that_is_kept_and_what_the_build_writes():
    with tarfile.open(environments.sdist()) as archive:
        names = {name.partition('/')[2] for name in contents(archive)}
    kept = tracked()
    assert kept - names - {'.gitignore'} == set()
    written = {n for n in names - kept if not n.startswith('heat_plugins.egg')}
    assert written == {
        'AUTHORS',
        'ChangeLog',
        'PKG-INFO',
        'RELEASENOTES.rst',
        'releasenotes/notes/reno.cache',
    }
