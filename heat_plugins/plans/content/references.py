# SPDX-License-Identifier: Apache-2.0
"""What a plan's templates and environments refer to, made whole for Heat.

Heat resolves no relative paths: a reference counts if it is, character by
character, the key of a file that was sent along. So each file that can be
reached is fetched once, and the references in it are rewritten as paths from
the plan's root, which are the keys.
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


#: Returns the contents of those of some paths that the plan has.
Fetch = abc.Callable[[abc.Collection[str]], abc.Mapping[str, bytes]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resolved:
    """What to send to Heat.

    :ivar environments: keys in `files`, in the order of merging: generated
        passwords first, what the plan enables, what was set in it last.
        They are meant for Heat's ``environment_files``.
    :ivar files: all of the files, environments included, by their keys; the
        root template's references are keys here.
    :ivar warnings: references that lead nowhere, a sentence each; Heat tells
        whether they matter, as much of a registry is never used.
    """

    template: str
    environments: tuple[str, ...]
    files: abc.Mapping[str, str] = dataclasses.field(repr=False)
    warnings: tuple[str, ...] = ()


#: Keys of the environments that are made of sections of the plan's own.
PASSWORDS: Final = f'{environments.PATH}#passwords'
SET: Final = f'{environments.PATH}#parameter_defaults'

#: Heat refuses larger requests unless its max_json_body_size is raised.
_BODY: Final = 1024 * 1024

#: Characters of all templates and environments that are enabled, and of the
#: files that they refer to.
LARGEST: Final = 4 * 1024 * 1024


def resolve(plan: environments.PlanEnvironment, fetch: Fetch) -> Resolved:
    """Collect what a plan consists of, from its root template on.

    What is larger than one request to Heat by its default options is made
    smaller: templates and environments lose comments and layout.

    :param fetch: is asked for no path twice.
    :raises errors.Invalid: a file is not what it should be, or refers to
        what lies outside of the plan; or the root template or an enabled
        environment is not there.
    """
    walk, keys = check(plan, fetch)
    files = dict(walk.files)
    # The bytes of the files in a request.
    if sum(len(json.dumps(text)) for text in files.values()) > _BODY:
        for path in walk.yaml:
            # YAML that says the same, without comments and layout.
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
    """Read all that a plan refers to; return it, and its environments' keys.

    :raises errors.Invalid: see `resolve`.
    """
    walk = Walk(fetch)
    keys = []
    for entry in _merged(plan):
        if isinstance(entry, str):
            walk.want(entry, LinkKind.ENVIRONMENT)
            keys.append(entry)
        else:
            key, content = entry
            walk.take(key, texts.dump(content), LinkKind.ENVIRONMENT)
            keys.append(key)
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
    """Return a file's text; that of a binary one is in base64.

    So ``openstack stack create`` sends what ``get_file`` names.
    """
    if kind is LinkKind.FILE:
        with contextlib.suppress(errors.Invalid):
            return texts.decode(content, path)
        return base64.encodebytes(content).decode()
    return texts.decode(content, path)


def _merged(
    plan: environments.PlanEnvironment,
) -> abc.Iterator[str | tuple[str, abc.Mapping[str, object]]]:
    """Give the paths of environments, and those that are no files."""
    passwords = {
        name: value
        for name, value in plan.passwords.items()
        if value is not None
    }
    if passwords:
        yield PASSWORDS, {'parameter_defaults': passwords}
    for number, entry in enumerate(plan.environments):
        if entry.path is not None:
            yield entry.path
        elif entry.data:
            yield f'{environments.PATH}#environments[{number}]', entry.data
    last = {
        'parameter_defaults': {
            **plan.derived_parameters,
            **plan.parameter_defaults,
        },
        'resource_registry': dict(plan.resource_registry),
    }
    last = {section: content for section, content in last.items() if content}
    if last:
        yield SET, last


class Walk:
    """Goes from file to file, all of one distance at a time."""

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
        #: References that lead nowhere.
        self.missing: list[str] = []

    def want(self, path: str, kind: LinkKind) -> None:
        if path not in self._asked:
            self._asked.add(path)
            self._wanted[path] = kind

    def take(self, key: str, text: str, kind: LinkKind) -> None:
        """Take a file, and want what it refers to."""
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
