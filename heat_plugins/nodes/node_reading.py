# SPDX-License-Identifier: Apache-2.0
"""Reading files of nodes: ``instackenv.json`` and its like, JSON or YAML.

Such files are written by hand and by many programs: numbers come as text,
MAC addresses in capitals, and drivers under the names of ten years. An entry
that is wrong is a `node.Flaw`, and the others stay what they are.
"""

from collections import abc
import json
from typing import Any
import uuid as uuids

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.nodes import addresses
from heat_plugins.nodes import drivers
from heat_plugins.nodes import node

_NUMBERS = {'cpu': 'cpus', 'memory': 'memory_mb', 'disk': 'local_gb'}

# Fields of a node that are handed on as they are.
_MORE = (
    'automated_clean',
    'conductor_group',
    'description',
    'extra',
    'lessee',
    'network_data',
    'owner',
    'resource_class',
)
_IMAGES = {
    'kernel_id': 'deploy_kernel',
    'ramdisk_id': 'deploy_ramdisk',
    'deploy_kernel': 'deploy_kernel',
    'deploy_ramdisk': 'deploy_ramdisk',
}
_KNOWN = {
    *_NUMBERS,
    *_MORE,
    *_IMAGES,
    'arch',
    'capabilities',
    'driver',
    'driver_info',
    'mac',
    'name',
    'pm_type',
    'ports',
    'properties',
    'root_device',
    'uuid',
}

_PORT = {
    'address',
    'extra',
    'is_smartnic',
    'local_link_connection',
    'name',
    'physical_network',
    'pxe_enabled',
    'uuid',
}


# Digits of a number; Ironic keeps 64 bits.
_DIGITS = 18


class _Wrong(Exception):
    """Why an entry is no node; no value of it."""


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
    return _once(
        [_entry(entry, place) for place, entry in enumerate(content, 1)]
    )


def _entry(given: Any, place: int) -> node.Wanted | node.Flaw:
    label = f'number {place}'
    if not isinstance(given, dict):
        return node.Flaw(label=label, reason='it must be a map')
    entry = {str(name): value for name, value in given.items()}
    label = _text(entry.get('name')) or _text(entry.get('uuid')) or label
    try:
        return _wanted(entry, label)
    except _Wrong as exc:
        return node.Flaw(label=label, reason=str(exc))


def _wanted(entry: dict[str, Any], label: str) -> node.Wanted:
    driver, driver_info, used = _driver(entry)
    ports = _ports(entry)
    properties, capabilities = _properties(entry)
    wanted = node.Wanted(
        label=label,
        driver=driver,
        uuid=_uuid(entry.get('uuid')),
        name=_text(entry.get('name')) or None,
        driver_info=driver_info,
        properties=properties,
        capabilities=capabilities,
        ports=ports,
        more={
            name: value
            for name, value in entry.items()
            if name in _MORE or name.endswith('_interface')
        },
        place=addresses.place(driver_info),
        warnings=tuple(
            f'the key {name} is unknown'
            for name in entry
            if not name.startswith('_')
            and not name.endswith('_interface')
            and name not in _KNOWN
            and name not in used
        ),
    )
    if not (wanted.uuid or wanted.ports or wanted.place):
        raise _Wrong(
            'nothing identifies the node: give ports, an address of its BMC, '
            'or uuid'
        )
    return wanted


def _driver(
    entry: abc.Mapping[str, Any],
) -> tuple[str, dict[str, Any], set[str]]:
    """Return the driver, its settings, and the names that these had."""
    settings = _map(entry, 'driver_info')
    pm_type = _text(entry.get('pm_type')) or _text(entry.get('driver'))
    if not pm_type:
        raise _Wrong('it has no pm_type')
    driver = drivers.find(pm_type)
    if driver is None:
        if 'pm_type' in entry or not settings:
            raise _Wrong(drivers.advice(pm_type))
        driver = drivers.Driver(name=pm_type, settings={})
    used = {name for name in driver.settings if name in entry}
    for name in used:
        if entry[name] not in (None, ''):
            value: object = _text(entry[name])
            if name == 'pm_port':
                value = _number(entry, name)
            settings.setdefault(driver.settings[name], value)
    for name in entry:
        # As the driver itself names them.
        if name in driver.settings.values():
            settings.setdefault(name, entry[name])
            used.add(name)
        elif name in _IMAGES and entry[name]:
            settings.setdefault(_IMAGES[name], entry[name])
    lacking = [
        name
        for name in driver.required
        if driver.settings[name] not in settings
    ]
    if lacking:
        raise _Wrong(f'driver {driver.name} needs ' + ', '.join(lacking))
    if driver.settings.get('pm_port') == 'redfish_port':
        _move_port(settings)
    return driver.name, settings, used


def _move_port(settings: dict[str, Any]) -> None:
    """Redfish has its port in the address, and no entry for it."""
    port = settings.pop('redfish_port', None)
    if port is None or 'redfish_address' not in settings:
        return
    address = str(settings['redfish_address']).rstrip('/')
    if '://' not in address:
        if address.count(':') > 1 and not address.startswith('['):
            address = f'[{address}]'
        address = f'https://{address}'
    settings['redfish_address'] = f'{address}:{port}'


def _ports(entry: abc.Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    given = entry.get('ports')
    if given is None:
        macs = entry.get('mac') or []
        given = [macs] if isinstance(macs, str) else macs
    if not isinstance(given, list):
        raise _Wrong('ports must be a list')
    ports = []
    for card in given:
        port = dict(card) if isinstance(card, dict) else {'address': card}
        if unknown := sorted(str(name) for name in port.keys() - _PORT):
            raise _Wrong(f'a port has unknown keys: {bounds.listed(unknown)}')
        address = addresses.mac(port.get('address'))
        if address is None:
            shown = bounds.shortened(repr(port.get('address')))
            raise _Wrong(f'{shown} is not a MAC address')
        ports.append({**port, 'address': address})
    if len({port['address'] for port in ports}) < len(ports):
        raise _Wrong('it lists a MAC address twice')
    return tuple(ports)


def _properties(
    entry: abc.Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, str]]:
    properties = _map(entry, 'properties')
    capabilities = _capabilities(properties.pop('capabilities', None))
    capabilities |= _capabilities(entry.get('capabilities'))
    for name, ours in _NUMBERS.items():
        if entry.get(name) not in (None, ''):
            properties[ours] = _number(entry, name)
    if arch := _text(entry.get('arch')):
        properties['cpu_arch'] = arch
    if entry.get('root_device'):
        hints = _map(entry, 'root_device')
        # An operator may stand before it, as in ">= 100".
        if _text(hints.get('size')).isdecimal():
            hints['size'] = _number(hints, 'size')
        properties['root_device'] = hints
    return properties, capabilities


def _capabilities(given: Any) -> dict[str, str]:
    """Read both forms: a map, and ``boot_mode:uefi,profile:compute``."""
    if given is None or given == '':
        return {}
    if isinstance(given, dict):
        return {str(name): _said(value) for name, value in given.items()}
    if not isinstance(given, str):
        raise _Wrong('capabilities must be a map or a text')
    read = {}
    for pair in given.split(','):
        name, separator, value = pair.partition(':')
        if not pair.strip():
            continue
        if not separator or not name.strip():
            raise _Wrong(
                'capabilities must be a map, or a text such as '
                'name:value,name:value'
            )
        read[name.strip()] = value.strip()
    return read


def _said(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def _number(entry: abc.Mapping[str, Any], name: str) -> int:
    value = entry[name]
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or len(text) > _DIGITS:
        raise _Wrong(f'{name} must be a whole number')
    return int(text)


def _uuid(value: Any) -> str | None:
    if value in (None, ''):
        return None
    try:
        return str(uuids.UUID(str(value)))
    except ValueError as exc:
        shown = bounds.shortened(str(value))
        raise _Wrong(f'{shown} is not a UUID') from exc


def _text(value: Any) -> str:
    return '' if value is None else str(value).strip()


def _map(entry: abc.Mapping[str, Any], name: str) -> dict[str, Any]:
    value = entry.get(name) or {}
    if not isinstance(value, dict):
        raise _Wrong(f'{name} must be a map')
    return dict(value)


def _once(
    entries: list[node.Wanted | node.Flaw],
) -> list[node.Wanted | node.Flaw]:
    """Let each thing that tells nodes apart be of one entry: the first."""
    owners: dict[tuple[str, object], str] = {}
    unique: list[node.Wanted | node.Flaw] = []
    for entry in entries:
        if isinstance(entry, node.Flaw):
            unique.append(entry)
            continue
        taken = [
            f'{what} is that of {owners[what, value]}'
            for what, value in _marks(entry)
            if (what, value) in owners
        ]
        if taken:
            reason = 'its ' + bounds.listed(
                dict.fromkeys(taken), between=', its '
            )
            unique.append(node.Flaw(label=entry.label, reason=reason))
            continue
        owners.update(dict.fromkeys(_marks(entry), entry.label))
        unique.append(entry)
    return unique


def _marks(entry: node.Wanted) -> list[tuple[str, object]]:
    marks: list[tuple[str, object]] = [
        ('MAC address', mac) for mac in entry.macs
    ]
    if entry.uuid:
        marks.append(('uuid', entry.uuid))
    if entry.name:
        marks.append(('name', entry.name))
    if entry.place:
        marks.append(('BMC', entry.place))
    return marks
