# SPDX-License-Identifier: Apache-2.0
"""From the ``pm_type`` of a file to a hardware type of Ironic's.

Before Ironic's release Ocata a driver was a name for several interfaces at
once, such as ``pxe_ipmitool``; files still have these. Sources: Ironic's
documentation of hardware types, and of the drivers that it has removed.
"""

from collections import abc
import dataclasses
from typing import Final

from heat_plugins import bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class Driver:
    """A hardware type, and what it calls its settings.

    :ivar settings: the entry of ``driver_info`` for each ``pm_*``.
    :ivar required: those without which there is no way to the BMC.
    """

    name: str
    settings: abc.Mapping[str, str]
    required: tuple[str, ...] = ()


def _settings(prefix: str, **others: str) -> dict[str, str]:
    return {
        'pm_addr': f'{prefix}_address',
        'pm_user': f'{prefix}_username',
        'pm_password': f'{prefix}_password',
        'pm_port': f'{prefix}_port',
        **others,
    }


_REDFISH = _settings('redfish', pm_system_id='redfish_system_id')
_LOGIN = ('pm_addr', 'pm_user', 'pm_password')

_DRIVERS = {
    driver.name: driver
    for driver in (
        Driver(name='ipmi', settings=_settings('ipmi'), required=('pm_addr',)),
        Driver(name='redfish', settings=_REDFISH, required=('pm_addr',)),
        # Its own protocol has gone from Ironic; it speaks Redfish now.
        Driver(name='idrac', settings=_REDFISH, required=_LOGIN),
        Driver(
            name='ilo',
            settings=_settings('ilo', pm_port='client_port'),
            required=_LOGIN,
        ),
        Driver(name='ilo5', settings=_settings('ilo'), required=_LOGIN),
        Driver(name='irmc', settings=_settings('irmc'), required=_LOGIN),
        Driver(name='snmp', settings=_settings('snmp'), required=('pm_addr',)),
        # A person at the machine does what a BMC does.
        Driver(name='manual-management', settings=_settings('manual')),
        Driver(name='fake-hardware', settings=_settings('fake')),
    )
}

_OLD_NAMES: Final = {
    'agent_ilo': 'ilo',
    'agent_ipmitool': 'ipmi',
    'agent_irmc': 'irmc',
    'drac': 'idrac',
    'fake': 'fake-hardware',
    'fake_agent': 'fake-hardware',
    'fake_pxe': 'fake-hardware',
    'ipmitool': 'ipmi',
    'iscsi_ilo': 'ilo',
    'iscsi_irmc': 'irmc',
    'manual': 'manual-management',
    'pxe_drac': 'idrac',
    'pxe_ilo': 'ilo',
    'pxe_ipmitool': 'ipmi',
    'pxe_irmc': 'irmc',
    'pxe_snmp': 'snmp',
}

_GONE: Final = {
    'pxe_ssh': 'drive virtual machines with redfish and sushy-tools, or with '
    'ipmi and VirtualBMC',
    'pxe_ucs': 'use redfish',
    'cisco-ucs-managed': 'use redfish',
    'pxe_iboot': 'use snmp',
    'pxe_amt': 'Ironic has no replacement',
    'pxe_wol': 'Ironic has no replacement',
}


#: The hardware types that are known here.
NAMES: Final = tuple(_DRIVERS)


def find(pm_type: str) -> Driver | None:
    """Return the driver of a ``pm_type``, whatever its age."""
    name = pm_type.strip().lower()
    return _DRIVERS.get(_OLD_NAMES.get(name, name))


def advice(pm_type: str) -> str:
    """Say why there is none, and what to do."""
    gone = _GONE.get(pm_type.strip().lower())
    shown = bounds.shortened(pm_type)
    if gone:
        return f'Ironic no longer has driver {shown}: {gone}'
    known = ', '.join(NAMES)
    return (
        f'pm_type {shown} is unknown; known are {known}. For other hardware, '
        'give driver and driver_info as in Ironic'
    )
