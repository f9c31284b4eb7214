# SPDX-License-Identifier: Apache-2.0
"""The image of servers: Debian, cloud-init and the agents.

    server-image/base.qcow2     the disk, read-only
                 vmlinuz        its kernel, which QEMU starts by itself
                 initrd.img
                 image.json     what it was made of
                 kvm.json       whether KVM works here; see kvm
                 booted-*       a booted machine; see snapshot
                 build.log

What is ours in it lies in ``contrib/minicloud/server-image``.
"""

from collections.abc import Sequence
import dataclasses
import hashlib
import os
import pathlib
import shutil
import tempfile

from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import output
from minicloud_lib import packages
from minicloud_lib import processes
from minicloud_lib import venv

#: The release of Debian, and the version of Python that it has.
SUITE, PYTHON = 'bookworm', '3.11'

PACKAGES = (
    'ca-certificates',
    'cloud-init',
    'curl',
    'dbus',
    'initramfs-tools',
    'iproute2',
    'linux-image-cloud-amd64',
    'nftables',
    'python3-requests',
    'python3-venv',
    'qemu-guest-agent',
    'systemd-sysv',
    'udev',
    # Has hwclock.
    'util-linux-extra',
    'zstd',
)

#: What pip installs into the image: the agents.
AGENTS = ('os-apply-config', 'os-collect-config', 'os-refresh-config')

#: Files of heat-agents, their places in the image, and their modes.
HEAT_AGENTS = (
    (
        'heat-config/os-refresh-config/configure.d/20-os-apply-config',
        'usr/libexec/os-refresh-config/configure.d/20-os-apply-config',
        0o755,
    ),
    (
        'heat-config/os-refresh-config/configure.d/55-heat-config',
        'usr/libexec/os-refresh-config/configure.d/55-heat-config',
        0o755,
    ),
    (
        'heat-config/os-apply-config/etc/os-collect-config.conf',
        'usr/libexec/os-apply-config/templates/etc/os-collect-config.conf',
        0o600,
    ),
    (
        'heat-config/os-apply-config/var/run/heat-config/heat-config',
        'usr/libexec/os-apply-config/templates/var/run/heat-config/'
        'heat-config',
        0o600,
    ),
    (
        'heat-config/bin/heat-config-notify',
        'usr/bin/heat-config-notify',
        0o755,
    ),
    (
        'heat-config-script/install.d/hook-script.py',
        'usr/libexec/heat-config/hooks/script',
        0o755,
    ),
)

TREE = layout.SOURCE / 'server-image'
_SETUP = pathlib.Path(__file__).with_name('setup-image')

#: Megabytes of the disk.
DISK = 2048


@dataclasses.dataclass(frozen=True)
class Image:
    """An image that was built."""

    path: pathlib.Path

    @property
    def disk(self) -> pathlib.Path:
        return self.path / 'base.qcow2'

    @property
    def kernel(self) -> pathlib.Path:
        return self.path / 'vmlinuz'

    @property
    def initrd(self) -> pathlib.Path:
        return self.path / 'initrd.img'

    @property
    def record(self) -> pathlib.Path:
        return self.path / 'image.json'


def ensure(home: layout.Home) -> Image:
    """Build the image if there is none, or one made of something else.

    :raises UnavailableError: without root, or Debian's packages.
    """
    image = Image(home.server_image)
    with files.lock(home.lock('server-image')):
        packages.install('server')
        venv.ensure(home)
        wanted = _wanted()
        if files.read_json(image.record) != wanted:
            _build(home, image)
            # Last: without it there is no image.
            files.write_json(image.record, wanted)
    return image


def built(home: layout.Home) -> Image:
    """Return the image that was built.

    :raises UnavailableError: there is none, or one made of something else.
    """
    image = Image(home.server_image)
    if files.read_json(image.record) != _wanted():
        raise errors.UnavailableError(
            'there is no image of virtual machines', 'minicloud server build'
        )
    return image


def _wanted() -> dict[str, str]:
    """What the image is made of; a change of it rebuilds the image."""
    digest = hashlib.sha256()
    recipe = [pathlib.Path(__file__), _SETUP, venv.CONSTRAINTS]
    for path in [*recipe, *sorted(TREE.rglob('*'))]:
        if path.is_file():
            digest.update(str(path.relative_to(layout.SOURCE)).encode())
            digest.update(path.read_bytes())
    return {'suite': SUITE, 'recipe': digest.hexdigest()}


def _build(home: layout.Home, image: Image) -> None:
    if os.geteuid() != 0:
        raise errors.UnavailableError(
            'root is needed to build the image of servers',
            'sudo minicloud server build',
        )
    output.say(
        f'Building the image of servers in {image.path} '
        '(once, about two minutes) ...'
    )
    shutil.rmtree(image.path, ignore_errors=True)
    files.make_folder(image.path)
    log = image.path / 'build.log'
    # Not in the home, which may lie in a checkout: its tree has a /proc at
    # times, and a build of the checkout would look through it.
    with tempfile.TemporaryDirectory(prefix='minicloud-') as name:
        folder = pathlib.Path(name)
        root = folder / 'root'
        packages.make_tree(root, SUITE, PACKAGES, log)
        venv.pip(home, _download(root / 'tmp/wheels'), log)
        _fill(root, home.heat_agents)
        shutil.copy(_SETUP, root)
        _run(['chroot', root, '/bin/sh', '-eux', '/setup-image'], log)
        for kernel, kept in (
            ('vmlinuz', image.kernel),
            ('initrd.img', image.initrd),
        ):
            shutil.move(next((root / 'boot').glob(f'{kernel}-*')), kept)
        raw = folder / 'disk.raw'
        _run(_make_file_system(root, raw), log)
        _run(['qemu-img', 'convert', '-O', 'qcow2', raw, image.disk], log)


def _download(wheels: pathlib.Path) -> list[object]:
    return [
        *('download', '--dest', wheels, '-c', venv.CONSTRAINTS),
        # For the image's Python, whichever runs pip.
        *('--python-version', PYTHON, '--only-binary', ':all:'),
        *AGENTS,
    ]


def _fill(root: pathlib.Path, heat_agents: pathlib.Path) -> None:
    """Copy what is ours, and heat-agents', into the tree of the image."""
    for path in TREE.rglob('*'):
        if path.is_file():
            _put(path, root / path.relative_to(TREE), 0o644)
    for source, target, mode in HEAT_AGENTS:
        _put(heat_agents / source, root / target, mode)


def _put(source: pathlib.Path, target: pathlib.Path, mode: int) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def _make_file_system(root: pathlib.Path, raw: pathlib.Path) -> list[object]:
    lazy = 'lazy_itable_init=1,lazy_journal_init=1'
    return [
        *('mke2fs', '-q', '-t', 'ext4', '-L', 'root', '-E', lazy),
        *('-d', root, raw, f'{DISK}M'),
    ]


def _run(command: Sequence[object], log: pathlib.Path) -> None:
    processes.run(command, packages.ENV, log)
