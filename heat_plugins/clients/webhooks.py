# SPDX-License-Identifier: Apache-2.0
"""POST to a URL that a user has chosen, from where heat-engine runs.

The operator lists the permitted hosts. Each attempt checks the addresses of
the host first. It uses no proxy and follows no redirect. Messages name the
host, and never the URL.
"""

from collections import abc
import contextlib
import dataclasses
import ipaddress
import re
import socket
import ssl
from typing import Any, TypeAlias
from urllib import parse

import requests

from heat_plugins import errors

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

#: Returns what `socket.getaddrinfo` does.
Resolver: TypeAlias = abc.Callable[..., abc.Sequence[Any]]

#: Seconds to connect, and to wait for the receiver.
TIMEOUT = (5.0, 10.0)

_LONGEST = 2000
_HOST = re.compile('[a-z0-9_.-]{1,253}|[0-9a-f:.]{2,45}')
_PORTS, _LAST_PORT = {'https': 443, 'http': 80}, 65535

# An entry of the option, of which the host may be a network.
_ENTRY = re.compile(
    r'(?:(?P<scheme>https?)://)?'
    r'(?P<rest>(?P<host>\[[^][]+\]|.*?)(?::(?P<port>[1-9]\d{0,4}))?)'
)
_NAME = re.compile(r'(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*')

OPTION = '[heat_plugins] notify_hosts'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Webhook:
    """The parts of a URL.

    :ivar target: its path and query, which may be secrets.
    """

    scheme: str
    host: str
    port: int
    target: str = dataclasses.field(repr=False)

    @classmethod
    def parse(cls, url: str) -> 'Webhook':
        """Read a URL.

        :raises errors.Invalid: it is none that can be used.
        """
        with contextlib.suppress(ValueError, KeyError):
            parts = parse.urlsplit(url)
            host = (parts.hostname or '').rstrip('.')
            port = parts.port or _PORTS[parts.scheme]
            target = parse.urlunsplit(('', '', parts.path, parts.query, ''))
            if (
                len(url) <= _LONGEST
                and url.isascii()
                and not re.search(r'[\s\x00-\x1f\x7f]', url)
                and parts.scheme in _PORTS
                and _HOST.fullmatch(host)
                and '@' not in parts.netloc
            ):
                return cls(
                    scheme=parts.scheme,
                    host=host,
                    port=port,
                    target=target if target[:1] == '/' else f'/{target}',
                )
        raise errors.Invalid(
            'The URL of a webhook must be like "https://host/path", in ASCII, '
            f'with at most {_LONGEST} characters and no user'
        )

    @property
    def shown(self) -> str:
        """The scheme and host, which are no secrets."""
        return f'{self.scheme}://{self.host}'

    @property
    def url(self) -> str:
        """The URL, made of the parts that were checked."""
        host = f'[{self.host}]' if ':' in self.host else self.host
        if self.port != _PORTS[self.scheme]:
            host = f'{host}:{self.port}'
        return f'{self.scheme}://{host}{self.target}'


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Entry:
    """A host, or several, that the operator permits.

    :ivar scheme: ``http`` if that is permitted, too.
    :ivar name: a host name, or ``*.`` and a domain; empty for a network.
    :ivar port: empty for the default one.
    """

    scheme: str
    name: str = ''
    network: _Network | None = None
    port: str = ''

    @classmethod
    def parse(cls, text: str) -> '_Entry | None':
        """Read an entry of the option; return None if it is invalid."""
        matched = _ENTRY.fullmatch(text.lower())
        if matched is None or int(matched['port'] or 1) > _LAST_PORT:
            return None
        scheme, rest = matched['scheme'] or '', matched['rest']
        # An IPv6 address has colons, too.
        for host, port in ((rest, ''), (matched['host'], matched['port'])):
            with contextlib.suppress(ValueError):
                network = ipaddress.ip_network(host.strip('[]'), strict=False)
                return cls(scheme=scheme, network=network, port=port or '')
        name, port = matched['host'].rstrip('.'), matched['port'] or ''
        is_name = _NAME.fullmatch(name)
        return cls(scheme=scheme, name=name, port=port) if is_name else None

    def has_port(self, webhook: Webhook) -> bool:
        """Say whether a pattern of hosts permits a webhook's port."""
        return webhook.port == int(self.port or _PORTS[webhook.scheme])

    def has_scheme(self, webhook: Webhook) -> bool:
        """Say whether a pattern of hosts permits a webhook's scheme."""
        return webhook.scheme in ('https', self.scheme)

    def has_host(self, host: str) -> bool:
        """Say whether a pattern of hosts permits a host."""
        if self.network is not None:
            with contextlib.suppress(ValueError):
                return ipaddress.ip_address(host) in self.network
            return False
        if self.name.startswith('*.'):
            return host.endswith(self.name[1:]) and len(host) >= len(self.name)
        return host == self.name

    def names(self, address: Address) -> bool:
        """Say whether it is an address, or a private network that has it."""
        network = self.network
        return (network is not None and address in network) and (
            network.num_addresses == 1 or not _is_public(network)
        )


class Hosts:
    """The hosts that the operator permits.

    :param entries: host names, ``*.`` and a domain for the hosts below it,
        addresses, or networks; ``http://`` in front permits HTTP, too, and a
        port at the end that one alone.
    :ivar invalid: the entries that permit nothing, as they are invalid.
    """

    def __init__(self, entries: abc.Iterable[str]) -> None:
        read = {entry: _Entry.parse(entry) for entry in entries}
        self._entries = [each for each in read.values() if each is not None]
        self.invalid = [entry for entry, each in read.items() if each is None]

    def check(self, webhook: Webhook) -> None:
        """Refuse a webhook if its host, port or scheme is not permitted.

        :raises errors.Refused: it is not.
        """
        if not self._entries and not self.invalid:
            raise errors.Refused(
                f'heat-engine sends no notices, as {OPTION} of heat.conf is '
                'empty; the operator lists there which hosts may get them'
            )
        fitting = [
            entry
            for entry in self._entries
            if entry.has_port(webhook) and entry.has_host(webhook.host)
        ]
        if not fitting:
            raise errors.Refused(
                f'{OPTION} of heat.conf does not permit notices to host '
                f'{webhook.host} on port {webhook.port}'
            )
        if not any(entry.has_scheme(webhook) for entry in fitting):
            raise errors.Refused(
                f'{OPTION} of heat.conf permits https alone for host '
                f'{webhook.host}; "http://{webhook.host}" there permits both'
            )

    def check_address(self, webhook: Webhook, address: Address) -> None:
        """Refuse an address of a webhook's host that is not public.

        :raises errors.Refused: no entry names it.
        """
        if not _is_public(address) and not any(
            entry.has_port(webhook)
            and entry.has_scheme(webhook)
            and entry.names(address)
            for entry in self._entries
        ):
            raise errors.Refused(
                f'Host {webhook.host} has an address that is not public; '
                f'{OPTION} of heat.conf does not list that one for '
                f'{webhook.scheme} on port {webhook.port}'
            )


def send(
    webhook: Webhook,
    hosts: Hosts,
    headers: abc.Mapping[str, str],
    body: bytes,
    resolver: Resolver = socket.getaddrinfo,
) -> None:
    """Check a webhook's host and its addresses, and POST there.

    :raises errors.Refused: the operator does not permit it.
    :raises errors.Unavailable: it has not answered, or not with 2xx.
    """
    hosts.check(webhook)
    try:
        resolved = resolver(
            webhook.host, webhook.port, type=socket.SOCK_STREAM
        )
    except (socket.gaierror, UnicodeError) as exc:
        raise errors.Unavailable(
            f'Cannot resolve host {webhook.host}'
        ) from exc
    for *_parts, address in resolved:
        # An IPv6 address may name the interface.
        text = str(address[0]).partition('%')[0]
        hosts.check_address(webhook, ipaddress.ip_address(text))
    paths = ssl.get_default_verify_paths()
    with requests.Session() as session:
        # Otherwise a proxy of the environment would do the request.
        session.trust_env = False
        session.verify = paths.cafile or paths.capath or True
        try:
            answer = session.post(
                webhook.url,
                data=body,
                headers=dict(headers),
                allow_redirects=False,
                timeout=TIMEOUT,
                # The body is not read.
                stream=True,
            )
        except requests.RequestException as exc:
            # The exception itself quotes the URL.
            raise errors.Unavailable(
                f'{webhook.shown} does not answer ({type(exc).__name__})'
            ) from None
        answer.close()
    status = answer.status_code
    if not 200 <= status < 300:
        raise errors.Unavailable(f'{webhook.shown} answers {status}', status)


def _is_public(part: Address | _Network) -> bool:
    """Say whether an address, or a whole network, is a public one."""
    return (
        part.is_global
        and not part.is_multicast
        and not part.is_reserved
        and not getattr(part, 'is_site_local', False)
    )
