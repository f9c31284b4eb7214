# SPDX-License-Identifier: Apache-2.0
"""POST to a URL that a user has chosen, from where heat-engine runs.

The operator says which hosts that may be. The connection goes to the very
addresses that were checked: no second resolution, no proxy, no redirect.
requests and urllib3 resolve a host themselves, so this hands a connected
socket to Python's HTTP. Messages name the host, and never the URL.
"""

from collections import abc
import contextlib
import dataclasses
import http.client
import ipaddress
import re
import socket
import ssl
import threading
import time
from typing import Any, TypeAlias
from urllib import parse

from heat_plugins import errors

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Returns what `socket.getaddrinfo` does.
Resolver: TypeAlias = abc.Callable[..., abc.Sequence[Any]]

# Seconds to connect to an address, to wait for the receiver, and for all that;
# and the addresses of a host that are tried.
_CONNECT, _READ, _ALL, _TRIED = 5.0, 10.0, 20.0, 2

_LONGEST = 2000
_HOST = re.compile('[a-z0-9_.-]{1,253}|[0-9a-f:.]{2,45}')
_PORTS, _LAST_PORT = {'https': 443, 'http': 80}, 65535

# An entry of the option, of which the host may be a network.
_ENTRY = re.compile(
    r'(?:(?P<scheme>https?)://)?'
    r'(?P<rest>(?P<host>\[[^][]+\]|.*?)(?::(?P<port>[1-9]\d{0,4}))?)'
)
_NAME = re.compile(r'(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*')
_IPV6 = (ipaddress.IPv6Address, ipaddress.IPv6Network)
_NAT64 = ipaddress.IPv6Network('64:ff9b::/96')

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
            is_whole = (
                len(url) <= _LONGEST
                and url.isascii()
                and not re.search(r'[\s\x00-\x1f\x7f]', url)
                and parts.scheme in _PORTS
                and _HOST.fullmatch(host)
                and '@' not in parts.netloc
            )
            if is_whole:
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
        """What may be shown of it: scheme and host."""
        return f'{self.scheme}://{self.host}'


_Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


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
        scheme, whole = matched['scheme'] or '', matched['rest']
        # An IPv6 address has colons, too.
        for host, port in ((whole, ''), (matched['host'], matched['port'])):
            with contextlib.suppress(ValueError):
                network = ipaddress.ip_network(host.strip('[]'), strict=False)
                return cls(scheme=scheme, network=network, port=port or '')
        name, port = matched['host'].rstrip('.'), matched['port'] or ''
        is_name = _NAME.fullmatch(name)
        return cls(scheme=scheme, name=name, port=port) if is_name else None

    def fits(self, webhook: Webhook) -> bool:
        """Say whether it permits the host and port of a webhook."""
        port = self.port or _PORTS[webhook.scheme]
        return webhook.port == int(port) and self._has(webhook.host)

    def _has(self, host: str) -> bool:
        if self.network is not None:
            with contextlib.suppress(ValueError):
                return ipaddress.ip_address(host) in self.network
            return False
        if self.name.startswith('*.'):
            return host.endswith(self.name[1:]) and len(host) >= len(self.name)
        return host == self.name

    def covers(self, address: Address, *, is_own: bool) -> bool:
        """Say whether it permits an address that is refused otherwise.

        :param is_own: of the cloud: only that very address permits it.
        """
        network = self.network
        if network is None or address not in network:
            return False
        is_wide = not is_own and _is_special(network)
        return is_wide or network.num_addresses == 1


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
        """Refuse a webhook whose host or port is not permitted.

        :raises errors.Refused: it is not.
        """
        if not self._entries and not self.invalid:
            raise errors.Refused(
                f'heat-engine sends no notices, as {OPTION} of heat.conf is '
                'empty; the operator lists there which hosts may get them'
            )
        schemes = [e.scheme for e in self._entries if e.fits(webhook)]
        if not schemes:
            raise errors.Refused(
                f'{OPTION} of heat.conf does not permit notices to host '
                f'{webhook.host} on port {webhook.port}'
            )
        if webhook.scheme != 'https' and webhook.scheme not in schemes:
            raise errors.Refused(
                f'{OPTION} of heat.conf permits https alone for host '
                f'{webhook.host}; "http://{webhook.host}" there permits both'
            )

    def check_address(
        self, webhook: Webhook, address: Address, own: abc.Container[Address]
    ) -> None:
        """Refuse an address that a webhook's host has.

        :param own: the addresses of the cloud.
        :raises errors.Refused: the operator must list it literally.
        """
        inner = _inner(address)
        is_own = address in own or inner in own
        if not is_own and not _is_special(inner):
            return
        if not any(e.covers(address, is_own=is_own) for e in self._entries):
            raise errors.Refused(
                f'Host {webhook.host} has an address of the cloud, or one '
                f'that is not public; {OPTION} of heat.conf does not list '
                'that one'
            )


def resolve(
    host: str, port: int | None, resolver: Resolver = socket.getaddrinfo
) -> list[Address]:
    """Return the addresses of a host; none if there is no such host.

    :raises errors.Unavailable: that is not known now.
    """
    try:
        found = resolver(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as exc:
        if exc.errno == socket.EAI_AGAIN:
            raise errors.Unavailable(f'Cannot resolve host {host}') from exc
        return []
    except UnicodeError:
        # Such a name can have no address.
        return []
    # An IPv6 address may name the interface.
    texts = [str(each[4][0]).partition('%')[0] for each in found]
    return [ipaddress.ip_address(text) for text in dict.fromkeys(texts)]


def send(
    webhook: Webhook,
    hosts: Hosts,
    own: abc.Container[Address],
    headers: abc.Mapping[str, str],
    body: bytes,
    resolver: Resolver = socket.getaddrinfo,
) -> None:
    """Resolve a webhook's host once, check its addresses, and POST there.

    :param own: the addresses of the cloud.
    :raises errors.Refused: the operator does not permit it.
    :raises errors.Unavailable: it has not answered, or not with 2xx.
    """
    hosts.check(webhook)
    addresses = resolve(webhook.host, webhook.port, resolver)
    if not addresses:
        raise errors.Unavailable(f'There is no host {webhook.host}')
    for address in addresses:
        hosts.check_address(webhook, address, own)
    try:
        status = _post(webhook, addresses, headers, body)
    except (OSError, http.client.HTTPException) as exc:
        raise errors.Unavailable(
            f'{webhook.shown} does not answer ({type(exc).__name__})'
        ) from exc
    if not 200 <= status < 300:
        raise errors.Unavailable(f'{webhook.shown} answers {status}', status)


def _post(
    webhook: Webhook,
    addresses: abc.Sequence[Address],
    headers: abc.Mapping[str, str],
    body: bytes,
) -> int:
    """Return the status of the answer, whose body is not read."""
    ends = time.monotonic() + _ALL
    with contextlib.ExitStack() as stack:
        line = stack.enter_context(_connected(webhook, addresses))
        # That ends who answers with a byte now and then. TLS has a socket of
        # its own.
        cut, copy = threading.Event(), stack.enter_context(line.dup())
        breaker = threading.Timer(ends - time.monotonic(), _cut, (copy, cut))
        breaker.daemon = True
        breaker.start()
        stack.callback(breaker.cancel)
        line.settimeout(_READ)
        if webhook.scheme == 'https':
            line = stack.enter_context(
                ssl.create_default_context().wrap_socket(
                    line, server_hostname=webhook.host
                )
            )
        connection = http.client.HTTPConnection(webhook.host, webhook.port)
        # Then the header Host leaves it out.
        connection.default_port = _PORTS[webhook.scheme]
        connection.sock = line
        connection.request('POST', webhook.target, body, dict(headers))
        status = connection.getresponse().status
        if cut.is_set():
            # Half of the headers would do.
            raise TimeoutError
        return status


def hosts_of(url: str) -> list[str]:
    """Return the hosts that a URL names; databases may have several."""
    with contextlib.suppress(ValueError):
        parts = parse.urlsplit(url).netloc.split(',')
        # A password may have commas, too.
        last = max((n for n, p in enumerate(parts) if '@' in p), default=-1)
        found = [
            parse.urlsplit(f'//{part.rpartition("@")[2]}').hostname
            for number, part in enumerate(parts)
            if '@' in part or number > last
        ]
        return [host for host in found if host]
    return []


def _connected(
    webhook: Webhook, addresses: abc.Sequence[Address]
) -> socket.socket:
    failure = OSError()
    for address in addresses[:_TRIED]:
        try:
            place = str(address), webhook.port
            return socket.create_connection(place, _CONNECT)
        except OSError as exc:
            failure = exc
    raise failure


def _cut(line: socket.socket, cut: threading.Event) -> None:
    cut.set()
    # It may have been closed.
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one stands for, if it does."""
    if isinstance(address, ipaddress.IPv6Address):
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return address.ipv4_mapped or address.sixtofour or address
    return address


def _is_special(part: Address | _Network) -> bool:
    """Say whether an address, or a whole network, is not a public one."""
    is_site = isinstance(part, _IPV6) and part.is_site_local
    return (
        not part.is_global or part.is_multicast or part.is_reserved or is_site
    )
