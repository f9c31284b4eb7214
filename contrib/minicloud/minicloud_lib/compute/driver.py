# SPDX-License-Identifier: Apache-2.0
"""A hypervisor whose servers are the mini cloud's agents.

A server is an agent's folder, its disk, named after the server's ID. In it
``config-2`` is the config drive, as Nova's own code makes it. Its user data
alone tells the agent, at its first start, which server it is. ``power``
exists while the server is switched on.
"""

import email
import json
import os
import pathlib
from typing import Any

from nova import exception
from nova.api.metadata import base as instance_metadata
from nova.compute import power_state
from nova.compute import task_states
import nova.conf
from nova.virt import driver
from nova.virt import hardware
from nova.virt import node
import os_resource_classes

from minicloud_lib import agents
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib.compute import images

#: Seconds between two polls of an agent, at most.
_INTERVAL = 2.0

#: What there is of each resource: enough for thousands of servers.
_INVENTORY = {
    os_resource_classes.VCPU: 10_000,
    os_resource_classes.MEMORY_MB: 8_000_000,
    os_resource_classes.DISK_GB: 1_000_000,
}

#: The file that os-collect-config begins with, in the user data.
_PART = 'cfn-init-data'


class Driver(driver.ComputeDriver):
    def __init__(self, virtapi: Any) -> None:
        super().__init__(virtapi)
        home = layout.Home(pathlib.Path(os.environ['MINICLOUD_HOME']))
        self._instance = home.instance(os.environ['MINICLOUD_NAME'])
        self._node = nova.conf.CONF.host

    # The host

    def init_host(self, host: str) -> None:
        self._node = host

    def get_available_nodes(self, refresh: bool = False) -> list[str]:
        return [self._node]

    def get_host_ip_addr(self) -> str:
        return str(nova.conf.CONF.my_ip)

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        cpus, memory, disk = _INVENTORY.values()
        return {
            'uuid': node.get_local_node_uuid(),
            'hypervisor_hostname': nodename,
            'hypervisor_type': 'minicloud',
            'hypervisor_version': 1,
            'cpu_info': json.dumps({'arch': 'x86_64'}),
            'supported_instances': [('x86_64', 'fake', 'hvm')],
            'numa_topology': None,
            'disk_available_least': disk,
            **{'vcpus': cpus, 'memory_mb': memory, 'local_gb': disk},
            **{'vcpus_used': 0, 'memory_mb_used': 0, 'local_gb_used': 0},
        }

    def update_provider_tree(
        self, provider_tree: Any, nodename: str, allocations: Any = None
    ) -> None:
        inventory = {
            name: {'total': total, 'max_unit': total}
            for name, total in _INVENTORY.items()
        }
        provider_tree.update_inventory(nodename, inventory)

    # What servers there are

    def list_instance_uuids(self) -> list[str]:
        return [
            agent.name
            for agent in agents.known(self._instance)
            if (agent.path / 'config-2').is_dir()
        ]

    def list_instances(self) -> list[str]:
        return self.list_instance_uuids()

    def get_info(self, instance: Any, use_cache: bool = True) -> Any:
        agent = self._agent(instance)
        if not agent.path.is_dir():
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        # An agent that has ended is a server that has switched itself off.
        live = agent.process or not _is_set_up(agent)
        on = _switch(agent).exists() and live
        return hardware.InstanceInfo(
            state=power_state.RUNNING if on else power_state.SHUTDOWN
        )

    # Their life

    def spawn(
        self,
        context: Any,
        instance: Any,
        image_meta: Any,
        injected_files: Any,
        admin_password: str | None,
        allocations: Any,
        network_info: Any = None,
        block_device_info: Any = None,
        power_on: bool = True,
        accel_info: Any = None,
    ) -> None:
        metadata = instance_metadata.InstanceMetadata(
            instance,
            content=injected_files,
            extra_md={'admin_pass': admin_password} if admin_password else {},
            network_info=network_info,
        )
        drive = {
            path: content if isinstance(content, bytes) else content.encode()
            for path, content in metadata.metadata_for_config_drive()
        }
        agent = self._agent(instance)
        agent.remove()
        record = {
            'server': instance.display_name,
            'supervised': image_meta.name == images.SUPERVISED,
        }
        bootstrap = _bootstrap(drive.get('openstack/latest/user_data', b''))
        if bootstrap:
            agent.set_up(bootstrap, record, _INTERVAL)
        else:
            files.write_json(agent.path / 'agent.json', record)
        for path, content in drive.items():
            file = agent.path / 'config-2' / path
            files.make_folder(file.parent)
            file.write_bytes(content)
        if power_on:
            self._start(instance)

    def destroy(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._stop(instance)
        # To revert a resize is to go back to the same disk.
        if instance.task_state != task_states.RESIZE_REVERTING:
            self._agent(instance).remove()

    def cleanup(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        """Do nothing: `destroy` leaves nothing."""

    def power_on(
        self, context: Any, instance: Any, *_: Any, **__: Any
    ) -> None:
        self._start(instance)

    def power_off(self, instance: Any, *_: Any, **__: Any) -> None:
        self._stop(instance)

    def reboot(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._stop(instance)
        self._start(instance)

    def suspend(self, context: Any, instance: Any) -> None:
        self._stop(instance)

    def resume(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._start(instance)

    def resume_state_on_host_boot(
        self, context: Any, instance: Any, *_: Any, **__: Any
    ) -> None:
        self._start(instance)

    # A resize, on this host as there is no other: the disk stays.

    def migrate_disk_and_power_off(
        self, context: Any, instance: Any, *_: Any, **__: Any
    ) -> str:
        self._stop(instance)
        return '{}'

    def finish_migration(
        self,
        context: Any,
        migration: Any,
        instance: Any,
        *_: Any,
        power_on: bool = True,
        **__: Any,
    ) -> None:
        if power_on:
            self._start(instance)

    def confirm_migration(self, *_: Any, **__: Any) -> None:
        """Do nothing: there is one disk."""

    def finish_revert_migration(
        self,
        context: Any,
        instance: Any,
        *_: Any,
        power_on: bool = True,
        **__: Any,
    ) -> None:
        if power_on:
            self._start(instance)

    # What there is nothing to do for

    def plug_vifs(self, instance: Any, network_info: Any) -> None:
        """Do nothing: there are no networks."""

    def unplug_vifs(self, instance: Any, network_info: Any) -> None:
        """Do nothing: there are no networks."""

    def _agent(self, instance: Any) -> agents.Agent:
        return agents.Agent(self._instance, instance.uuid)

    def _start(self, instance: Any) -> None:
        agent = self._agent(instance)
        _switch(agent).touch()
        if _is_set_up(agent) and not agent.process:
            agent.start(_INTERVAL)

    def _stop(self, instance: Any) -> None:
        agent = self._agent(instance)
        _switch(agent).unlink(missing_ok=True)
        agent.stop()


def _switch(agent: agents.Agent) -> pathlib.Path:
    return agent.path / 'power'


def _is_set_up(agent: agents.Agent) -> bool:
    """Whether its user data had anything for an agent."""
    return (agent.path / 'etc').is_dir()


def _bootstrap(user_data: bytes) -> dict[str, Any]:
    """Return what cloud-init would leave for os-collect-config, if any."""
    for part in email.message_from_bytes(user_data).walk():
        if part.get_filename() == _PART:
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                found: dict[str, Any] = json.loads(content)
                return dict(found.get('os-collect-config') or {})
    return {}
