# SPDX-License-Identifier: Apache-2.0
"""The pages for those who install, typed on hosts of Debian.

`test_server.py` types the rest: what a server does with the add-on.
"""

from collections.abc import Iterator
import contextlib
import fnmatch
from importlib import machinery
from importlib import util
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tests import pages
from tests.functional import base
from tests.functional import debian
from tests.unit import environments

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

#: How each type's class is named, once heat-plugins is used.
OURS = {
    one.name: one.value
    for one in importlib.metadata.entry_points(group='heat_plugins.resources')
}

_HEAT_CONF = '/etc/heat/heat.conf'

_CONSTRAINTS = f'{debian.SOURCE}/contrib/minicloud/constraints.txt'

#: The add-on for diskimage-builder; the paths of what it installs.
_ELEMENT = f'{debian.SOURCE}/contrib/agent/heat-config-supervisor'
_ADD_ON = '*heat?config?supervisor*'


@pytest.fixture(scope='module')
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[debian.Host]:
    """A host with Debian's Heat, and what an add-on for servers takes."""
    include = ('heat-engine', 'ansible-core', 'sudo', 'systemd')
    folder = tmp_path_factory.mktemp('host')
    with debian.host(folder, 'trixie', include) as found:
        yield found


def ours(host: debian.Host, python: str = 'python3') -> dict[str, str]:
    """Return the types that heat-engine has from us, with their classes."""
    probe = f'{debian.SOURCE}/tests/unit/engine_probe.py'
    shutil.copy(f'{host.path}{probe}', host.path / 'tmp/probe.py')
    said = host.run(
        f'echo {_HEAT_CONF} | {python} -P /tmp/probe.py 2>/dev/null',
        folder='/tmp',
        user='heat',
    )
    return {
        name: value
        for name, value in json.loads(said)['classes'].items()
        if value.startswith('heat_plugins.')
    }


@contextlib.contextmanager
def line(host: debian.Host, said: str) -> Iterator[None]:
    """Let heat.conf have the line that a command has printed last."""
    conf = host.path / _HEAT_CONF[1:]
    before = conf.read_text()
    plugin_dirs = said.splitlines()[-1]
    assert plugin_dirs.startswith('plugin_dirs = ')
    conf.write_text(
        before.replace('[DEFAULT]\n', f'[DEFAULT]\n{plugin_dirs}\n', 1)
    )
    try:
        yield
    finally:
        conf.write_text(before)


def test_debians_heat_stays_as_it_is(
    host: debian.Host, tmp_path: pathlib.Path
) -> None:
    section = pages.read('install-images', "Debian's Heat")
    (install,) = pages.blocks(section)
    (remove,) = re.findall(r'``(apt\s+remove[^`]*)``', section)
    package(host.path / 'root', tmp_path)
    # Hosts made for tests lack documents and manual pages.
    verify = 'dpkg --verify | grep -v /usr/share/ || true'
    before = host.run(verify)
    files = 'find / -xdev -path /proc -prune -o -name "*heat?plugins*"'
    there = host.run(files)
    conf = (host.path / _HEAT_CONF[1:]).read_bytes()
    host.run(install)
    assert host.run(verify) == before
    assert (host.path / _HEAT_CONF[1:]).read_bytes() == conf
    assert ours(host) == OURS
    release = host.run('heat-plugins-status --version', '/tmp', 'heat')
    assert release.startswith('heat-plugins 0.2.0')
    host.run(' '.join(remove.split()))
    assert host.run(verify) == before
    assert ours(host) == {}
    assert host.run(files) == there


def package(folder: pathlib.Path, work: pathlib.Path) -> None:
    """Build the package for Debian as `make dist` does, into a folder."""
    loader = machinery.SourceFileLoader(
        'build_packages', str(base.ROOT / 'contrib/packages/build.py')
    )
    spec = util.spec_from_loader(loader.name, loader)
    assert spec is not None
    build = util.module_from_spec(spec)
    loader.exec_module(build)
    build.build_deb(
        environments.wheel(), environments.sdist(), work, folder, 1_800_000_000
    )


def test_a_virtual_environment_keeps_its_packages(host: debian.Host) -> None:
    (install,) = pages.blocks(
        pages.read('install-images', 'A virtual environment')
    )
    python = '/opt/heat/bin/python'
    host.run(
        f"""
        python3 -m venv /opt/heat
        {python} -m pip install --constraint {_CONSTRAINTS} openstack-heat
        """
    )
    before = host.run(f'{python} -m pip list --format freeze')
    said = host.run(install, debian.SOURCE)
    after = host.run(f'{python} -m pip list --format freeze')
    assert set(before.splitlines()) <= set(after.splitlines())
    host.run(f'{python} -m pip check')
    with line(host, said):
        assert ours(host, python) == OURS


def test_a_laptop_needs_no_heat(host: debian.Host) -> None:
    section = pages.read('install-images', 'A laptop')
    (install,) = re.findall('``(pip .*)``', section)
    said = host.run(
        f"""
        python3 -m venv /opt/laptop
        . /opt/laptop/bin/activate
        pip install python-openstackclient
        {install}
        openstack software deployment trigger --help
        ! pip show openstack-heat
        """,
        debian.SOURCE,
    )
    assert '--follow' in said


def test_each_way_to_the_add_on_installs_the_same(
    host: debian.Host, tmp_path: pathlib.Path
) -> None:
    agent = base.ROOT / 'contrib/agent'
    root = host.path / 'root'
    subprocess.run([agent / 'packages', root, sys.executable], check=True)
    section = pages.read('supervisor', 'Install it into an image')
    _, install, packages, _, play = pages.blocks(section)
    apt, pip = packages.splitlines()
    subprocess.run(
        [agent / 'install'],
        env={**os.environ, 'DESTDIR': str(tmp_path)},
        check=True,
    )
    expected = add_on(tmp_path)
    (root / 'servers').write_text('[servers]\nlocalhost\n')
    (root / 'play.yaml').write_text(play)
    for typed in (
        install,
        f"""
        python3 -m venv --system-site-packages /opt/agents
        . /opt/agents/bin/activate
        {pip}
        """,
        # No whole image: the element's phase of the build, and then what the
        # element os-refresh-config does.
        f"""
        /opt/agents/bin/pip install dib-utils
        /opt/agents/bin/dib-run-parts {_ELEMENT}/install.d
        cp -r {_ELEMENT}/os-refresh-config /usr/libexec
        """,
        'ansible-playbook -i servers -c local play.yaml',
        apt,
    ):
        host.run(typed)
        assert add_on(host.path) == expected, typed
        host.run(
            f"""
            dpkg --purge heat-config-supervisor
            find /etc /usr -depth -path "{_ADD_ON}" -delete
            """
        )


def add_on(root: pathlib.Path) -> dict[str, tuple[int, bytes]]:
    """Return the modes and contents of the add-on's files."""
    found = {}
    for path in [*(root / 'etc').rglob('*'), *(root / 'usr').rglob('*')]:
        name = str(path.relative_to(root))
        if path.is_file() and fnmatch.fnmatch(name, _ADD_ON):
            # A package has its units where those of packages are.
            name = name.replace('usr/lib/systemd', 'etc/systemd')
            found[name] = path.stat().st_mode, path.read_bytes()
    return found
