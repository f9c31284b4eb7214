# SPDX-License-Identifier: Apache-2.0
"""The changes that make a node in Ironic what a file says."""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import masking
from heat_plugins.nodes import matching
from heat_plugins.nodes import node

_MISSING = object()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """The changes of one node.

    :ivar create: the fields of a node to be made, or None.
    :ivar patch: of one that is there.
    :ivar ports: the network cards that it lacks.
    :ivar shown: what would differ, a line each; passwords are hidden.
    """

    uuid: str
    create: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )
    patch: tuple[abc.Mapping[str, Any], ...] = dataclasses.field(
        default=(), repr=False
    )
    ports: tuple[abc.Mapping[str, Any], ...] = ()
    shown: tuple[str, ...] = ()
    new_driver: bool = False


def of(wanted: node.Wanted, match: matching.Match) -> Change:
    """Return the changes that a match needs.

    What the file does not name stays as it is: an inspection may have found
    it. Passwords are always written: Ironic does not tell the present ones.
    """
    ports = tuple(
        port for port in wanted.ports if port['address'] not in match.macs
    )
    shown = [f'port {port["address"]}' for port in ports]
    if match.found is None:
        return Change(
            uuid=match.uuid,
            create={
                **_fields(wanted),
                'uuid': match.uuid,
                'driver_info': dict(wanted.driver_info),
                'properties': _properties(wanted, {}),
            },
            ports=ports,
            shown=tuple(shown),
        )
    patch: list[abc.Mapping[str, Any]] = []
    for name, value in _fields(wanted).items():
        now = match.found.fields.get(name, _MISSING)
        _set(patch, shown, f'/{name}', now, value)
    for section, values in (
        ('driver_info', wanted.driver_info),
        ('properties', _properties(wanted, match.found.map('properties'))),
    ):
        present = match.found.map(section)
        for name, value in values.items():
            now = present.get(name, _MISSING)
            _set(patch, shown, f'/{section}/{_escaped(name)}', now, value)
    return Change(
        uuid=match.uuid,
        patch=tuple(patch),
        ports=ports,
        shown=tuple(shown),
        new_driver=wanted.driver != match.found.text('driver'),
    )


def _fields(wanted: node.Wanted) -> dict[str, Any]:
    fields = {'driver': wanted.driver, **wanted.more}
    if wanted.name:
        fields['name'] = wanted.name
    return fields


def _properties(
    wanted: node.Wanted, present: abc.Mapping[str, Any]
) -> dict[str, Any]:
    """Return the properties, with the capabilities in one line."""
    properties = dict(wanted.properties)
    if wanted.capabilities:
        now = str(present.get('capabilities') or '')
        merged = {
            name: value
            for name, _, value in (
                one.partition(':') for one in now.split(',')
            )
            if name
        }
        merged.update(wanted.capabilities)
        properties['capabilities'] = ','.join(
            f'{name}:{value}' for name, value in merged.items()
        )
    return properties


def _set(
    patch: list[abc.Mapping[str, Any]],
    shown: list[str],
    path: str,
    now: Any,
    value: Any,
) -> None:
    # Ironic itself has had numbers as text.
    same = now == value or (now is not _MISSING and str(now) == str(value))
    secret = path.startswith('/driver_info/') and node.is_secret(path)
    if same and not secret:
        return
    # It adds what is not there, and replaces what is.
    patch.append({'op': 'add', 'path': path, 'value': value})
    name = path.removeprefix('/')
    if not secret:
        before = '' if now is _MISSING else f'{now} -> '
        shown.append(f'{name}: {before}{value}')
    elif now is _MISSING:
        shown.append(f'{name}: {masking.MASK}')


def _escaped(name: str) -> str:
    """Escape a name for a JSON pointer, as RFC 6901 says."""
    return name.replace('~', '~0').replace('/', '~1')
