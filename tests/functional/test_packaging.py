# SPDX-License-Identifier: Apache-2.0
"""The distributions hold what they should, and nothing else."""

import configparser
from importlib import machinery
from importlib import util
import io
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import fixtures
import testtools

from tests.unit import environments

BUILD = 'contrib/packages/build.py'

#: Of a commit, in seconds.
EPOCH = 1_800_000_000

_TOP = 'heat_plugins-0.2.0'
_DATA = f'{_TOP}.data/data/lib/heat/heat_plugins_loader.py'


def tracked(*paths):
    """Return the files of the checkout, the ignored ones left out."""
    done = subprocess.run(
        [
            *('git', 'ls-files', '--cached', '--others'),
            *('--exclude-standard', '--', *paths),
        ],
        cwd=environments.CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = done.stdout.splitlines()
    return {n for n in names if (environments.CHECKOUT / n).is_file()}


class WheelTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.wheel = zipfile.ZipFile(environments.wheel())
        self.addCleanup(self.wheel.close)
        self.names = set(self.wheel.namelist())

    def read(self, name):
        return self.wheel.read(f'{_TOP}.dist-info/{name}').decode()

    def test_it_holds_the_package_whole(self):
        found = {n for n in self.names if n.startswith('heat_plugins/')}
        assert found == tracked('heat_plugins')

    def test_it_holds_nothing_else_but_the_loader_for_heat(self):
        more = {
            name
            for name in self.names
            if not name.startswith(('heat_plugins/', f'{_TOP}.dist-info/'))
        }
        assert more == {_DATA}
        loader = 'heat_plugins/plugin_dir/heat_plugins_loader.py'
        assert self.wheel.read(_DATA) == self.wheel.read(loader)

    def test_every_entry_point_is_there_and_leads_somewhere(self):
        config = configparser.ConfigParser(delimiters=('=',))
        config.optionxform = str
        config.read(environments.CHECKOUT / 'setup.cfg')
        expected = {
            (group, *(part.strip() for part in line.split('=', 1)))
            for group, text in config['entry_points'].items()
            for line in text.strip().splitlines()
            if line.strip() and not line.startswith('#')
        }
        built = configparser.ConfigParser(delimiters=('=',))
        built.optionxform = str
        built.read_string(self.read('entry_points.txt'))
        found = {
            (group, name, target)
            for group in built.sections()
            for name, target in built[group].items()
        }
        assert found == expected
        for _, _, target in found:
            module = target.partition(':')[0].replace('.', '/')
            there = {f'{module}.py', f'{module}/__init__.py'} & self.names
            assert there, target

    def test_a_laptop_with_the_commands_needs_no_heat(self):
        required = re.findall('Requires-Dist: (.*)', self.read('METADATA'))
        base = {
            re.split('[<>!]', each)[0].strip().lower()
            for each in required
            if 'extra ==' not in each
        }
        assert 'python-heatclient' in base
        assert base & {'openstack-heat', 'mistral', 'mistral-lib'} == set()


def module(path):
    """Return a program of the checkout, which is in no package."""
    loader = machinery.SourceFileLoader(
        'program', str(environments.CHECKOUT / path)
    )
    found = util.module_from_spec(util.spec_from_loader(loader.name, loader))
    loader.exec_module(found)
    return found


class DistTest(testtools.TestCase):
    """What `make dist` makes of the two that pbr builds."""

    def setUp(self):
        super().setUp()
        self.build = module(BUILD)
        epoch = fixtures.EnvironmentVariable('SOURCE_DATE_EPOCH', str(EPOCH))
        self.useFixture(epoch)

    def test_the_package_for_debian_holds_the_wheel_and_the_loader(self):
        if not shutil.which('dpkg-deb'):
            self.skipTest('needs dpkg-deb')
        folders = [
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            for _ in range(2)
        ]
        first, second = [
            self.build.build_deb(
                environments.wheel(),
                environments.sdist(),
                folder,
                folder,
                EPOCH,
            )
            for folder in folders
        ]
        assert second.read_bytes() == first.read_bytes()
        # apt would remove an older heat-engine; the registry leaves it alone.
        assert self.relations(first) == ''
        listed = subprocess.run(
            ['dpkg-deb', '--fsys-tarfile', first],
            check=True,
            capture_output=True,
        ).stdout
        with tarfile.open(fileobj=io.BytesIO(listed)) as archive:
            names = {
                member.name.removeprefix('./')
                for member in archive
                if member.isfile()
            }
        python = 'usr/lib/python3/dist-packages/'
        packaged = {
            name.removeprefix(python)
            for name in names
            if name.startswith(f'{python}heat_plugins/')
        }
        assert packaged == tracked('heat_plugins')
        assert 'usr/lib/heat/heat_plugins_loader.py' in names
        assert 'usr/bin/heat-plugins-status' in names
        assert 'usr/share/man/man1/heat-plugins-status.1.gz' in names
        # pip would remove what dpkg has installed.
        assert 'RECORD' not in {pathlib.Path(n).name for n in names}

    def relations(self, package):
        """Return what a package for Debian says of others that must go."""
        return subprocess.run(
            ['dpkg-deb', '--field', package, 'Breaks', 'Conflicts'],
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def test_the_manual_page_has_each_option_and_command(self):
        page = (
            (environments.CHECKOUT / BUILD)
            .with_name('heat-plugins-status.1')
            .read_text()
            .replace('\\-', '-')
        )
        # Of the whole command, and of the subcommands.
        for words in ([], ['feature'], ['upgrade']):
            done = subprocess.run(
                [
                    sys.executable,
                    '-m',
                    'heat_plugins.status',
                    *words,
                    '--help',
                ],
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stderr
            for option in re.findall(
                r'(?m)^  (?:-\w.*, )?(--?[\w-]+)', done.stdout
            ):
                # Every command of oslo.config has that one.
                if option != '--shell_completion':
                    assert option in page
        for command in ('feature list', 'upgrade check', '--version'):
            assert command in page

    def test_debian_is_asked_for_all_that_the_wheel_needs(self):
        required = {
            line.split('>')[0].strip().lower()
            for line in (environments.CHECKOUT / 'requirements.txt')
            .read_text()
            .splitlines()
            if line and not line.startswith('#')
        }
        debian = {'pyyaml': 'yaml'}
        wanted = {
            'python3-' + debian.get(name, name.removeprefix('python-'))
            for name in required
        }
        given = {name.split(' ')[0] for name in self.build.DEPENDS}
        assert given - {'python3:any'} == wanted


class SourceTest(testtools.TestCase):
    def test_it_holds_all_that_is_kept_and_what_the_build_writes(self):
        with tarfile.open(environments.sdist()) as archive:
            names = {
                member.name.partition('/')[2]
                for member in archive.getmembers()
                if member.isfile()
            }
        kept = tracked()
        assert kept - names - {'.gitignore'} == set()
        written = {
            name
            for name in names - kept
            if not name.startswith('heat_plugins.egg-info/')
        }
        expected = {
            'AUTHORS',
            'ChangeLog',
            'PKG-INFO',
            'RELEASENOTES.rst',
            'releasenotes/notes/reno.cache',
        }
        assert written == expected
