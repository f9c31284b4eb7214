# SPDX-License-Identifier: Apache-2.0
"""References in one file: found, and rewritten in their place.

The text around them stays as it is, comments and all, so that Heat reads
what the author wrote.
"""

from collections import abc
import contextlib
import dataclasses
import enum
import json
import posixpath
import re

import yaml

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import yaml_reading
from heat_plugins.content import texts

_TEMPLATE = re.compile(
    r'^[\'"{]{0,2}(heat_template_version|HeatTemplateFormatVersion'
    r'|AWSTemplateFormatVersion)\b',
    re.MULTILINE,
)

# Keys of a resource registry that are no types.
_DIRECTIVES = frozenset({'hooks', 'restricted_actions'})

_SCHEME = re.compile(r'[A-Za-z][A-Za-z0-9+.-]*://')


class LinkKind(enum.Enum):
    """What a file is to the file that refers to it."""

    TEMPLATE = 'template'
    ENVIRONMENT = 'environment'
    #: What `get_file` names: it may be a template all the same.
    FILE = 'file'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """A reference.

    :ivar path: of the file, from the plan's root.
    :ivar kind: what it should be.
    :ivar start: where it stands in the text, in characters.
    :ivar end: where it ends.
    :ivar written: how it is written there.
    """

    path: str
    kind: LinkKind
    start: int
    end: int
    written: str


def is_template(text: str) -> bool:
    """Say whether a text looks like one of Heat's templates."""
    return _TEMPLATE.search(text) is not None


def find(text: str, path: str, kind: LinkKind) -> list[Link]:
    """Find the references in a template or an environment.

    :param path: where it lies in the plan.
    :raises errors.Invalid: it is not YAML, or a reference leaves the plan.
    """
    if kind is LinkKind.FILE:
        return []
    with texts.reading(path):
        root = yaml_reading.compose(text)
    if not isinstance(root, yaml.MappingNode):
        raise errors.BadFile(f'{path} is no {kind.value}', path)
    finder = _Finder(text, path)
    if kind is LinkKind.TEMPLATE:
        finder.look_through(root)
    else:
        for key, value in root.value:
            if key.value == 'resource_registry':
                finder.look_through_registry(value)
    return finder.found


def spell(text: str, links: abc.Iterable[Link]) -> str:
    """Return a text with its references spelled as paths from the root."""
    parts = []
    end = 0
    for link in sorted(links, key=lambda link: link.start):
        if link.written != link.path:
            parts.append(text[end : link.start])
            parts.append(json.dumps(link.path, ensure_ascii=False))
            end = link.end
    return ''.join([*parts, text[end:]])


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


class _Finder:
    """Walks the nodes of one file."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._folder = posixpath.dirname(path)
        # By an alias a node stands in several places.
        self._seen: set[int] = set()
        self.found: list[Link] = []

    def look_through(self, node: yaml.Node) -> None:
        """Find the files that a template names."""
        if id(node) in self._seen:
            return
        self._seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self.look_through(item)
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if not isinstance(value, yaml.ScalarNode):
                    self.look_through(value)
                elif key.value == 'get_file':
                    self._add(value, LinkKind.FILE)
                elif key.value == 'type' and value.value.endswith(
                    ('.yaml', '.template')
                ):
                    self._add(value, LinkKind.TEMPLATE)

    def look_through_registry(self, node: yaml.Node) -> None:
        """Find the files that an environment maps types to."""
        if not isinstance(node, yaml.MappingNode) or id(node) in self._seen:
            return
        self._seen.add(id(node))
        for key, value in node.value:
            if key.value == 'base_url':
                raise errors.BadFile(
                    f'{self._path} has a base_url at line {_line(key)}; in a '
                    'plan, paths are relative to the file that contains them',
                    self._path,
                    _line(key),
                )
            if isinstance(value, yaml.MappingNode):
                self.look_through_registry(value)
            elif (
                isinstance(key, yaml.ScalarNode)
                and isinstance(value, yaml.ScalarNode)
                and key.value not in _DIRECTIVES
                and value.value
                and '::' not in value.value
            ):
                self._add(value, LinkKind.TEMPLATE)

    def _add(self, node: yaml.ScalarNode, kind: LinkKind) -> None:
        if id(node) in self._seen or not node.value:
            return
        self._seen.add(id(node))
        start, end = self._span(node)
        self.found.append(
            Link(
                path=self._target(node),
                kind=kind,
                start=start,
                end=end,
                written=node.value,
            )
        )

    def _target(self, node: yaml.ScalarNode) -> str:
        """Return the path of the file that a node names."""
        if _SCHEME.match(node.value):
            what = 'is a URL'
        elif node.value.startswith('/'):
            what = 'is an absolute path'
        else:
            what = 'leads out of the plan, or is not a path'
            joined = posixpath.join(self._folder, node.value)
            with contextlib.suppress(errors.Invalid):
                return texts.path(joined, 'file')
        line = _line(node)
        raise errors.BadFile(
            f'{self._path} refers at line {line} to '
            f'{bounds.shortened(node.value)!r}, which {what}. Put the file '
            f'into the plan, and give its path relative to {self._path}',
            self._path,
            line,
        )

    def _span(self, node: yaml.ScalarNode) -> tuple[int, int]:
        """Return where a scalar stands, without its anchor and tag."""
        start, end = node.start_mark.index, node.end_mark.index
        written = self._text[start:end]
        before = re.match(r'([&!][^\s]*\s+)*', written)
        start += before.end() if before else 0
        return start, start + len(self._text[start:end].rstrip())
