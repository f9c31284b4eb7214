# SPDX-License-Identifier: Apache-2.0
"""A server of a stack, as a virtual machine.

servers/NAME/server.json    which one it is, and how it was started
             disk.qcow2     its disk, over that of the image
             seed.iso       what cloud-init reads
             console.log    what it prints
             qemu.log       what QEMU has to say
"""

from collections.abc import Iterable
import contextlib
import pathlib
import re
import shutil
import time
from typing import Any

from minicloud_lib import environment
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import processes
from minicloud_lib import settings as instance_settings
from minicloud_lib.virtual import disks
from minicloud_lib.virtual import image as images
from minicloud_lib.virtual import qemu
from minicloud_lib.virtual import seed
from minicloud_lib.virtual import snapshot
from minicloud_lib.virtual import sockets

#: The services that a server talks to, by the names of their ports.
SERVICES = ('keystone', 'heat', 'heat_cfn', 'swift')

#: Seconds for a machine to shut down in order.
STOP_SECONDS = 120


class Server:
    """One virtual machine of an instance."""

    def __init__(self, instance: layout.Instance, name: str) -> None:
        # It is the machine's host name, too.
        if not re.fullmatch(r'[a-z0-9][a-z0-9-]{0,62}', name):
            raise errors.UsageError(
                f'{name!r} cannot name a server',
                'Use lower-case letters, digits and -.',
            )
        self.instance = instance
        self.name = name
        self.path = instance.servers / name
        self.inside = sockets.Inside(self.path / 'agent')
        self.monitor = sockets.Monitor(self.path / 'monitor')

    @property
    def console(self) -> pathlib.Path:
        return self.path / 'console.log'

    @property
    def pid_file(self) -> pathlib.Path:
        return self.path / 'qemu.pid'

    @property
    def process(self) -> processes.Process | None:
        return processes.find(self.pid_file)

    @property
    def _disk(self) -> pathlib.Path:
        return self.path / 'disk.qcow2'

    @property
    def _seed(self) -> pathlib.Path:
        return self.path / 'seed.iso'

    def about(self) -> dict[str, Any]:
        running = self.process
        record: dict[str, Any] = files.read_json(self.path / 'server.json', {})
        return {
            'name': self.name,
            'running': running is not None,
            'pid': running.pid if running else None,
            'folder': str(self.path),
            **record,
        }

    def create(self, disk: seed.Seed, **record: str) -> None:
        """Make its folder; what was there of that name is forgotten.

        :param record: which server it is, for people.
        """
        self.remove()
        files.make_folder(self.path)
        seed.make(self._seed, disk)
        found = {**record, 'supervised': disk.supervised}
        files.write_json(self.path / 'server.json', found)

    def start(
        self,
        image: images.Image,
        accelerator: str,
        booted: snapshot.Snapshot | None = None,
    ) -> None:
        """Switch it on.

        :param booted: what to go on from at its first start; without it the
            machine boots.
        """
        new = not self._disk.exists()
        if new:
            disks.overlay(self._disk, booted.disk if booted else image.disk)
        machine = qemu.Machine(
            image=image,
            accelerator=accelerator,
            disk=self._disk,
            seed=None if new and booted else self._seed,
            services=self._services(),
            resumes=booted.state if new and booted else None,
        )
        process = processes.spawn(
            machine.command(),
            pid_file=self.pid_file,
            log=self.path / 'qemu.log',
            env=environment.clean(self.instance.home, self.path),
            folder=self.path,
        )
        try:
            self._wait(process)
            if machine.resumes:
                self._go_on()
        except BaseException:
            process.kill()
            if new:
                self._disk.unlink()
            raise

    def stop(self) -> bool:
        """Shut it down in order; false if it had to be switched off."""
        process = self.process
        if process is None:
            return True
        with contextlib.suppress(sockets.Silent):
            self.monitor.execute('system_powerdown')
        ended = process.wait(STOP_SECONDS)
        self.kill()
        return ended

    def kill(self) -> None:
        """Cut its power: what it has not written to its disk is lost."""
        process = self.process
        if process:
            process.kill()
        self.pid_file.unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def plug(self, plugged: bool) -> None:
        """Plug its network in, or pull the plug."""
        self.monitor.execute('set_link', name='nic0', up=plugged)

    def _services(self) -> Iterable[int]:
        found = instance_settings.require(self.instance)
        if found.ca_file:
            raise errors.UsageError(
                'servers cannot use the profile production: their image does '
                'not trust its authority',
                'Choose another --name, and the profile small or rgw.',
            )
        return [found.ports[name] for name in SERVICES]

    def _wait(self, process: processes.Process) -> None:
        """Wait until QEMU answers, with the state of the machine loaded."""
        deadline = time.monotonic() + 60
        while True:
            try:
                state = self.monitor.execute('query-status')['status']
            except sockets.Silent:
                state = 'silent'
            if state not in ('silent', 'inmigrate'):
                return
            if not process.alive or time.monotonic() > deadline:
                said = files.tail(self.path / 'qemu.log', 5)
                raise errors.MinicloudError(f'QEMU has not started: {said}')
            time.sleep(0.1)

    def _go_on(self) -> None:
        """Go on as a machine that has just come to wait for its seed."""
        self.monitor.execute('cont')
        # Its clock stood still until now.
        self.inside.set_clock(time.time())
        file = {'driver': 'file', 'filename': str(self._seed)}
        node = {'driver': 'raw', 'node-name': 'seed', 'read-only': True}
        self.monitor.execute('blockdev-add', **node, file=file)
        self.monitor.execute(
            'device_add', driver='virtio-blk-pci', drive='seed', id='seed'
        )


def known(instance: layout.Instance) -> list[Server]:
    """All servers that were ever started and not removed."""
    return [
        Server(instance, path.parent.name)
        for path in sorted(instance.servers.glob('*/server.json'))
    ]


def find(instance: layout.Instance, name: str) -> Server:
    server = Server(instance, name)
    if not server.path.is_dir():
        raise errors.UsageError(
            f'there is no server {name!r}', 'See minicloud server list.'
        )
    return server


def kill_all(instance: layout.Instance) -> None:
    for server in known(instance):
        server.kill()
