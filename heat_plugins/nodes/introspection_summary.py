# SPDX-License-Identifier: Apache-2.0
"""What an inspection has found, in a few numbers."""

from collections import abc
import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """A machine.

    :ivar disks_gb: the sizes of its disks, in gibibytes.
    :ivar macs: the addresses of its network cards.
    """

    cpus: int | None = None
    architecture: str = ''
    memory_mb: int | None = None
    disks_gb: tuple[int, ...] = ()
    macs: tuple[str, ...] = ()
    product: str = ''


def read(found: abc.Mapping[str, Any]) -> Summary:
    """Return the summary of what Ironic has of an inspection.

    What is missing, or is not what Ironic's agent sends, is left out.
    """
    data = _map(found.get('inventory'))
    cpu, memory = _map(data.get('cpu')), _map(data.get('memory'))
    return Summary(
        cpus=_number(cpu.get('count')),
        architecture=str(cpu.get('architecture') or ''),
        memory_mb=_number(memory.get('physical_mb')),
        disks_gb=tuple(
            size >> 30
            for disk in _maps(data.get('disks'))
            if (size := _number(disk.get('size'))) is not None
        ),
        macs=tuple(
            str(one['mac_address'])
            for one in _maps(data.get('interfaces'))
            if one.get('mac_address')
        ),
        product=str(_map(data.get('system_vendor')).get('product_name') or ''),
    )


def _map(value: Any) -> abc.Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[abc.Mapping[str, Any]]:
    found = value if isinstance(value, list) else []
    return [one for one in found if isinstance(one, dict)]


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None
