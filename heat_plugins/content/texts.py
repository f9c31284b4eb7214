# SPDX-License-Identifier: Apache-2.0
"""YAML as Heat reads it, and paths within a plan."""

from collections import abc
import posixpath
import re
from typing import Any

from heat_plugins import errors
from heat_plugins import yaml_reading

# A container's and an object's name are one URL; Swift allows 1024 bytes.
_LONGEST = 900
# Half characters are none in UTF-8.
_CONTROLS = re.compile('[\x00-\x1f\x7f\ud800-\udfff]')


def load(
    text: str,
    where: str,
    loader: type[yaml_reading.Loader] = yaml_reading.Loader,
) -> Any:
    """Read YAML.

    :param where: the file, for the error.
    :param loader: for files with tags of their own.
    :raises errors.Invalid: it is not YAML, or too large; the message names the
        file and the place, and quotes nothing.
    """
    try:
        return yaml_reading.load(text, loader)
    except yaml_reading.UnreadableYAML as exc:
        raise errors.Invalid(f'{where} {exc}') from exc


def mapping(text: str, where: str) -> abc.Mapping[str, Any]:
    """Read YAML that is a map, or empty.

    :raises errors.Invalid: it is neither.
    """
    loaded = load(text, where)
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise errors.Invalid(f'{where} must hold a map')
    return {str(name): value for name, value in loaded.items()}


def section(
    document: dict[str, Any], name: str, where: str
) -> abc.Mapping[str, Any]:
    """Return a map within a map; an absent one is empty.

    :raises errors.Invalid: it is not a map.
    """
    value = document.pop(name, None)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise errors.Invalid(f'{name} of {where} must be a map')
    return {str(key): content for key, content in value.items()}


def dump(value: Any, *, compact: bool = False) -> str:
    """Write YAML, in the given order; see `yaml_reading.dump`.

    :raises errors.Invalid: it holds an incomplete character, which JSON
        permits, and UTF-8 does not.
    """
    try:
        return yaml_reading.dump(value, compact=compact)
    except UnicodeEncodeError as exc:
        raise errors.Invalid('A text holds an incomplete character') from exc
    except RecursionError as exc:
        raise errors.Invalid('A value is nested too deeply') from exc


def decode(content: bytes, where: str) -> str:
    """Return a file's text.

    :raises errors.Invalid: it is not in UTF-8.
    """
    try:
        return content.decode('utf-8-sig')
    except UnicodeDecodeError as exc:
        raise errors.Invalid(f'{where} is not in UTF-8') from exc


def path(value: Any, where: str) -> str:
    """Return the normal form of a path in a plan.

    :raises errors.Invalid: it is invalid, or leaves the plan.
    """
    if not isinstance(value, str) or not value.strip():
        raise errors.Invalid(f'The {where} must name a file of the plan')
    plain = posixpath.normpath(value)
    if (
        plain.startswith(('/', '../'))
        or plain in ('.', '..')
        or '://' in value
        or _CONTROLS.search(value)
        or len(plain.encode('utf-8', 'replace')) > _LONGEST
    ):
        raise errors.Invalid(
            f'{value[:200]!r}, the {where}, is not a path within the plan'
        )
    return plain
