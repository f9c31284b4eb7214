# SPDX-License-Identifier: Apache-2.0
"""Machines for tests: files of them, their ramdisks, and the commands."""

from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
import contextlib
import json
import threading
from typing import Any

from tests.functional import base
from tests.functional import planning

PASSWORD = 'hunter22-of-a-bmc'

# The first that takes what a ramdisk sends in full.
_HEADERS = {'X-OpenStack-Ironic-API-Version': '1.84'}


def name(number: int) -> str:
    return f'node{number:03}'


def mac(number: int) -> str:
    return f'52:54:00:00:00:{number:02x}'


def entry(number: int, **more: Any) -> base.Template:
    """Return an entry of a file, as instackenv.json has them."""
    return {
        'name': name(number),
        'pm_type': 'fake-hardware',
        'pm_addr': f'192.0.2.{number}',
        'pm_user': 'root',
        'pm_password': PASSWORD,
        'mac': [mac(number).upper()],
        'cpu': '4',
        'memory': '8192',
        'disk': '40',
        'arch': 'x86_64',
        'capabilities': 'boot_mode:uefi',
        **more,
    }


class Commands(planning.Plan):
    """``openstack deployment plan node …``, as the administrator."""

    def __init__(self, cloud, folder):
        super().__init__(cloud, folder, 'nodes')
        self._env = cloud.env('admin')

    def file(self, entries: Iterable[base.Template]) -> str:
        """Write a file of nodes; return its path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / 'instackenv.json'
        path.write_text(json.dumps({'nodes': list(entries)}))
        return str(path)

    def both(self, command: str, *arguments: str) -> tuple[int, Any]:
        """Run one; return its exit code and what it printed."""
        code, output, errors = self.run(command, *arguments)
        assert output, errors
        return code, {one['Name']: one for one in json.loads(output)}

    def _arguments(self, command, arguments):
        words = ['deployment', 'plan', 'node', command]
        return [*words, *arguments, '-f', 'json']


class Machines:
    """The machines of an Ironic, which do as they are told.

    :ivar errors: by the name of a machine, how often its ramdisk fails.
    :ivar silent: machines whose ramdisk never says anything.
    :ivar stopped: machines whose inspection somebody stops.
    :ivar most: how many were inspected at a time.
    """

    def __init__(self, session: base.minicloud_client.Session) -> None:
        self._session = session
        self.errors: dict[str, int] = {}
        self.silent: set[str] = set()
        self.stopped: set[str] = set()
        self.most = 0
        self._booted: set[tuple[str, str]] = set()

    def nodes(self) -> dict[str, base.Template]:
        """Return what Ironic says of all nodes, by their names."""
        fields = 'name,uuid,provision_state,inspection_started_at'
        answer = self._ask('GET', f'/v1/nodes?fields={fields}')
        return {one['name']: one for one in answer.json()['nodes']}

    def states(self) -> dict[str, str]:
        return {
            one: found['provision_state']
            for one, found in self.nodes().items()
        }

    def ports(self) -> list[str]:
        found = self._ask('GET', '/v1/ports').json()['ports']
        return sorted(one['address'] for one in found)

    @contextlib.contextmanager
    def booting(self) -> Iterator[None]:
        """Let the ramdisks of nodes that are inspected boot, and report."""
        ended = threading.Event()

        def play() -> None:
            # To list a hundred nodes is work for Ironic.
            while not ended.wait(1):
                # Ironic may be too busy to answer in time.
                with contextlib.suppress(OSError):
                    self._play()

        thread = threading.Thread(target=play, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def purge(self) -> None:
        """Delete all nodes, whatever they do."""

        def delete(node: base.Template) -> None:
            path = f'/v1/nodes/{node["uuid"]}'
            if node['provision_state'] == 'inspect wait':
                self._move(node['name'], 'abort')
            if not self._ask('DELETE', path).ok:
                self._move(node['name'], 'manage')

        def gone() -> bool:
            self._each(delete, self.nodes().values())
            return not self.nodes()

        base.until(gone, 100)

    def _play(self) -> None:
        inspected = {
            one: found
            for one, found in self.nodes().items()
            if found['provision_state'] in ('inspecting', 'inspect wait')
        }
        self.most = max(self.most, len(inspected))
        # Each boots once for each inspection.
        booting = {
            (one, found['inspection_started_at'])
            for one, found in inspected.items()
            if found['provision_state'] == 'inspect wait'
            and one not in self.silent
        }
        self._each(self._boot, booting - self._booted)

    def _boot(self, booting: tuple[str, str]) -> None:
        machine, _ = booting
        if machine in self.stopped:
            done = self._move(machine, 'abort')
        elif self.errors.get(machine):
            done = self._report(machine, error='disk on fire')
            self.errors[machine] -= done
        else:
            done = self._report(machine)
        # Else Ironic had it locked, or was too busy.
        if done:
            self._booted.add(booting)

    def _report(self, machine: str, **more: Any) -> bool:
        """Send what the ramdisk of a machine has found."""
        address = mac(int(machine.removeprefix('node')))
        body = {
            'inventory': {
                'interfaces': [{'name': 'eth0', 'mac_address': address}],
                'cpu': {'count': 8, 'architecture': 'x86_64'},
                'memory': {'physical_mb': 16384},
                'disks': [{'name': '/dev/sda', 'size': 100 << 30}],
                'boot': {'current_boot_mode': 'uefi'},
                'system_vendor': {'product_name': 'Make-believe'},
            },
            **more,
        }
        return bool(self._ask('POST', '/v1/continue_inspection', body).ok)

    def _move(self, machine: str, verb: str) -> bool:
        path = f'/v1/nodes/{machine}/states/provision'
        return bool(self._ask('PUT', path, {'target': verb}).ok)

    @staticmethod
    def _each(act: Callable[[Any], None], things: Iterable[Any]) -> None:
        with futures.ThreadPoolExecutor(4) as executor:
            for _ in executor.map(act, things):
                pass

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._session.request(
            method, 'baremetal', path, body, headers=_HEADERS
        )
