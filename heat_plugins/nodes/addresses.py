# SPDX-License-Identifier: Apache-2.0
"""Addresses of network cards and of BMCs, in one spelling each."""

from collections import abc
import ipaddress
import re
from typing import Any
from urllib import parse

_SEPARATORS = re.compile('[:.-]')

# A BMC at its protocol's own port is the same whether the port is told.
_USUAL_PORTS = {'', '443', '623'}

# Entries of driver_info by what they end with, as all hardware types have
# them: ipmi_address, redfish_address, ilo_address.
_ADDRESS = ('address',)
_PORT = ('port',)
# What parts the machines behind one address.
_SYSTEM = ('outlet', 'system_id', 'target_address')


def mac(text: object) -> str | None:
    """Return a MAC address in lower case with colons; None if it is none."""
    digits = _SEPARATORS.sub('', str(text).strip().lower())
    if not re.fullmatch('[0-9a-f]{12}', digits):
        return None
    return ':'.join(re.findall('..', digits))


def place(
    driver_info: abc.Mapping[str, Any],
) -> tuple[str, str, str] | None:
    """Return where a BMC is: host, port, and the system behind it.

    The port is '' where it is the usual one, so that a node is the same
    after its driver has changed. None where no address is told.
    """
    address = _entry(driver_info, _ADDRESS)
    if not address:
        return None
    host, inside = _split(address)
    port = _entry(driver_info, _PORT) or inside
    return (
        host,
        '' if port in _USUAL_PORTS else port,
        _entry(driver_info, _SYSTEM),
    )


def _entry(
    driver_info: abc.Mapping[str, Any], endings: abc.Collection[str]
) -> str:
    for name in sorted(driver_info):
        _, separator, ending = name.partition('_')
        if separator and ending in endings and driver_info[name] is not None:
            return str(driver_info[name]).strip()
    return ''


def _split(address: str) -> tuple[str, str]:
    """Return host and port of an address or URL."""
    with_scheme = address if '://' in address else f'//{address}'
    try:
        # Else the colons would part a port from it.
        return ipaddress.ip_address(address).compressed, ''
    except ValueError:
        pass
    try:
        parts = parse.urlsplit(with_scheme)
        host, port = parts.hostname or address, parts.port
    except ValueError:
        return address.lower(), ''
    try:
        host = ipaddress.ip_address(host).compressed
    except ValueError:
        host = host.lower().rstrip('.')
    return host, str(port or '')
