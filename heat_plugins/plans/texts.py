# SPDX-License-Identifier: Apache-2.0
"""YAML as Heat reads it, and paths within a plan."""

from collections import abc
import posixpath
import re
from typing import Any

import yaml

from heat_plugins.plans import errors

# Besides what is no YAML, PyYAML raises these of "!!bool x" and the like.
_UNREADABLE = (
    yaml.YAMLError,
    ValueError,
    RecursionError,
    AttributeError,
    LookupError,
)

# A container's and an object's name are one URL; Swift allows 1024 bytes.
_LONGEST = 900
# Half characters are none in UTF-8.
_CONTROLS = re.compile('[\x00-\x1f\x7f\ud800-\udfff]')


# PyYAML's C code calls itself for each level, and some ten thousands of them
# take the whole process down.
_DEEPEST = 5000
_DEEP = re.compile(rf'^[ \t?:-]{{{_DEEPEST}}}', re.MULTILINE)


# Characters and values of a file whose aliases are written out.
_LARGEST = 16 * 1024 * 1024


class Loader(yaml.CSafeLoader):  # type: ignore[misc]
    """Reads dates as text, as Heat does, and nothing that is too deep."""

    def __init__(self, stream: str) -> None:
        _check_depth(stream)
        super().__init__(stream)


Loader.add_constructor(
    'tag:yaml.org,2002:timestamp',
    lambda loader, node: loader.construct_scalar(node),
)


def _check_depth(text: str) -> None:
    """Raise a YAMLError if a text is nested too deeply to be read."""
    flow = text.count('[') + text.count('{')
    if flow < _DEEPEST and not _DEEP.search(text):
        return
    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise yaml.YAMLError('It is nested too deeply')
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _whole_number(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    value: int = loader.construct_yaml_int(node)
    # A ValueError where it has more digits than Python writes.
    str(value)
    return value


Loader.add_constructor('tag:yaml.org,2002:int', _whole_number)


class _Dumper(yaml.CSafeDumper):  # type: ignore[misc]
    """Writes shared values out each time, and long texts as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.Dumper, data: str) -> yaml.Node:
    style = '|' if '\n' in data else None
    return dumper.represent_scalar('tag:yaml.org,2002:str', data, style)


_Dumper.add_representer(str, _text)


def load(text: str, where: str, loader: type[Loader] = Loader) -> Any:
    """Read YAML.

    :param where: the file, for the error.
    :param loader: for files with tags of their own.
    :raises errors.Invalid: it is none; what it holds is not told.
    """
    try:
        # A subclass of CSafeLoader: makes nothing but plain values.
        found = yaml.load(text, loader)  # noqa: S506 # nosec B506
        if '&' in text and '*' in text:
            _expanded(found, {})
        return found
    except _UNREADABLE as exc:
        mark = getattr(exc, 'problem_mark', None)
        line = f' at line {mark.line + 1}' if mark else ''
        raise errors.Invalid(f'{where} is not YAML{line}') from exc


def _expanded(value: Any, known: dict[int, int | None]) -> int:
    """Return how large a value is if each alias is written out.

    A few lines of them can stand for more than any memory holds.

    :param known: of what has been seen; None while it is being looked into.
    :raises yaml.YAMLError: it is too large, or has no end.
    """
    if not isinstance(value, dict | list):
        return len(value) if isinstance(value, str) else 1
    if id(value) not in known:
        known[id(value)] = None
        parts = value if isinstance(value, list) else [*value, *value.values()]
        size = 1 + sum(_expanded(one, known) for one in parts)
        if size > _LARGEST:
            raise yaml.YAMLError('Its aliases stand for too much')
        known[id(value)] = size
    found = known[id(value)]
    if found is None:
        raise yaml.YAMLError('It holds itself')
    return found


def mapping(text: str, where: str) -> abc.Mapping[str, Any]:
    """Read YAML that is a map, or nothing.

    :raises errors.Invalid: it is not.
    """
    found = load(text, where)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise errors.Invalid(f'{where} holds no map')
    return {str(name): value for name, value in found.items()}


def section(
    found: dict[str, Any], name: str, where: str
) -> abc.Mapping[str, Any]:
    """Take a map out of a map; an absent one is empty.

    :raises errors.Invalid: it is something else.
    """
    value = found.pop(name, None)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise errors.Invalid(f'{name} of {where} is no map')
    return {str(key): content for key, content in value.items()}


def dump(value: Any) -> str:
    """Write YAML, in the order given.

    :raises errors.Invalid: it holds half a character, as JSON may, and
        UTF-8 may not.
    """
    try:
        text: str = yaml.dump(
            value,
            Dumper=_Dumper,
            default_flow_style=False,
            sort_keys=False,
            allow_unicode=True,
        )
    except UnicodeEncodeError as exc:
        raise errors.Invalid('A text holds half a character') from exc
    return text


def decode(content: bytes, where: str) -> str:
    """Return a file's text.

    :raises errors.Invalid: it is not in UTF-8.
    """
    try:
        return content.decode('utf-8-sig')
    except UnicodeDecodeError as exc:
        raise errors.Invalid(f'{where} is not in UTF-8') from exc


def path(value: Any, where: str) -> str:
    """Return a path in a plan in its one spelling.

    :raises errors.Invalid: it is none, or leaves the plan.
    """
    if not isinstance(value, str) or not value.strip():
        raise errors.Invalid(f'The {where} names no file of the plan')
    plain = posixpath.normpath(value)
    if (
        plain.startswith(('/', '../'))
        or plain in ('.', '..')
        or '://' in value
        or _CONTROLS.search(value)
        or len(plain.encode('utf-8', 'replace')) > _LONGEST
    ):
        raise errors.Invalid(
            f'{value[:200]!r}, the {where}, is no path within the plan'
        )
    return plain
