# SPDX-License-Identifier: Apache-2.0
"""The validations in a tree of files, and the choice among them.

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
    hosts: tuple[str, ...] = ()


class _Loader(yaml_reading.Loader):
    """A loader that accepts Ansible's own tags, such as ``!vault``."""

    pure = None


_Loader.add_multi_constructor('!', lambda loader, suffix, node: None)


def playbook(content: bytes, path: str) -> Validation | None:
    """Read a validation; None if the file is no playbook with metadata.

    :raises errors.Invalid: it is not YAML, or too large; or its metadata
        have the wrong types.
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
        name=_line(metadata, 'name', path) or own,
        description=_line(metadata, 'description', path),
        groups=_texts(metadata, 'groups', path),
        hosts=tuple(
            dict.fromkeys(name for name in hosts if isinstance(name, str))
        ),
    )


def _line(metadata: abc.Mapping[Any, Any], key: str, path: str) -> str:
    """Return a text of the metadata as one line."""
    words = ' '.join(_texts(metadata, key, path)).split()
    return ' '.join(words)[:_LONGEST]


def _texts(
    metadata: abc.Mapping[Any, Any], key: str, path: str
) -> tuple[str, ...]:
    """Return a list of texts in the metadata; one text needs no list."""
    value = metadata.get(key) or []
    texts = value if isinstance(value, list) else [value]
    # Aliases of YAML make gigabytes of few bytes: only scalars are written.
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

    :ivar warnings: a sentence for each file that was left out.
    """

    validations: tuple[Validation, ...] = ()
    warnings: tuple[str, ...] = ()

    def choose(
        self,
        names: abc.Collection[str] = (),
        groups: abc.Collection[str] = (),
    ) -> tuple[Validation, ...]:
        """Return the validations with these names or in these groups.

        Without names and groups, all are chosen.

        :raises errors.NotFound: no validation has a name or a group.
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

    An unreadable playbook is left out with a warning.
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
    """Return whether a file lies in a folder for playbooks."""
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
                # Ansible itself finds the plugins within a role.
                folders.setdefault(name, set()).add('/'.join(parents[:depth]))
                break
    return {name: tuple(sorted(folders[name])) for name in sorted(folders)}


#: Where playbooks and their roles lie in a plan.
FOLDER = 'validations/'

# The folders that are read of a package.
_WANTED = FOLDERS | PATHS.keys()
_SKIPPED = frozenset({'tests', '__pycache__'})


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaybookSource:
    """A source of playbooks.

    :ivar name: shown to users, such as ``plan shop``.
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
    """Return the playbooks of a plan, an object or a package.

    :param complete: whether to read the roles and plugins of a plan, too.
    :raises errors.Invalid: not exactly one source is given.
    :raises errors.NotFound: the source does not exist.
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
    files = storage.Container(plans.store, loaded.name, pools.Pool())
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
        # A file outside of site-packages has a path with "..".
        parts = [part for part in file.parts if part != '..']
        if not _WANTED & set(parts[:-1]) or _SKIPPED & set(parts):
            continue
        place = pathlib.Path(str(file.locate()))
        if place.is_file():
            path = '/'.join(parts)
            gathering.check_size(path, place.stat().st_size)
            gathering.add(path, place.read_bytes())
    return gathering.files
