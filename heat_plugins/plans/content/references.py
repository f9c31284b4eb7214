# SPDX-License-Identifier: Apache-2.0
"""References between the files of a plan, resolved for Heat.

Heat resolves no relative paths: a reference must be the exact key of a file in
the request. So each file that is referred to is fetched once, and its
references are rewritten as paths from the plan's root, which are the keys.
"""

import base64
from collections import abc
import contextlib
import dataclasses
import enum
import json
import posixpath
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import environments

_TEMPLATE = re.compile(r'^[\'"{]{0,2}heat_template_version\b', re.MULTILINE)

# Keys of a resource registry that are not types.
_DIRECTIVES = frozenset({'base_url', 'hooks', 'restricted_actions'})


class LinkKind(enum.Enum):
    """The kind of file that a reference expects."""

    TEMPLATE = 'template'
    ENVIRONMENT = 'environment'
    #: Of `get_file`; the file may be a template, too.
    FILE = 'file'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Link:
    """A reference.

    :ivar path: of the file, from the plan's root.
    :ivar kind: that the reference expects.
    """

    path: str
    kind: LinkKind


def is_template(text: str) -> bool:
    """Return whether a text looks like a template of Heat."""
    return _TEMPLATE.search(text) is not None


def rewrite(text: str, path: str, kind: LinkKind) -> tuple[str, list[Link]]:
    """Rewrite the references of a file as paths from the root; return both.

    :param path: of the file in the plan.
    :raises errors.Invalid: it is not YAML, or a reference leaves the plan.
    """
    if kind is LinkKind.FILE:
        return text, []
    root = texts.load(text, path)
    if not isinstance(root, dict):
        raise errors.Invalid(f'{path} is no {kind.value}')
    finder = _Finder(path)
    if kind is LinkKind.TEMPLATE:
        finder.walk(root)
    else:
        finder.walk_registry(root.get('resource_registry'))
    return texts.dump(root) if finder.changed else text, finder.links


class _Finder:
    """A walk over the values of one file, which rewrites its references.

    :ivar changed: whether any reference was not a path from the root.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = posixpath.dirname(path)
        # Aliases of YAML put one value into several places.
        self._seen: set[int] = set()
        self.links: list[Link] = []
        self.changed = False

    def walk(self, value: Any) -> None:
        """Rewrite the references of a template."""
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, list):
            for item in value:
                self.walk(item)
        elif isinstance(value, dict):
            for key, entry in value.items():
                if not isinstance(entry, str):
                    self.walk(entry)
                elif key == 'get_file' and entry:
                    value[key] = self._path_of(entry, LinkKind.FILE)
                elif key == 'type' and entry.endswith(('.yaml', '.template')):
                    value[key] = self._path_of(entry, LinkKind.TEMPLATE)

    def walk_registry(self, registry: Any) -> None:
        """Rewrite the templates that an environment maps types to."""
        if not isinstance(registry, dict) or id(registry) in self._seen:
            return
        self._seen.add(id(registry))
        for name, value in registry.items():
            if not isinstance(value, str):
                self.walk_registry(value)
            elif value and '::' not in value and name not in _DIRECTIVES:
                registry[name] = self._path_of(value, LinkKind.TEMPLATE)

    def _path_of(self, written: str, kind: LinkKind) -> str:
        """Return a reference as a path from the root, and record it."""
        try:
            path = texts.path(posixpath.join(self._folder, written), 'file')
        except errors.Invalid:
            raise errors.Invalid(
                f'{self._path} refers to {bounds.shortened(written)!r}, which '
                'is no path within the plan. Put the file into the plan, and '
                f'give its path relative to {self._path}'
            ) from None
        self.links.append(Link(path=path, kind=kind))
        self.changed = self.changed or path != written
        return path


#: Returns the contents of those of some paths that the plan has.
Fetch = abc.Callable[[abc.Collection[str]], abc.Mapping[str, bytes]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resolved:
    """The content of a plan for Heat.

    :ivar environments: keys in `files`, in the order of merging, for Heat's
        ``environment_files``: generated passwords, enabled environments, set
        parameters.
    :ivar files: all of the files, environments included, by their keys; the
        root template's references are keys here.
    :ivar warnings: a sentence for each reference to a missing file; many of a
        registry are never used.
    """

    template: str
    environments: tuple[str, ...]
    files: abc.Mapping[str, str] = dataclasses.field(repr=False)
    warnings: tuple[str, ...] = ()


#: Keys of the environments made of sections of plan-environment.yaml.
PASSWORDS: Final = f'{environments.PATH}#passwords'
SET: Final = f'{environments.PATH}#parameter_defaults'

#: Heat refuses larger requests unless its max_json_body_size is raised.
_BODY: Final = 1024 * 1024

#: Characters of all templates and environments that are enabled, and of the
#: files that they refer to.
LARGEST: Final = 4 * 1024 * 1024


def resolve(plan: environments.PlanEnvironment, fetch: Fetch) -> Resolved:
    """Collect the content of a plan for Heat.

    Files that exceed one request by Heat's default limit are made smaller:
    templates and environments lose comments and layout.

    :param fetch: is called once for each path.
    :raises errors.Invalid: a file is invalid, or refers to a file outside of
        the plan; or the root template or an enabled environment is missing.
    """
    walk, keys = check(plan, fetch)
    files = dict(walk.files)
    # The bytes of the files in a request.
    if sum(len(json.dumps(text)) for text in files.values()) > _BODY:
        for path in walk.yaml:
            # The same values, without comments and layout.
            text = texts.dump(texts.load(files[path], path), compact=True)
            files[path] = min(text, files[path], key=len)
    template = files[plan.template]
    if plan.template not in walk.referred:
        del files[plan.template]
    return Resolved(
        template=template,
        environments=tuple(dict.fromkeys(keys)),
        files=files,
        warnings=bounds.few(walk.missing),
    )


def check(
    plan: environments.PlanEnvironment, fetch: Fetch
) -> tuple['Walk', list[str]]:
    """Read all files for Heat; return them, and the keys of environments.

    :raises errors.Invalid: see `resolve`.
    """
    passwords = {
        name: value
        for name, value in plan.passwords.items()
        if value is not None
    }
    last = {
        'parameter_defaults': {
            **plan.derived_parameters,
            **plan.parameter_defaults,
        },
        'resource_registry': plan.resource_registry,
    }
    walk = Walk(fetch)
    keys = []

    def take(key: str, content: abc.Mapping[str, Any]) -> None:
        if content:
            walk.take(key, texts.dump(content), LinkKind.ENVIRONMENT)
            keys.append(key)

    # In the order of merging.
    take(PASSWORDS, {'parameter_defaults': passwords} if passwords else {})
    for number, entry in enumerate(plan.environments):
        if entry.path is None:
            take(
                f'{environments.PATH}#environments[{number}]', entry.data or {}
            )
        else:
            walk.want(entry.path, LinkKind.ENVIRONMENT)
            keys.append(entry.path)
    take(SET, {name: dict(values) for name, values in last.items() if values})
    walk.want(plan.template, LinkKind.TEMPLATE)
    walk.run()
    lacking = sorted({plan.template, *keys} - set(walk.files))
    if lacking:
        raise errors.Invalid(
            'The plan lacks its root template or an enabled environment: '
            f'{bounds.listed(lacking)}'
        )
    return walk, keys


def _text(content: bytes, path: str, kind: LinkKind) -> str:
    """Return a file's text; a binary file of ``get_file`` is in base64.

    ``openstack stack create`` sends it so.
    """
    if kind is LinkKind.FILE:
        with contextlib.suppress(errors.Invalid):
            return texts.decode(content, path)
        return base64.encodebytes(content).decode()
    return texts.decode(content, path)


class Walk:
    """A walk from file to file, which fetches one round at a time."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._wanted: dict[str, LinkKind] = {}
        self._asked: set[str] = set()
        self._by: dict[str, str] = {}
        self._size = 0
        self.files: dict[str, str] = {}
        #: Of `files`, the templates and environments.
        self.yaml: list[str] = []
        self.referred: set[str] = set()
        #: A sentence for each reference to a missing file.
        self.missing: list[str] = []

    def want(self, path: str, kind: LinkKind) -> None:
        """Ask for a file of the plan, once."""
        if path not in self._asked:
            self._asked.add(path)
            self._wanted[path] = kind

    def take(self, key: str, text: str, kind: LinkKind) -> None:
        """Add a file, and want the files that it refers to."""
        if kind is LinkKind.FILE and is_template(text):
            kind = LinkKind.TEMPLATE
        if kind is not LinkKind.FILE:
            self.yaml.append(key)
        self._size += len(text)
        if self._size > LARGEST:
            raise errors.Invalid(
                'The enabled templates of the plan, with all files that they '
                f'refer to, exceed {LARGEST} characters; enable fewer, or '
                'remove large files'
            )
        self.files[key], targets = rewrite(text, key, kind)
        for link in targets:
            self.referred.add(link.path)
            self._by.setdefault(link.path, key)
            self.want(link.path, link.kind)

    def run(self) -> None:
        while self._wanted:
            wanted, self._wanted = self._wanted, {}
            fetched = self._fetch(list(wanted))
            for path, kind in wanted.items():
                if path in fetched:
                    self.take(path, _text(fetched[path], path, kind), kind)
                elif path in self._by:
                    self.missing.append(
                        f'{self._by[path]} refers to {path}, which the plan '
                        'does not have'
                    )
