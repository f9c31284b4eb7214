# SPDX-License-Identifier: Apache-2.0
"""References in one file: found, and rewritten as paths from the plan's root.

A file without any stays as its author wrote it, comments and all.
"""

import dataclasses
import enum
import posixpath
import re
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts

_TEMPLATE = re.compile(r'^[\'"{]{0,2}heat_template_version\b', re.MULTILINE)

# Keys of a resource registry that are no types.
_DIRECTIVES = frozenset({'base_url', 'hooks', 'restricted_actions'})


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
    """

    path: str
    kind: LinkKind


def is_template(text: str) -> bool:
    """Say whether a text looks like one of Heat's templates."""
    return _TEMPLATE.search(text) is not None


def rewrite(text: str, path: str, kind: LinkKind) -> tuple[str, list[Link]]:
    """Return a file with its references as paths from the root; and those.

    :param path: where it lies in the plan.
    :raises errors.Invalid: it is not YAML, or a reference leaves the plan.
    """
    if kind is LinkKind.FILE:
        return text, []
    root = texts.load(text, path)
    if not isinstance(root, dict):
        raise errors.Invalid(f'{path} is no {kind.value}')
    finder = _Finder(path)
    if kind is LinkKind.TEMPLATE:
        finder.look_through(root)
    else:
        finder.look_through_registry(root.get('resource_registry'))
    return texts.dump(root) if finder.changed else text, finder.found


class _Finder:
    """Walks the values of one file, and rewrites them.

    :ivar changed: whether some reference was not a path from the root.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = posixpath.dirname(path)
        # By an alias a value stands in several places.
        self._seen: set[int] = set()
        self.found: list[Link] = []
        self.changed = False

    def look_through(self, value: Any) -> None:
        """Find the files that a template names."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, list):
            for item in value:
                self.look_through(item)
        elif isinstance(value, dict):
            for key, entry in value.items():
                if not isinstance(entry, str):
                    self.look_through(entry)
                elif key == 'get_file' and entry:
                    value[key] = self._path_of(entry, LinkKind.FILE)
                elif key == 'type' and entry.endswith(('.yaml', '.template')):
                    value[key] = self._path_of(entry, LinkKind.TEMPLATE)

    def look_through_registry(self, registry: Any) -> None:
        """Find the files that an environment maps types to."""
        if not isinstance(registry, dict) or id(registry) in self._seen:
            return
        self._seen.add(id(registry))
        for name, value in registry.items():
            if not isinstance(value, str):
                self.look_through_registry(value)
            elif value and '::' not in value and name not in _DIRECTIVES:
                registry[name] = self._path_of(value, LinkKind.TEMPLATE)

    def _path_of(self, written: str, kind: LinkKind) -> str:
        """Return the path of the file that a reference names."""
        try:
            path = texts.path(posixpath.join(self._folder, written), 'file')
        except errors.Invalid:
            raise errors.Invalid(
                f'{self._path} refers to {bounds.shortened(written)!r}, which '
                'is no path within the plan. Put the file into the plan, and '
                f'give its path relative to {self._path}'
            ) from None
        self.found.append(Link(path=path, kind=kind))
        self.changed = self.changed or path != written
        return path
