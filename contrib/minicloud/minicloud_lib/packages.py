# SPDX-License-Identifier: Apache-2.0
"""The programs that pip cannot install: packages of Debian."""

from collections.abc import Sequence
import os
import pathlib
import shutil
import subprocess

from minicloud_lib import errors
from minicloud_lib import output
from minicloud_lib import processes

#: A program of each Debian package that a profile needs, a server, or a tree.
PROGRAMS: dict[str, dict[str, str]] = {
    'tree': {'/usr/bin/mmdebstrap': 'mmdebstrap'},
    'server': {
        '/usr/bin/qemu-system-x86_64': 'qemu-system-x86',
        '/usr/bin/qemu-img': 'qemu-utils',
        '/usr/bin/mmdebstrap': 'mmdebstrap',
        '/usr/bin/genisoimage': 'genisoimage',
        '/usr/bin/socat': 'socat',
    },
    'rgw': {
        '/usr/bin/ceph': 'ceph-common',
        '/usr/bin/ceph-mon': 'ceph-mon',
        '/usr/bin/ceph-osd': 'ceph-osd',
        '/usr/bin/radosgw': 'radosgw',
    },
    # What opens Horizon's pages in tests.
    'browser': {'/usr/bin/chromium': 'chromium'},
    'production': {
        '/usr/sbin/mariadbd': 'mariadb-server',
        '/usr/lib/rabbitmq/bin/rabbitmq-server': 'rabbitmq-server',
        '/usr/bin/memcached': 'memcached',
        '/usr/sbin/haproxy': 'haproxy',
        '/usr/bin/openssl': 'openssl',
    },
}

#: What apt-get says of packages that are unavailable; all else is a failure.
UNAVAILABLE = (
    'Unable to locate package',
    'has no installation candidate',
    'Unable to fetch some archives',
)

#: For Debian's programs, also those of the administrator.
ENV = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', 'LC_ALL': 'C'}


def missing(profile: str | None) -> list[str]:
    """The Debian packages that a profile lacks; none for ``small``."""
    return [
        package
        for program, package in PROGRAMS.get(profile or '', {}).items()
        if not pathlib.Path(program).exists()
    ]


def require(profile: str) -> None:
    """Refuse to continue without them, before anything is started."""
    if packages := missing(profile):
        raise errors.UsageError(
            f'"{profile}" needs programs that are not installed: '
            + ', '.join(packages),
            'On Debian or Ubuntu: sudo ' + _command(packages),
        )


def install(profile: str | None) -> None:
    """Install them with apt-get, as root; says so before it does.

    :raises UnavailableError: if there is no root, no apt-get or no package.
    """
    packages = missing(profile)
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which('apt-get') is None:
        raise errors.UnavailableError(
            'root and apt-get are needed to install ' + ', '.join(packages),
            'sudo ' + _command(packages),
        )
    output.say(
        f'Running as root: {_command(packages)}\nDebian may start services '
        'from them on this machine; the mini cloud does not use these.'
    )
    environment = {
        **os.environ,
        'DEBIAN_FRONTEND': 'noninteractive',
        'LC_ALL': 'C',
    }
    for command in (['apt-get', 'update'], _arguments(packages)):
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        # An index that is out of date may do.
        if result.returncode and 'install' in command:
            gone = any(text in result.stderr for text in UNAVAILABLE)
            kind = errors.UnavailableError if gone else errors.MinicloudError
            raise kind(
                f'{_command(packages)} failed:\n'
                + '\n'.join(result.stderr.splitlines()[-5:])
            )


def make_tree(
    root: pathlib.Path,
    suite: str,
    include: Sequence[str],
    log: pathlib.Path,
    *more: str,
) -> None:
    """Make a tree of Debian's files, with some packages and few of the rest.

    :param more: arguments of mmdebstrap: options, and a mirror.
    :raises UnavailableError: if they cannot be downloaded.
    """
    unwanted = ('man', 'doc', 'locale')
    command = [
        'mmdebstrap',
        '--variant=minbase',
        '--aptopt=Apt::Install-Recommends "false"',
        *(f'--dpkgopt=path-exclude=/usr/share/{one}/*' for one in unwanted),
        '--include=' + ','.join(include),
        suite,
        root,
        *more,
    ]
    try:
        processes.run(command, ENV, log)
    except errors.MinicloudError as error:
        # Without a network, say. All else is made of what is here then.
        raise errors.UnavailableError(
            f"Cannot download Debian's packages: {error}", error.remedy
        ) from error


def _arguments(packages: list[str]) -> list[str]:
    return ['apt-get', 'install', '-y', '--no-install-recommends', *packages]


def _command(packages: list[str]) -> str:
    return ' '.join(_arguments(packages))
