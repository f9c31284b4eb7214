# SPDX-License-Identifier: Apache-2.0
"""The command line of a virtual machine, and whether KVM works here."""

from collections.abc import Iterable
import contextlib
import dataclasses
import pathlib
import shlex
import subprocess
import tempfile
import time

from minicloud_lib import files
from minicloud_lib import output
from minicloud_lib import ports
from minicloud_lib.virtual import image as images

PROGRAM = 'qemu-system-x86_64'

#: Where a machine finds the services, under the ports that they have here.
#: The image leads there what its programs send to 127.0.0.1.
SERVICES = '10.0.2.100'

#: Megabytes of memory.
MEMORY = 768

#: Per accelerator; of the models of TCG this is the quickest.
_CPUS = {'kvm': 'max', 'tcg': 'qemu64'}

#: Seconds for a kernel to come up, where KVM works: it takes one.
_KVM_SECONDS = 15


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """The parts of a virtual machine.

    :ivar accelerator: ``kvm`` or ``tcg``.
    :ivar seed: the disk that cloud-init reads, if it is there already.
    :ivar services: the ports of this machine that it reaches; nothing else.
    :ivar resumes: the file of a booted machine to start from.
    """

    image: images.Image
    accelerator: str
    disk: pathlib.Path
    seed: pathlib.Path | None = None
    services: Iterable[int] = ()
    resumes: pathlib.Path | None = None

    def command(self) -> list[str]:
        """Return the command; sockets and console lie where it starts."""
        return [
            PROGRAM,
            *_hardware(self.image, self.accelerator),
            *('-append', 'root=LABEL=root ro console=ttyS0 quiet'),
            *('-serial', 'file:console.log'),
            *('-drive', f'if=virtio,format=qcow2,file={_path(self.disk)}'),
            *(self._seed(self.seed) if self.seed else ()),
            *('-netdev', self._network()),
            *('-device', 'virtio-net-pci,netdev=net0,id=nic0,romfile='),
            *('-device', 'virtio-rng-pci'),
            *('-device', 'virtio-serial-pci'),
            *('-chardev', 'socket,id=agent,path=agent,server=on,wait=off'),
            '-device',
            'virtserialport,chardev=agent,name=org.qemu.guest_agent.0',
            *('-qmp', 'unix:monitor,server=on,wait=off'),
            *(self._incoming(self.resumes) if self.resumes else ()),
        ]

    @staticmethod
    def _seed(seed: pathlib.Path) -> list[str]:
        file = _path(seed)
        return ['-drive', f'if=virtio,format=raw,readonly=on,file={file}']

    @staticmethod
    def _incoming(state: pathlib.Path) -> list[str]:
        return ['-incoming', f'exec:cat {shlex.quote(str(state))}']

    def _network(self) -> str:
        """User networking: nothing but the services, each by a relay."""
        relays = [
            f'guestfwd=tcp:{SERVICES}:{port}-cmd:'
            f'socat STDIO TCP4:{ports.ADDRESS}:{port}'
            for port in self.services
        ]
        return ','.join(['user,id=net0,restrict=on,ipv6=off', *relays])


def accelerator(image: images.Image) -> str:
    """Return ``kvm`` if a kernel comes up with it, and else ``tcg``.

    That /dev/kvm is there says little inside of a virtual machine. Tried
    once for each boot of this machine.
    """
    boot = pathlib.Path('/proc/sys/kernel/random/boot_id').read_text().strip()
    path = image.path / 'kvm.json'
    known = files.read_json(path, {})
    if known.get('boot') != boot:
        known = {'boot': boot, 'works': _kvm_works(image)}
        files.write_json(path, known)
    return 'kvm' if known['works'] else 'tcg'


def _kvm_works(image: images.Image) -> bool:
    if not pathlib.Path('/dev/kvm').exists():
        return False
    output.say(f'Trying KVM, for {_KVM_SECONDS} s at most ...')
    with tempfile.TemporaryDirectory(dir=image.path) as folder:
        console = pathlib.Path(folder) / 'console.log'
        command = [
            PROGRAM,
            *_hardware(image, 'kvm'),
            *('-append', 'console=ttyS0'),
            *('-serial', 'file:console.log', '-no-reboot'),
        ]
        child = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            deadline = time.monotonic() + _KVM_SECONDS
            while time.monotonic() < deadline and child.poll() is None:
                # Its last words before it starts the first program.
                if 'Run /init' in files.tail(console, 200):
                    return True
                time.sleep(0.1)
            return False
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            child.wait()


def _hardware(image: images.Image, accelerator: str) -> list[str]:
    return [
        *('-accel', accelerator, '-cpu', _CPUS[accelerator]),
        *('-machine', 'pc', '-m', str(MEMORY), '-smp', '1'),
        *('-nodefaults', '-display', 'none'),
        *('-kernel', str(image.kernel), '-initrd', str(image.initrd)),
    ]


def _path(path: pathlib.Path) -> str:
    """Return a path as QEMU's options have it."""
    return str(path).replace(',', ',,')
