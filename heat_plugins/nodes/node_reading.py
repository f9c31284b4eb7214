# SPDX-License-Identifier: Apache-2.0
"""Reading files of nodes: ``instackenv.json`` and its like, JSON or YAML.

Ironic judges the values. This module translates an entry into Ironic's terms,
and identifies its node. An invalid entry becomes a `node.Flaw`, and the others
are read.
"""

from collections import abc
import json
import re
from typing import Any, Final
from urllib import parse

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.nodes import node


def _settings(prefix: str, **others: str) -> dict[str, str]:
    return {
        'pm_addr': f'{prefix}_address',
        'pm_user': f'{prefix}_username',
        'pm_password': f'{prefix}_password',
        **others,
    }


_REDFISH = _settings('redfish', pm_system_id='redfish_system_id')

#: The entry of ``driver_info`` for each ``pm_*``, by hardware type.
DRIVERS: Final[abc.Mapping[str, abc.Mapping[str, str]]] = {
    'ipmi': _settings('ipmi', pm_port='ipmi_port'),
    'redfish': _REDFISH,
    # Ironic no longer has its own protocol; it speaks Redfish now.
    'idrac': _REDFISH,
    'ilo': _settings('ilo', pm_port='client_port'),
    'irmc': _settings('irmc', pm_port='irmc_port'),
    'snmp': _settings('snmp', pm_port='snmp_port'),
    'fake-hardware': _settings('fake', pm_port='fake_port'),
}

# Names from before Ironic had hardware types; those have no underscore.
_OLD_NAME = re.compile('fake|drac|.*_.*')

_PROPERTIES = {
    'cpu': 'cpus',
    'memory': 'memory_mb',
    'disk': 'local_gb',
    'arch': 'cpu_arch',
    'root_device': 'root_device',
}
_IMAGES = {'kernel_id': 'deploy_kernel', 'ramdisk_id': 'deploy_ramdisk'}

# Fields of a node that are passed on unchanged.
_MORE = {
    'automated_clean',
    'conductor_group',
    'description',
    'extra',
    'lessee',
    'network_data',
    'owner',
    'resource_class',
}
_KNOWN = {
    *_PROPERTIES,
    *_IMAGES,
    *_MORE,
    'capabilities',
    'driver',
    'driver_info',
    'mac',
    'name',
    'pm_type',
    'ports',
    'properties',
    'uuid',
}

_MAC = re.compile('[0-9a-f]{2}(:[0-9a-f]{2}){5}')

# A BMC has the same place with and without its protocol's own port.
_USUAL_PORTS = ('443', '623')


def read(content: Any) -> list[node.Wanted | node.Flaw]:
    """Return the nodes of a file, in its order.

    :raises errors.Invalid: it is not a list of nodes, or an empty one.
    """
    if isinstance(content, dict):
        content = content.get('nodes')
    if not isinstance(content, list):
        raise errors.Invalid(
            'The file of nodes must hold a list of nodes, or a map with '
            '"nodes", a list'
        )
    if not content:
        raise errors.Invalid(
            'The file has no nodes, so nothing was registered or removed'
        )
    entries: list[node.Wanted | node.Flaw] = []
    for number, given in enumerate(content, 1):
        label = f'number {number}'
        if not isinstance(given, dict):
            entries.append(node.Flaw(label=label, reason='it must be a map'))
            continue
        entry = {
            str(name): value
            for name, value in given.items()
            if value not in (None, '')
        }
        label = str(entry.get('name') or entry.get('uuid') or label)
        try:
            entries.append(_read_entry(entry, label))
        except errors.Invalid as exc:
            entries.append(node.Flaw(label=label, reason=str(exc)))
    return entries


def _read_entry(entry: dict[str, Any], label: str) -> node.Wanted:
    """Translate an entry into the fields of a node in Ironic."""
    driver = str(entry.get('pm_type') or entry.get('driver') or '').strip()
    if not driver:
        raise errors.Invalid('it has no pm_type')
    if _OLD_NAME.fullmatch(driver):
        raise errors.Invalid(
            f'Ironic no longer has driver {bounds.shortened(driver)}; use '
            f'one of {", ".join(DRIVERS)}, or another hardware type'
        )
    names = {**DRIVERS.get(driver, {}), **_IMAGES}
    for name in names.keys() & entry.keys() - {'pm_port'}:
        # YAML reads 0123 as 83.
        if not isinstance(entry[name], str):
            raise errors.Invalid(f'{name} must be a text; put it into quotes')
    driver_info = {
        names[name]: str(value)
        for name, value in entry.items()
        if name in names
    } | _map(entry, 'driver_info')
    properties = {
        _PROPERTIES[name]: value
        for name, value in entry.items()
        if name in _PROPERTIES
    }
    properties = _map(entry, 'properties') | properties
    capabilities = _capabilities(properties.pop('capabilities', ''))
    capabilities |= _capabilities(entry.get('capabilities', ''))
    wanted = node.Wanted(
        label=label,
        driver=driver,
        uuid=str(entry.get('uuid', '')).lower(),
        name=str(entry.get('name', '')),
        driver_info=driver_info,
        properties=properties,
        capabilities=capabilities,
        ports=_ports(entry),
        more={
            name: value
            for name, value in entry.items()
            if name in _MORE or name.endswith('_interface')
        },
        place=place(driver_info),
        warnings=tuple(
            f'the key {name} is unknown'
            for name in entry
            if name not in _KNOWN | names.keys()
            and not name.startswith('_')
            and not name.endswith('_interface')
        ),
    )
    if not (wanted.uuid or wanted.ports or wanted.place):
        raise errors.Invalid(
            'nothing identifies the node: give mac, an address of its BMC, '
            'or uuid'
        )
    return wanted


def _ports(entry: abc.Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return the network cards of an entry, of ``ports`` or ``mac``."""
    given = entry.get('ports', entry.get('mac', []))
    cards = given if isinstance(given, list) else [given]
    ports = []
    for card in cards:
        port = dict(card) if isinstance(card, dict) else {'address': card}
        text = str(port.get('address')).strip().lower().replace('-', ':')
        if not _MAC.fullmatch(text):
            shown = bounds.shortened(repr(port.get('address')))
            raise errors.Invalid(
                f'{shown} is not a MAC address; put one into quotes'
            )
        ports.append({**port, 'address': text})
    return tuple(ports)


def _capabilities(given: Any) -> dict[str, str]:
    """Read both forms: a map, and ``boot_mode:uefi,profile:compute``."""
    if isinstance(given, dict):
        return {
            str(name): value if isinstance(value, str) else json.dumps(value)
            for name, value in given.items()
        }
    pairs = [
        pair.partition(':') for pair in str(given).split(',') if pair.strip()
    ]
    if not isinstance(given, str) or not all(pair[1] for pair in pairs):
        raise errors.Invalid(
            'capabilities must be a map, or a text such as '
            'name:value,name:value'
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def _map(entry: abc.Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a map in the file of nodes."""
    value = entry.get(name, {})
    if not isinstance(value, dict):
        raise errors.Invalid(f'{name} must be a map')
    return {str(key): each for key, each in value.items()}


def place(driver_info: abc.Mapping[str, Any]) -> node.Place | None:
    """Return the place of a BMC: host, port, and the system behind it.

    A node has the same place after its driver has changed: the port is ''
    where it is the usual one. It is None without an address.
    """
    settings = {
        name.partition('_')[2]: str(value).strip()
        for name, value in driver_info.items()
    }
    address = settings.get('address', '').lower()
    if not address:
        return None
    try:
        parts = parse.urlsplit(address if '://' in address else f'//{address}')
        host, port = parts.hostname or address, str(parts.port or '')
    except ValueError:
        # An IPv6 address without brackets, such as 2001:db8::1.
        host, port = address, ''
    port = settings.get('port') or port
    system = settings.get('system_id') or settings.get('outlet') or ''
    return host, '' if port in _USUAL_PORTS else port, system
