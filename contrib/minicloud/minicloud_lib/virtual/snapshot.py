# SPDX-License-Identifier: Apache-2.0
"""A booted machine that waits for its seed, from which others go on.

server-image/booted-ACCELERATOR.qcow2   its disk, over that of the image
             booted-ACCELERATOR.state   its memory and devices
"""

import dataclasses
import pathlib
import shlex
import time

from minicloud_lib import environment
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import output
from minicloud_lib import processes
from minicloud_lib.virtual import disks
from minicloud_lib.virtual import image as images
from minicloud_lib.virtual import qemu
from minicloud_lib.virtual import sockets

#: Seconds for a boot; without KVM, and on a busy machine.
BOOT_SECONDS = 600

#: The agent has loaded all of its code, and has nothing to do.
_READY = (
    'test -e /run/waits-for-seed && '
    'journalctl --quiet --unit os-collect-config --grep Unavailable'
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Snapshot:
    disk: pathlib.Path
    state: pathlib.Path


def ensure(
    home: layout.Home, image: images.Image, accelerator: str
) -> Snapshot:
    """Boot a machine and keep it as it is then, if there is none yet."""
    path = image.path / f'booted-{accelerator}'
    found = Snapshot(
        disk=path.with_suffix('.qcow2'), state=path.with_suffix('.state')
    )
    with files.lock(home.lock('server-image')):
        # The state comes last.
        if not found.state.exists():
            output.say('Booting a machine for the snapshot (once) ...')
            _take(home, image, accelerator, found)
    return found


def _take(
    home: layout.Home,
    image: images.Image,
    accelerator: str,
    snapshot: Snapshot,
) -> None:
    folder = files.make_folder(image.path / 'booting')
    disks.overlay(snapshot.disk, image.disk)
    machine = qemu.Machine(
        image=image, accelerator=accelerator, disk=snapshot.disk
    )
    process = processes.spawn(
        machine.command(),
        pid_file=folder / 'qemu.pid',
        log=folder / 'qemu.log',
        env=environment.clean(home, folder),
        folder=folder,
    )
    try:
        _wait(folder, process)
        monitor = sockets.Monitor(folder / 'monitor')
        monitor.execute('stop')
        # By default as quick as a network of long ago.
        parameters = {'max-bandwidth': 2**40}
        monitor.execute('migrate-set-parameters', **parameters)
        state = snapshot.state.with_suffix('.new')
        uri = f'exec:cat > {shlex.quote(str(state))}'
        monitor.execute('migrate', uri=uri)
        while (now := monitor.execute('query-migrate')['status']) in (
            'setup',
            'active',
            'device',
        ):
            time.sleep(0.2)
        if now != 'completed':
            raise errors.MinicloudError(f'QEMU ended its snapshot as {now}')
        monitor.execute('quit')
        process.wait(10)
        state.rename(snapshot.state)
    finally:
        process.kill()


def _wait(folder: pathlib.Path, process: processes.Process) -> None:
    """Wait until the machine waits for its seed."""
    inside = sockets.Inside(folder / 'agent')
    deadline = time.monotonic() + BOOT_SECONDS
    while True:
        try:
            if inside.run(_READY, seconds=60).code == 0:
                return
        except errors.MinicloudError:
            # It boots.
            pass
        if not process.alive or time.monotonic() > deadline:
            raise errors.MinicloudError(
                "a machine from the servers' image does not boot",
                f'See console.log and qemu.log in {folder}.',
            )
        time.sleep(1)
