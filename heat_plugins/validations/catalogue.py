# SPDX-License-Identifier: Apache-2.0
"""The validations in a tree of files, and which of them are meant.

A playbook lies at the top of the tree, or in a folder of one of the names in
`FOLDERS`; roles and plugins lie in folders of their usual names, wherever
those are. So a plan, a checkout and an installed package can be the same.

A playbook is a validation if its first play says so::

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
from importlib import metadata
import pathlib
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import yaml_reading
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.content import texts
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans as plan_values

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


def playbook(content: bytes, path: str) -> Validation | None:
    """Read a playbook; None if it is one without metadata, or none at all.

    :raises errors.Invalid: it is not YAML, or too large; or its metadata
        are not such as they should be.
    """
    text = texts.decode(content, path)
    listed = texts.load(text, path, _Loader)
    plays = listed if isinstance(listed, list) else []
    plays = [play for play in plays if isinstance(play, dict)]
    values = plays[0].get('vars') if plays else None
    metadata = values.get('metadata') if isinstance(values, dict) else None
    if metadata is None:
        return None
    if not isinstance(metadata, dict):
        raise errors.Invalid(f'vars.metadata of {path} must be a map')
    own = pathlib.PurePosixPath(path).stem
    hosts = [play.get('hosts') for play in plays]
    return Validation(
        id=own,
        path=path,
        name=_one(metadata, 'name', path) or own,
        description=_one(metadata, 'description', path),
        groups=_texts(metadata, 'groups', path),
        categories=_texts(metadata, 'categories', path),
        products=_texts(metadata, 'products', path),
        hosts=tuple(
            dict.fromkeys(name for name in hosts if isinstance(name, str))
        ),
    )


def _one(metadata: abc.Mapping[Any, Any], key: str, path: str) -> str:
    texts = ' '.join(_texts(metadata, key, path))
    return ' '.join(texts.split())[:_LONGEST]


def _texts(
    metadata: abc.Mapping[Any, Any], key: str, path: str
) -> tuple[str, ...]:
    """Return the texts of a list; a single one needs no list."""
    value = metadata.get(key) or []
    texts = value if isinstance(value, list) else [value]
    # What YAML's aliases have made of few bytes must not be written out.
    if not all(isinstance(text, str | int | float) for text in texts):
        raise errors.Invalid(
            f'metadata.{key} of {path} must be a text, or a list of texts'
        )
    return tuple(dict.fromkeys(str(text)[:_LONGEST].strip() for text in texts))


#: Where playbooks lie.
FOLDERS = frozenset({'playbooks', 'validations', 'validation-playbooks'})

#: The folders of Ansible's plugins and roles, and the variable that names
#: them to Ansible.
PATHS: abc.Mapping[str, str] = {
    'roles': 'ANSIBLE_ROLES_PATH',
    'library': 'ANSIBLE_LIBRARY',
    'module_utils': 'ANSIBLE_MODULE_UTILS',
    'action_plugins': 'ANSIBLE_ACTION_PLUGINS',
    'filter_plugins': 'ANSIBLE_FILTER_PLUGINS',
    'lookup_plugins': 'ANSIBLE_LOOKUP_PLUGINS',
    'test_plugins': 'ANSIBLE_TEST_PLUGINS',
}

_ENDINGS = ('.yaml', '.yml')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The validations of a tree, by their ids.

    :ivar warnings: what was left out, and why; a sentence each.
    """

    validations: tuple[Validation, ...] = ()
    warnings: tuple[str, ...] = ()

    def choose(
        self,
        names: abc.Collection[str] = (),
        groups: abc.Collection[str] = (),
    ) -> tuple[Validation, ...]:
        """Return those that are named, or in one of the groups.

        Without any name or group it is all of them.

        :raises errors.NotFound: there is none of a name, or in a group.
        """
        known = {validation.id for validation in self.validations}
        offered = {
            group
            for validation in self.validations
            for group in validation.groups
        }
        for kind, wanted, there in (
            ('validation', names, known),
            ('group', groups, offered),
        ):
            for lost in sorted(set(wanted) - there):
                raise errors.NotFound(
                    f'There is no {kind} {lost}; there are: '
                    f'{bounds.listed(sorted(there)) or "none"}'
                )
        return tuple(
            validation
            for validation in self.validations
            if not (names or groups)
            or validation.id in names
            or set(validation.groups) & set(groups)
        )


def read(content: sources.Content) -> Catalogue:
    """Return the validations of a tree.

    A playbook that cannot be read spoils only itself.
    """
    validations: dict[str, Validation] = {}
    warnings = []
    for path in sorted(content):
        if not is_playbook(path):
            continue
        try:
            validation = playbook(content[path], path)
        except errors.Invalid as exc:
            warnings.append(f'Left out: {exc}')
            continue
        if validation is None:
            continue
        first = validations.setdefault(validation.id, validation)
        if content[first.path] != content[path]:
            warnings.append(f'Left out: {path} has the name of {first.path}')
    return Catalogue(
        validations=tuple(validations[name] for name in sorted(validations)),
        warnings=tuple(warnings),
    )


def is_playbook(path: str) -> bool:
    """Say whether a file lies where playbooks do."""
    place = pathlib.PurePosixPath(path)
    folders = place.parts[:-1]
    return (
        place.suffix in _ENDINGS
        and (not folders or folders[-1] in FOLDERS)
        and not set(folders) & PATHS.keys()
    )


def paths(content: abc.Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the folders of roles and plugins of a tree, by `PATHS`."""
    folders: dict[str, set[str]] = {}
    for path in content:
        parents = pathlib.PurePosixPath(path).parts[:-1]
        for depth, name in enumerate(parents, 1):
            if name in PATHS:
                # What a role brings along, Ansible finds itself.
                folders.setdefault(name, set()).add('/'.join(parents[:depth]))
                break
    return {name: tuple(sorted(folders[name])) for name in sorted(folders)}


#: Where playbooks and their roles lie in a plan.
FOLDER = 'validations/'

# What a package may bring of them.
_WANTED = FOLDERS | PATHS.keys()
_SKIPPED = frozenset({'tests', '__pycache__'})


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaybookSource:
    """Where playbooks come from.

    :ivar name: for people, such as ``plan shop``.
    """

    name: str
    content: sources.Content = dataclasses.field(repr=False)
    plan: plan_values.Plan | None = None


def find_playbooks(
    plans: plan_service.Plans,
    plan: str | None,
    container: str | None,
    object: str | None,
    package: str | None,
    *,
    complete: bool,
) -> PlaybookSource:
    """Return the files that one of the arguments names.

    :param complete: whether also what the playbooks of a plan need.
    :raises errors.Invalid: not exactly one of them does.
    :raises errors.NotFound: there is no such thing.
    """
    given = [name for name in (plan, container, package) if name]
    if len(given) != 1 or bool(container) != bool(object):
        raise errors.Invalid(
            'Give exactly one of: a plan, a package, or a container with '
            'an object'
        )
    if package:
        return PlaybookSource(
            name=f'package {package}', content=of_package(package)
        )
    if container and object:
        content = tarballs.from_object(plans.store, container, object)
        return PlaybookSource(name='an upload', content=content)
    loaded = plans.load(str(plan))
    wanted = [
        path
        for path in loaded.entries
        if path.startswith(FOLDER) and (complete or is_playbook(path))
    ]
    files = storage.Container(plans.store, loaded.container, pools.Pool())
    return PlaybookSource(
        name=f'plan {plan}', content=files.fetch(wanted), plan=loaded
    )


def of_package(name: str) -> sources.Content:
    """Return the playbooks, roles and plugins of a package.

    :param name: of the distribution, such as ``validations-common``.
    :raises errors.NotFound: it is not installed here.
    """
    try:
        package = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError) as exc:
        raise errors.NotFound(
            f'Python package {name} is not installed on the machine that '
            'runs the playbooks; install it there'
        ) from exc
    gathering = sources.Gathering()
    for file in package.files or ():
        # What lies outside of site-packages is named by way of "..".
        parts = [part for part in file.parts if part != '..']
        if not _WANTED & set(parts[:-1]) or _SKIPPED & set(parts):
            continue
        place = pathlib.Path(str(file.locate()))
        if place.is_file():
            path = '/'.join(parts)
            gathering.check_size(path, place.stat().st_size)
            gathering.add(path, place.read_bytes())
    return gathering.files
