# SPDX-License-Identifier: Apache-2.0
"""Read a dataclass that was stored as JSON, and that others may have changed.

`dump` makes what is stored. Types are those of the fields. A record without
a version is of the first one.
"""

from collections import abc
import dataclasses
import enum
import functools
import math
import types
import typing
from typing import Any, TypeVar

_Kind = TypeVar('_Kind')

# The largest number: as a time in seconds, its sum with another one is still
# a date.
_LAST = 2**36

# The most items of a list.
_ITEMS = 100_000


class LaterVersion(ValueError):
    """A later release wrote the record, in a form that is unknown here."""


def dump(value: Any) -> dict[str, Any]:
    """Return a dataclass in JSON's types, without values by default."""
    values = {}
    for field in dataclasses.fields(value):
        held = getattr(value, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if held != default:
            values[field.name] = _dumped(held)
    return values


def _dumped(held: Any) -> Any:
    """Return a value's part as JSON has it."""
    if dataclasses.is_dataclass(held):
        return dump(held)
    if isinstance(held, tuple):
        return tuple(map(_dumped, held))
    return getattr(held, 'value', held)


def versioned(kind: Any, values: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as it is stored, with the version of its form."""
    return {**values, 'version': getattr(kind, 'VERSION', 1)}


def read(kind: type[_Kind], value: object) -> _Kind:
    """Return a value of a dataclass.

    What a later release has added is left out.

    :raises LaterVersion: its version is later than this release knows.
    :raises ValueError: it is none: a field is missing, or of another type.
    """
    if not isinstance(value, abc.Mapping):
        raise ValueError(f'it is not a map for a {kind.__name__}')
    hints = _hints(typing.cast(Any, kind))
    version, known = value.get('version', 1), getattr(kind, 'VERSION', 1)
    if 'version' not in hints:
        if type(version) is not int or version < 1:
            raise ValueError('version is no number, at least 1')
        if version > known:
            raise LaterVersion(
                f'it has version {min(version, _LAST)}, and this release of '
                f'heat-plugins reads {kind.__name__} up to version {known}; '
                'upgrade heat-plugins here'
            )
    values = {
        name: _value(hint, value[name], name)
        for name, hint in hints.items()
        if name in value
    }
    try:
        return kind(**values)
    except TypeError as exc:
        raise ValueError(f'it is not a {kind.__name__}: {exc}') from exc


@functools.cache
def _hints(kind: Any) -> abc.Mapping[str, Any]:
    """Return the types of a dataclass's fields."""
    hints = typing.get_type_hints(kind)
    return {
        field.name: hints[field.name] for field in dataclasses.fields(kind)
    }


def _value(hint: Any, value: Any, name: str) -> Any:
    """Return the value of a field, if it is of the field's type."""
    if hint is Any:
        return value
    if isinstance(hint, types.UnionType):
        if value is None:
            return None
        hint = next(
            member for member in hint.__args__ if member is not type(None)
        )
    if dataclasses.is_dataclass(hint):
        return read(typing.cast(type[Any], hint), value)
    origin = getattr(hint, '__origin__', hint)
    if origin in (tuple, abc.Sequence):
        if isinstance(value, list | tuple) and len(value) <= _ITEMS:
            items = [
                _value(hint.__args__[0], member, name) for member in value
            ]
            return tuple(items) if origin is tuple else items
    elif origin is abc.Mapping:
        if isinstance(value, abc.Mapping):
            kind = hint.__args__[1]
            return {
                key: _value(kind, member, name)
                for key, member in value.items()
            }
    elif issubclass(hint, enum.Enum):
        return hint(value)
    elif type(value) is hint or (hint is float and type(value) is int):
        is_finite = type(value) is not float or math.isfinite(value)
        if is_finite and (type(value) is not int or 0 <= value <= _LAST):
            return value
        raise ValueError(f'{name} is out of range')
    raise ValueError(f'{name} is of another type, or too long')
