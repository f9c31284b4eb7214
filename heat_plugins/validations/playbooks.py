# SPDX-License-Identifier: Apache-2.0
"""What a playbook says of itself, in ``vars.metadata`` of its first play.

::

- hosts: all
  vars:
    metadata:
      name: Enough memory
      description: Each server has the memory that its role asks for.
      groups: [prep, pre-deployment]
  tasks: ...
"""

from collections import abc
import dataclasses
import pathlib
from typing import Any

from heat_plugins import errors
from heat_plugins import yaml_reading
from heat_plugins.content import texts

#: The most bytes of a playbook that is looked at.
LIMIT = 1024 * 1024

_LONGEST = 2000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Validation:
    """A playbook that has metadata.

    :ivar id: the base name of its file.
    :ivar hosts: the patterns of hosts of its plays.
    """

    id: str
    path: str
    name: str
    description: str = ''
    groups: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    products: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


class _Loader(yaml_reading.Loader):
    """Lets Ansible's own tags, such as ``!vault``, pass."""

    pure = None


_Loader.add_multi_constructor('!', lambda loader, suffix, node: None)


def read(content: bytes, path: str) -> Validation | None:
    """Read a playbook; None if it is one without metadata, or none at all.

    :raises errors.Invalid: it is not YAML, or too large; or its metadata
        are not such as they should be.
    """
    if len(content) > LIMIT:
        raise errors.Invalid(f'{path} is larger than {LIMIT} bytes')
    text = texts.decode(content, path)
    found = texts.load(text, path, _Loader)
    plays = found if isinstance(found, list) else []
    plays = [one for one in plays if isinstance(one, dict)]
    values = plays[0].get('vars') if plays else None
    metadata = values.get('metadata') if isinstance(values, dict) else None
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise errors.Invalid(f'vars.metadata of {path} must be a map')
    own = pathlib.PurePosixPath(path).stem
    return Validation(
        id=own,
        path=path,
        name=_text(metadata, 'name', path) or own,
        description=_text(metadata, 'description', path),
        groups=_names(metadata, 'groups', path),
        categories=_names(metadata, 'categories', path),
        products=_names(metadata, 'products', path),
        hosts=tuple(
            dict.fromkeys(
                one['hosts']
                for one in plays
                if isinstance(one.get('hosts'), str)
            )
        ),
    )


def _text(metadata: abc.Mapping[Any, Any], key: str, path: str) -> str:
    found = metadata.get(key)
    if found is None:
        return ''
    if not _is_plain(found):
        raise errors.Invalid(f'metadata.{key} of {path} must be a text')
    return ' '.join(str(found).split())[:_LONGEST]


def _names(
    metadata: abc.Mapping[Any, Any], key: str, path: str
) -> tuple[str, ...]:
    found = metadata.get(key)
    if found is None:
        return ()
    if _is_plain(found):
        found = [found]
    if not isinstance(found, list) or not all(map(_is_plain, found)):
        raise errors.Invalid(
            f'metadata.{key} of {path} must be a list of names'
        )
    return tuple(dict.fromkeys(str(one).strip()[:_LONGEST] for one in found))


def _is_plain(value: Any) -> bool:
    # What YAML's aliases have made of few bytes must not be written out.
    return isinstance(value, str | int | float)
