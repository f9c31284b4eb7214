# SPDX-License-Identifier: Apache-2.0
"""The servers of Nova: agents, and virtual machines.

Both have a folder named after the server's ID. In it ``config-2`` is the
config drive, as Nova's own code makes it; its user data alone say which server
it is. An agent reads them as cloud-init would. A machine has the config drive
as a disk, and cloud-init itself.
"""

from collections.abc import Iterator, Mapping
import email
import json
import pathlib
from typing import Any, Protocol

from minicloud_lib import agents
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib.virtual import image as images
from minicloud_lib.virtual import machine
from minicloud_lib.virtual import qemu
from minicloud_lib.virtual import seed
from minicloud_lib.virtual import snapshot

#: Seconds between two polls of an agent, at most.
_INTERVAL = 2.0

#: The file that os-collect-config begins with, in the user data.
_PART = 'cfn-init-data'

_DRIVE = 'config-2'


class Guest(Protocol):
    """One server.

    :ivar path: its folder; without it there is no such server.
    """

    path: pathlib.Path

    @property
    def is_on(self) -> bool: ...

    def create(
        self, drive: Mapping[str, bytes], *, name: str, supervised: bool
    ) -> None:
        """Make it with an empty disk, switched off.

        :param drive: the files of its config drive.
        :param name: that people have for it.
        :raises minicloud_lib.errors.MinicloudError: what it needs is missing.
        """

    def start(self) -> None:
        """Switch it on, unless it is."""

    def stop(self) -> None:
        """Switch it off."""

    def remove(self) -> None:
        """Cut its power, and delete its disk."""


class AgentGuest:
    """An agent; the file ``power`` exists while it is switched on."""

    def __init__(self, instance: layout.Instance, server: str) -> None:
        self._agent = agents.Agent(instance, server)
        self.path = self._agent.path

    @property
    def is_on(self) -> bool:
        # An agent that has ended is a server that has switched itself off.
        live = self._agent.process or not self._is_set_up
        return bool(self._switch.exists() and live)

    def create(
        self, drive: Mapping[str, bytes], *, name: str, supervised: bool
    ) -> None:
        self._agent.remove()
        record = {'server': name, 'supervised': supervised}
        bootstrap = _bootstrap(drive.get('openstack/latest/user_data', b''))
        if bootstrap:
            self._agent.set_up(bootstrap, record, _INTERVAL)
        else:
            files.write_json(self.path / 'agent.json', record)
        _keep(self.path, drive)

    def start(self) -> None:
        self._switch.touch()
        if self._is_set_up and not self._agent.process:
            self._agent.start(_INTERVAL)

    def stop(self) -> None:
        self._switch.unlink(missing_ok=True)
        self._agent.stop()

    def remove(self) -> None:
        self.stop()
        self._agent.remove()

    @property
    def _switch(self) -> pathlib.Path:
        return self.path / 'power'

    @property
    def _is_set_up(self) -> bool:
        """Whether its user data had anything for an agent."""
        return (self.path / 'etc').is_dir()


class MachineGuest:
    """A virtual machine, as ``minicloud server start`` boots one."""

    def __init__(self, instance: layout.Instance, server: str) -> None:
        self._home = instance.home
        self._machine = machine.Server(instance, server)
        self.path = self._machine.path

    @property
    def is_on(self) -> bool:
        return self._machine.process is not None

    def create(
        self, drive: Mapping[str, bytes], *, name: str, supervised: bool
    ) -> None:
        images.built(self._home)
        disk = seed.config_drive(drive, supervised=supervised)
        self._machine.create(disk, server=name)
        _keep(self.path, drive)

    def start(self) -> None:
        if self.is_on:
            return
        image = images.built(self._home)
        accelerator = qemu.accelerator(image)
        booted = snapshot.ensure(self._home, image, accelerator)
        self._machine.start(image, accelerator, booted)

    def stop(self) -> None:
        self._machine.stop()

    def remove(self) -> None:
        self._machine.kill()
        self._machine.remove()


def new(instance: layout.Instance, server: str, *, is_machine: bool) -> Guest:
    """Return a server that is not there yet."""
    kind = MachineGuest if is_machine else AgentGuest
    return kind(instance, server)


def find(instance: layout.Instance, server: str) -> Guest:
    """Return a server; an agent without a folder if there is none.

    Whatever its flavor is now: a resize keeps the disk.
    """
    found = MachineGuest(instance, server)
    return found if found.path.is_dir() else AgentGuest(instance, server)


def known(instance: layout.Instance) -> Iterator[str]:
    """Yield the IDs of all servers of Nova."""
    for folder in (instance.agents, instance.servers):
        for drive in sorted(folder.glob(f'*/{_DRIVE}')):
            yield drive.parent.name


def _keep(path: pathlib.Path, drive: Mapping[str, bytes]) -> None:
    for name, content in drive.items():
        file = path / _DRIVE / name
        files.make_folder(file.parent)
        file.write_bytes(content)


def _bootstrap(user_data: bytes) -> dict[str, Any]:
    """Return what cloud-init would leave for os-collect-config, if any."""
    for part in email.message_from_bytes(user_data).walk():
        if part.get_filename() == _PART:
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                found: dict[str, Any] = json.loads(content)
                return dict(found.get('os-collect-config') or {})
    return {}
