# SPDX-License-Identifier: Apache-2.0
"""A host of Debian, or Ubuntu, to type a page's commands on: a chroot.

Where nothing has to boot it serves as well as a virtual machine, and is there
in a minute.
"""

from collections.abc import Sequence
import contextlib
import hashlib
from importlib import util
import os
import pathlib
import shutil
import subprocess
import time
from typing import Any

import pytest

from tests.unit import environments

# conftest has put it on the path.
from minicloud_lib import errors  # isort: skip
from minicloud_lib import files  # isort: skip
from minicloud_lib import layout  # isort: skip
from minicloud_lib import packages  # isort: skip

#: What each has: the machine's authorities are copied over Debian's.
_PACKAGES = ('ca-certificates', 'git', 'python3-pip', 'python3-venv')

#: Of this machine: what it takes to reach Debian's packages and those of pip.
_NETWORK = (
    'etc/hosts',
    'etc/resolv.conf',
    'etc/ssl/certs/ca-certificates.crt',
)

#: Where the checkout is, as it is now.
SOURCE = '/root/heat-plugins'

#: Its mounts end with the commands.
_ENTER = """\
mount --types proc proc proc
mount --rbind /dev dev
mount --rbind /sys sys
exec chroot --userspec="$1" . /bin/bash -euo pipefail -c "cd $2; $3"
"""

#: Debian's next release may be a snapshot of some days ago.
_DEBIAN = ('--aptopt=Acquire::Check-Valid-Until "false"',)

_UBUNTU = ('noble', 'resolute')
_UBUNTU_MIRROR = 'http://archive.ubuntu.com/ubuntu'
_UBUNTU_KEYRING = 'usr/share/keyrings/ubuntu-archive-keyring.gpg'


class Host:
    """A tree of Debian's files; commands run in it, and ask nothing."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def run(self, script, folder='/root', user='root'):
        """Run lines of bash up to the first that fails; return the output."""
        done = subprocess.run(
            self.command(script, folder, user),
            cwd=self.path,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f'{script}\n{done.stdout}'
        return done.stdout

    def command(self, script, folder='/root', user='root'):
        """Return the command that runs lines of bash; its folder is ours."""
        enter = ('unshare', '--mount', 'sh', '-euc', _ENTER, 'sh')
        return [*enter, user, folder, script]

    @property
    def env(self) -> dict[str, str]:
        return {
            **{n: v for n, v in os.environ.items() if n[:4] == 'PIP_'},
            'LC_ALL': 'C.UTF-8',
            'PATH': f'/usr/local/bin:{packages.ENV["PATH"]}',
            'HOME': '/root',
            # No service runs that systemctl could restart.
            'SYSTEMD_OFFLINE': '1',
            'PIP_CERT': f'/{_NETWORK[-1]}',
            'PIP_YES': '1',
            'DEBIAN_FRONTEND': 'noninteractive',
        }


@contextlib.contextmanager
def host(folder, suite, include):
    """Make one, with this source in `SOURCE`; it goes in the end.

    The test is skipped where the packages cannot be had.
    """
    found = Host(folder / suite)
    try:
        packages.install('tree')
        with files.lock(layout.Home.find().lock('trees')):
            tree = _tree(suite, [*_PACKAGES, *include])
    except errors.UnavailableError as error:
        pytest.skip(str(error))
    try:
        subprocess.run(['cp', '--archive', tree, found.path], check=True)
        _prepare(found)
        yield found
    finally:
        shutil.rmtree(found.path, ignore_errors=True)


def build() -> Any:
    """Return the program that makes Debian's package of heat-plugins."""
    place = environments.CHECKOUT / 'contrib/packages/build.py'
    spec = util.spec_from_file_location('build_packages', place)
    found = util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def release(folder: pathlib.Path, work: pathlib.Path) -> None:
    """Put into a folder what `make dist` makes of heat-plugins itself."""
    wheel, epoch = environments.wheel(), 1_800_000_000
    shutil.copy(wheel, folder)
    build().build_deb(wheel, environments.sdist(), work, folder, epoch)


def _prepare(found: Host) -> None:
    """Let a host reach the network, ask nothing, and have the source."""
    for name in _NETWORK:
        shutil.copy(f'/{name}', found.path / name)
    yes = found.path / 'etc/apt/apt.conf.d/yes'
    yes.write_text('APT::Get::Assume-Yes "true";\n')
    source = found.path / SOURCE[1:]
    shutil.copytree(environments.source(), source, symlinks=True)
    found.run('apt-get update')


def _tree(suite: str, include: Sequence[str]) -> pathlib.Path:
    """Return a tree of mere packages, as Debian has them this week."""
    digest = hashlib.sha256(' '.join(include).encode()).hexdigest()[:8]
    cache = layout.Home.find().cache
    tree = cache / f'{suite}-{digest}'
    week_ago = time.time() - 7 * 86400
    if not tree.exists() or tree.stat().st_ctime < week_ago:
        shutil.rmtree(tree, ignore_errors=True)
        unfinished = cache / f'{suite}-{digest}.unfinished'
        shutil.rmtree(unfinished, ignore_errors=True)
        cache.mkdir(parents=True, exist_ok=True)
        log = cache / f'{suite}.log'
        more = _ubuntu() if suite in _UBUNTU else _DEBIAN
        packages.make_tree(unfinished, suite, include, log, *more)
        unfinished.rename(tree)
    return tree


def _ubuntu() -> list[str]:
    """Return what names Ubuntu's archive and its keys, which Debian has."""
    keyring = _tree('trixie', ['ubuntu-keyring']) / _UBUNTU_KEYRING
    components = '--components=main,universe'
    return [_UBUNTU_MIRROR, f'--keyring={keyring}', components]
