# SPDX-License-Identifier: Apache-2.0
"""``capabilities-map.yaml``: the choices of a plan."""

from collections import abc
import dataclasses
import functools
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts

#: Where it lies in a plan.
PATH: Final = 'capabilities-map.yaml'

#: The title of the topic with the environments that the map does not name.
OTHER: Final = 'Other'

# The folder with environments that a map need not name.
_FOLDER = 'environments/'


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionalEnvironment:
    """An environment that can be enabled; its path is what identifies it.

    :ivar requires: the paths of the environments that it requires.
    :ivar present: whether the plan has the file.
    """

    path: str
    title: str
    description: str = ''
    requires: tuple[str, ...] = ()
    enabled: bool = False
    present: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Environments that belong together.

    :ivar mutually_exclusive: whether only one of them may be enabled.
    """

    name: str = ''
    title: str = ''
    description: str = ''
    tags: tuple[str, ...] = ()
    mutually_exclusive: bool = False
    environments: tuple[OptionalEnvironment, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Topic:
    """Groups that belong together."""

    title: str = ''
    description: str = ''
    groups: tuple[Group, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Capabilities:
    """The choices of a plan.

    :ivar topics: in the map's order; the environments that the map does not
        name are in a last topic, `OTHER`.
    :ivar warnings: a sentence for each fault of the map.
    """

    topics: tuple[Topic, ...]
    warnings: tuple[str, ...] = ()

    @functools.cached_property
    def groups(self) -> tuple[Group, ...]:
        return tuple(group for topic in self.topics for group in topic.groups)

    @functools.cached_property
    def environments(self) -> dict[str, OptionalEnvironment]:
        """The environments by their paths; the first of each path counts."""
        environments: dict[str, OptionalEnvironment] = {}
        for group in self.groups:
            for environment in group.environments:
                environments.setdefault(environment.path, environment)
        return environments


def read(
    text: str | None,
    paths: abc.Collection[str],
    enabled: abc.Collection[str],
) -> Capabilities:
    """Read a map of the choices among the files of a plan.

    :param text: the map; None where the plan has none.
    :param enabled: the paths of the environments that are enabled.
    :raises errors.Invalid: it is no such map.
    """
    there, on = set(paths), set(enabled)

    def environment(entry: abc.Mapping[str, Any]) -> OptionalEnvironment:
        path = texts.path(entry.get('file'), f'file of an entry of {PATH}')
        requires = entry.get('requires') or ()
        if not isinstance(requires, list | tuple):
            raise errors.Invalid(
                f'requires of {path} in {PATH} must be a list'
            )
        return OptionalEnvironment(
            path=path,
            title=_text(entry.get('title')) or path,
            description=_text(entry.get('description')),
            requires=tuple(
                texts.path(requirement, f'requirement of {path} in {PATH}')
                for requirement in requires
            ),
            enabled=path in on,
            present=path in there,
        )

    def group(entry: abc.Mapping[str, Any]) -> Group:
        tags = entry.get('tags')
        given = _maps(entry, 'environments', 'group')
        return Group(
            name=_text(entry.get('name')),
            title=_text(entry.get('title')),
            description=_text(entry.get('description')),
            tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
            mutually_exclusive=entry.get('mutually_exclusive') is True,
            environments=tuple(map(environment, given)),
        )

    listed = Capabilities(
        topics=tuple(
            Topic(
                title=_text(topic.get('title')),
                description=_text(topic.get('description')),
                groups=tuple(
                    map(group, _maps(topic, 'environment_groups', 'topic'))
                ),
            )
            for topic in _maps(texts.mapping(text or '', PATH), 'topics', '')
        )
    )
    others = on | {
        path
        for path in there
        if path.startswith(_FOLDER)
        and path.endswith('.yaml')
        and not path.endswith('.j2.yaml')
    }
    others -= listed.environments.keys()
    topics = listed.topics
    if others:
        rest = tuple(environment({'file': path}) for path in sorted(others))
        unnamed = Group(title=OTHER, environments=rest)
        topics += (Topic(title=OTHER, groups=(unnamed,)),)
    warnings: list[str] = []
    for path, known in listed.environments.items():
        if not known.present:
            warnings.append(
                f'{PATH} names {path}, which the plan does not have'
            )
        warnings += [
            f'{path} requires {name}, which the plan does not have'
            for name in known.requires
            if name not in there
        ]
    return Capabilities(topics=topics, warnings=bounds.few(warnings))


def _maps(
    entry: abc.Mapping[str, Any], section: str, kind: str
) -> list[abc.Mapping[str, Any]]:
    """Return a list in a plan's map."""
    value = entry.get(section) or []
    if not isinstance(value, list) or not all(
        isinstance(each, dict) for each in value
    ):
        where = f'{kind} {_text(entry.get("title"))!r} in ' if kind else ''
        raise errors.Invalid(f'{section} of {where}{PATH} must be a list')
    return value


def _text(value: Any) -> str:
    """Return text of a plan's map in one line."""
    return '' if value is None else ' '.join(str(value).split())
