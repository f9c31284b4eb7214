# SPDX-License-Identifier: Apache-2.0
"""Read a dataclass that was stored as JSON, and that others may have changed.

`dataclasses.asdict` makes what is stored. Types are those of the fields.
"""

from collections import abc
import dataclasses
import enum
import functools
import types
import typing
from typing import Any, TypeVar

_Kind = TypeVar('_Kind')

# The largest number: as a time in seconds, its sum with another one is still
# a date.
_LAST = 2**36


def read(kind: type[_Kind], found: object) -> _Kind:
    """Return a value of a dataclass.

    What a later release has added is left out.

    :raises ValueError: it is none: a field is missing, or of another type.
    """
    if not isinstance(found, abc.Mapping):
        raise ValueError(f'it is not a map for a {kind.__name__}')
    values = {
        name: _value(hint, found[name], name)
        for name, hint in _hints(typing.cast(Any, kind)).items()
        if name in found
    }
    try:
        return kind(**values)
    except TypeError as exc:
        raise ValueError(f'it is not a {kind.__name__}: {exc}') from exc


@functools.cache
def _hints(kind: Any) -> abc.Mapping[str, Any]:
    hints = typing.get_type_hints(kind)
    return {one.name: hints[one.name] for one in dataclasses.fields(kind)}


def _value(hint: Any, found: Any, name: str) -> Any:
    if hint is Any:
        return found
    if isinstance(hint, types.UnionType):
        if found is None:
            return None
        hint = next(one for one in hint.__args__ if one is not type(None))
    if dataclasses.is_dataclass(hint):
        return read(typing.cast(type[Any], hint), found)
    origin = getattr(hint, '__origin__', hint)
    if origin in (tuple, abc.Sequence):
        if isinstance(found, list | tuple):
            items = [_value(hint.__args__[0], one, name) for one in found]
            return tuple(items) if origin is tuple else items
    elif origin is abc.Mapping:
        if isinstance(found, abc.Mapping):
            kind = hint.__args__[1]
            return {key: _value(kind, one, name) for key, one in found.items()}
    elif issubclass(hint, enum.Enum):
        return hint(found)
    elif isinstance(found, hint) or (hint is float and type(found) is int):
        if hint is int and not 0 <= found <= _LAST:
            raise ValueError(f'{name} is out of range')
        return found
    raise ValueError(f'{name} is of another type')
