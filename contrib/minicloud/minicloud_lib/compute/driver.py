# SPDX-License-Identifier: Apache-2.0
"""A hypervisor whose servers are the mini cloud's agents and machines.

`guests` has what a server is.
"""

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

from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib.compute import guests
from minicloud_lib.compute import images

#: What there is of each resource: enough for thousands of servers.
_INVENTORY = {
    os_resource_classes.VCPU: 10_000,
    os_resource_classes.MEMORY_MB: 8_000_000,
    os_resource_classes.DISK_GB: 1_000_000,
}


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
        return [*guests.known(self._instance)]

    def list_instances(self) -> list[str]:
        return self.list_instance_uuids()

    def get_info(self, instance: Any, use_cache: bool = True) -> Any:
        guest = self._guest(instance)
        if not guest.path.is_dir():
            raise exception.InstanceNotFound(instance_id=instance.uuid)
        state = power_state.RUNNING if guest.is_on else power_state.SHUTDOWN
        return hardware.InstanceInfo(state=state)

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
        guest = guests.new(
            self._instance,
            instance.uuid,
            is_machine=instance.flavor.name == images.MACHINE,
        )
        try:
            guest.create(
                drive,
                name=instance.display_name,
                supervised=image_meta.name == images.SUPERVISED,
            )
            if power_on:
                guest.start()
        except errors.MinicloudError as error:
            # There is no other host to try.
            raise exception.BuildAbortException(
                instance_uuid=instance.uuid, reason=str(error)
            ) from error

    def destroy(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        # To revert a resize is to go back to the same disk.
        if instance.task_state == task_states.RESIZE_REVERTING:
            self._guest(instance).stop()
        else:
            self._guest(instance).remove()

    def cleanup(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        """Do nothing: `destroy` leaves nothing."""

    def power_on(
        self, context: Any, instance: Any, *_: Any, **__: Any
    ) -> None:
        self._guest(instance).start()

    def power_off(self, instance: Any, *_: Any, **__: Any) -> None:
        self._guest(instance).stop()

    def reboot(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._guest(instance).stop()
        self._guest(instance).start()

    def suspend(self, context: Any, instance: Any) -> None:
        self._guest(instance).stop()

    def resume(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        self._guest(instance).start()

    def resume_state_on_host_boot(
        self, context: Any, instance: Any, *_: Any, **__: Any
    ) -> None:
        self._guest(instance).start()

    # A resize, on this host as there is no other: the disk stays.

    def migrate_disk_and_power_off(
        self, context: Any, instance: Any, *_: Any, **__: Any
    ) -> str:
        self._guest(instance).stop()
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
            self._guest(instance).start()

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
            self._guest(instance).start()

    # What there is nothing to do for

    def plug_vifs(self, instance: Any, network_info: Any) -> None:
        """Do nothing: there are no networks."""

    def unplug_vifs(self, instance: Any, network_info: Any) -> None:
        """Do nothing: there are no networks."""

    def _guest(self, instance: Any) -> guests.Guest:
        return guests.find(self._instance, instance.uuid)
