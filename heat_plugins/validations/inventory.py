# SPDX-License-Identifier: Apache-2.0
"""The servers of a stack as an inventory of Ansible's.

The stack's output ``validation_hosts`` names them, if there is one: a map
from names to addresses, or to maps of address and groups::

    outputs:
      validation_hosts:
        value:
          web-0: {address: {get_attr: [web, first_address]}, groups: [web]}

Without it they are the stack's servers, nested ones too, that have addresses.
A server is in a group with the name of each resource that contains it. The
caller of a run says how to connect, never a stack.
"""

from collections import abc
import dataclasses
import ipaddress
import re
import sys
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.plans.deploy import plan_stacks

#: The output that may name the servers.
OUTPUT = 'validation_hosts'

_GROUP = re.compile('[^A-Za-z0-9_]')
# Ansible has the first two; the third holds how to log in.
_RESERVED = ('all', 'ungrouped', 'stack')
_PLAIN = re.compile('[A-Za-z0-9_.]+')
_NAME = re.compile('[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Host:
    """A host of an inventory.

    :ivar address: an IP address; '' for the machine that runs the playbooks.
    """

    name: str
    address: str = ''
    groups: tuple[str, ...] = ()


#: The machine that runs the playbooks.
LOCALHOST = Host(name='localhost')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Login:
    """The connection to the servers.

    :ivar connection: ``ssh``, or ``local`` for playbooks that run here, once
        for each server.
    :ivar user: to log in as; '' for Ansible's own choice.
    :ivar key_file: of a private key.
    """

    connection: str = 'ssh'
    user: str = ''
    key_file: str = ''

    def __post_init__(self) -> None:
        if self.connection not in ('ssh', 'local'):
            raise errors.Invalid(
                f'The connection must be ssh or local, not {self.connection!r}'
            )


def hosts(stacks: plan_stacks.Stacks, stack: str) -> tuple[Host, ...]:
    """Return the hosts of a stack; none if no server has an address.

    :raises errors.Invalid: the output that should name them does not.
    """
    output = stacks.output(stack, OUTPUT)
    if output is not None:
        named = []
        try:
            for name, value in output.items():
                given = {'address': value} if isinstance(value, str) else value
                groups = given.get('groups') or []
                groups = groups if isinstance(groups, list) else [groups]
                named.append(
                    Host(
                        name=_name(str(name)),
                        address=_address(given['address'], str(name)),
                        groups=_groups(map(str, groups)),
                    )
                )
        except (AttributeError, KeyError, TypeError):
            raise errors.Invalid(
                f'Output {OUTPUT} of stack {stack} must be a map from names '
                'to addresses, or to maps of address and groups'
            ) from None
        return tuple(named)
    hosts_by_name: dict[str, Host] = {}
    for server in stacks.servers(stack):
        name = server.name if _NAME.fullmatch(server.name) else ''
        if not name or name in hosts_by_name:
            # A name in Heat may hold characters that Ansible forbids, or be
            # that of another server: {{ x }} in resource web becomes web.
            name = '_'.join(_PLAIN.findall('.'.join(server.path)))[:255]
        if server.address:
            hosts_by_name[name] = Host(
                name=_name(name),
                address=_address(server.address, name),
                groups=_groups(
                    part for part in server.path if not part.isdecimal()
                ),
            )
    return tuple(hosts_by_name.values())


def grouped(
    known: abc.Sequence[Host],
    host_groups: abc.Mapping[str, abc.Sequence[str]],
) -> tuple[Host, ...]:
    """Return hosts with additional groups.

    :param host_groups: names of known hosts, or ``localhost``, by the name of
        a group; an empty list means all hosts.
    :raises errors.NotFound: a host is unknown.
    """
    hosts = {host.name: host for host in known}
    for group, names in host_groups.items():
        for name in names or [*hosts]:
            if name == LOCALHOST.name:
                hosts.setdefault(LOCALHOST.name, LOCALHOST)
            if name not in hosts:
                raise errors.NotFound(
                    f'Cannot put host {str(name)[:100]!r} into group {group}: '
                    f'the hosts are {bounds.listed(hosts) or "none"}'
                )
            groups = (*hosts[name].groups, group)
            hosts[name] = dataclasses.replace(
                hosts[name], groups=tuple(dict.fromkeys(groups))
            )
    return tuple(hosts.values())


def write(listed: abc.Iterable[Host], login: Login) -> dict[str, Any]:
    """Return an Ansible inventory of hosts."""
    here = {
        'ansible_connection': 'local',
        'ansible_python_interpreter': sys.executable,
    }
    every: dict[str, Any] = {}
    groups: dict[str, Any] = {}
    for host in listed:
        remote = {'ansible_host': host.address}
        every[host.name] = remote if host.address else here
        for group in host.groups:
            groups.setdefault(group, {'hosts': {}})['hosts'][host.name] = {}
    shared: dict[str, Any] = {'ansible_connection': login.connection}
    if login.connection == 'local':
        shared = here
    elif login.user:
        shared['ansible_user'] = login.user
    if login.key_file:
        shared['ansible_ssh_private_key_file'] = login.key_file
    # In a group of their own they do not change the connection to localhost.
    servers: dict[str, Any] = {
        name: {} for name, host in every.items() if host is not here
    }
    groups['stack'] = {'hosts': servers, 'vars': shared}
    return {'all': {'hosts': every, 'children': groups}}


def _name(name: str) -> str:
    """Refuse the name of a host that Ansible cannot have."""
    if not _NAME.fullmatch(name):
        raise errors.Invalid(f'{name[:100]!r} cannot be the name of a host')
    return name


def _address(value: Any, name: str) -> str:
    """Return an IP address; Ansible would run {{ templates }} in a text."""
    try:
        shown = str(ipaddress.ip_address(str(value)))
        # The name of a zone is free text, as in fe80::1%{{ x }}.
        if '%' in shown:
            raise ValueError('it has a zone')
        return shown
    except ValueError:
        raise errors.Invalid(
            f'{str(value)[:100]!r}, of server {name[:100]}, is not an IP '
            'address'
        ) from None


def _groups(names: abc.Iterable[str]) -> tuple[str, ...]:
    """Return the names of a host's groups as Ansible can have them."""
    cleaned = (_GROUP.sub('_', name)[:100] for name in names)
    return tuple(
        dict.fromkeys(
            name for name in cleaned if name and name not in _RESERVED
        )
    )
