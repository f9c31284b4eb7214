# SPDX-License-Identifier: Apache-2.0
"""The pages for laptops and for servers' images, typed on a host of Debian.

`test_installations.py` types those for hosts of Heat, and `test_server.py` the
rest: what a server does with the add-on.
"""

import fnmatch
import os
import shutil
import subprocess
import sys

import pytest

from tests import pages
from tests.functional import base
from tests.functional import debian
from tests.unit import environments

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

#: The add-on for diskimage-builder; the paths of what it installs.
_ELEMENT = f'{debian.SOURCE}/contrib/agent/heat-config-supervisor'
_ADD_ON = '*heat?config?supervisor*'

#: Builds the add-on's packages.
_PACKAGES = base.ROOT / 'contrib/agent/packages'


@pytest.fixture(scope='module')
def host(tmp_path_factory):
    """A host with what an add-on for servers takes."""
    include = ('ansible-core', 'lintian', 'sudo', 'systemd')
    folder = tmp_path_factory.mktemp('host')
    with debian.host(folder, 'trixie', include) as found:
        yield found


def test_a_laptop_needs_no_heat(host):
    (typed,) = pages.blocks(pages.read('install', 'A laptop'))
    _, install = typed.splitlines()
    shutil.copy(environments.wheel(), host.path / debian.SOURCE[1:])
    said = host.run(
        f"""
        python3 -m venv /opt/laptop
        . /opt/laptop/bin/activate
        {install}
        openstack software deployment run start --help
        ! pip show openstack-heat
        heat-plugins-status feature list || test $? = 255
        """,
        debian.SOURCE,
    )
    assert '--follow' in said
    # The last line: no traceback.
    assert 'this one has no Heat' in said.splitlines()[-1]


def test_each_way_to_the_add_on_installs_the_same(host, tmp_path):
    agent = base.ROOT / 'contrib/agent'
    root = host.path / 'root'
    subprocess.run([_PACKAGES, root, sys.executable], check=True)
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


def test_lintian_has_no_error_in_the_packages(host, tmp_path, monkeypatch):
    # As the page on releases has it: without an address there is one.
    monkeypatch.setenv('DEBEMAIL', 'you@example.org')
    folder = host.path / 'root/packages'
    folder.mkdir()
    debian.release(folder, tmp_path)
    subprocess.run([_PACKAGES, folder, sys.executable], check=True)
    host.run('test $(ls *.deb | wc -l) = 2; lintian *.deb', '/root/packages')


def add_on(root):
    """Return the modes and contents of the add-on's files."""
    found = {}
    for path in [*(root / 'etc').rglob('*'), *(root / 'usr').rglob('*')]:
        name = str(path.relative_to(root))
        if path.is_file() and fnmatch.fnmatch(name, _ADD_ON):
            # A package has its units where those of packages are.
            name = name.replace('usr/lib/systemd', 'etc/systemd')
            found[name] = path.stat().st_mode, path.read_bytes()
    return found
