# SPDX-License-Identifier: Apache-2.0
"""A host of Debian to type a page's commands on: a chroot.

Where nothing has to boot it serves as well as a virtual machine, and is there
in a minute.
"""

from collections.abc import Iterator, Sequence
import contextlib
import os
import pathlib
import shutil
import subprocess

import pytest

from tests.unit import environments

# conftest has put it on the path.
from minicloud_lib import errors  # isort: skip
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


class Host:
    """A tree of Debian's files; commands run in it, and ask nothing."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def run(
        self, script: str, folder: str = '/root', user: str = 'root'
    ) -> str:
        """Run lines of bash up to the first that fails; return the output."""
        done = subprocess.run(
            [
                *('unshare', '--mount', 'sh', '-euc', _ENTER, 'sh'),
                *(user, folder, script),
            ],
            cwd=self.path,
            env={
                **{n: v for n, v in os.environ.items() if n[:4] == 'PIP_'},
                'LC_ALL': 'C.UTF-8',
                'PATH': f'/usr/local/bin:{packages.ENV["PATH"]}',
                'HOME': '/root',
                # No service runs that systemctl could restart.
                'SYSTEMD_OFFLINE': '1',
                'PIP_CERT': f'/{_NETWORK[-1]}',
                'PIP_YES': '1',
                'DEBIAN_FRONTEND': 'noninteractive',
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f'{script}\n{done.stdout}'
        return done.stdout


@contextlib.contextmanager
def host(
    folder: pathlib.Path, suite: str, include: Sequence[str]
) -> Iterator[Host]:
    """Make one, with this source in `SOURCE`; it goes in the end.

    The test is skipped where the packages cannot be had.
    """
    found = Host(folder / suite)
    try:
        packages.install('server')
        packages.make_tree(
            found.path, suite, [*_PACKAGES, *include], folder / 'build.log'
        )
    except errors.UnavailableError as error:
        pytest.skip(str(error))
    for name in _NETWORK:
        shutil.copy(f'/{name}', found.path / name)
    yes = found.path / 'etc/apt/apt.conf.d/yes'
    yes.write_text('APT::Get::Assume-Yes "true";\n')
    source = found.path / SOURCE[1:]
    shutil.copytree(environments.source(), source, symlinks=True)
    found.run('apt-get update')
    yield found
    shutil.rmtree(found.path)
