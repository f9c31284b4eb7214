# SPDX-License-Identifier: Apache-2.0
"""``capabilities-map.yaml``: what can be chosen in a plan."""

from collections import abc
import dataclasses
import functools
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts

#: Where it lies in a plan.
PATH: Final = 'capabilities-map.yaml'

#: The title of the topic with what the map does not name.
OTHER: Final = 'Other'

# Where environments lie that a map need not name.
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
    """What can be chosen in a plan.

    :ivar topics: in the map's order; the environments that the map does not
        name are in a last topic, `OTHER`.
    :ivar warnings: what is wrong with the map, a sentence each.
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
    """Read a map against what a plan has.

    :param text: the map; None where the plan has none.
    :param enabled: the paths of the environments that are enabled.
    :raises errors.Invalid: it is no such map.
    """
    entries = texts.mapping(text or '', PATH)
    reader = _Reader(paths, enabled)
    topics = tuple(
        reader.topic(topic) for topic in _maps(entries, 'topics', PATH)
    )
    return Capabilities(
        topics=topics + reader.rest(),
        warnings=bounds.few(list(reader.warnings())),
    )


class _Reader:
    """Reads the parts of a map, and keeps what it meets."""

    def __init__(
        self, paths: abc.Collection[str], enabled: abc.Collection[str]
    ) -> None:
        self._paths = set(paths)
        self._enabled = set(enabled)
        self._met: dict[str, OptionalEnvironment] = {}

    def topic(self, entry: abc.Mapping[str, Any]) -> Topic:
        title = _text(entry.get('title'))
        return Topic(
            title=title,
            description=_text(entry.get('description')),
            groups=tuple(
                self._group(group)
                for group in _maps(
                    entry, 'environment_groups', f'topic {title!r}'
                )
            ),
        )

    def rest(self) -> tuple[Topic, ...]:
        """Return a topic of what was not met, if there is any."""
        others = {path for path in self._paths if _may_be_enabled(path)}
        others = (others | self._enabled) - set(self._met)
        if not others:
            return ()
        group = Group(
            title=OTHER,
            environments=tuple(
                self._environment({'file': path}) for path in sorted(others)
            ),
        )
        return (Topic(title=OTHER, groups=(group,)),)

    def warnings(self) -> abc.Iterator[str]:
        for path, environment in self._met.items():
            if not environment.present:
                yield f'{PATH} names {path}, which the plan does not have'
            for name in environment.requires:
                if name not in self._paths:
                    yield (
                        f'{path} requires {name}, which the plan does not have'
                    )

    def _group(self, entry: abc.Mapping[str, Any]) -> Group:
        title = _text(entry.get('title'))
        environments = tuple(
            self._environment(member)
            for member in _maps(entry, 'environments', f'group {title!r}')
        )
        return Group(
            name=_text(entry.get('name')),
            title=title,
            description=_text(entry.get('description')),
            tags=_tags(entry.get('tags')),
            mutually_exclusive=entry.get('mutually_exclusive') is True,
            environments=environments,
        )

    def _environment(
        self, entry: abc.Mapping[str, Any]
    ) -> OptionalEnvironment:
        path = texts.path(entry.get('file'), f'file of an entry of {PATH}')
        requires = entry.get('requires') or ()
        if not isinstance(requires, list | tuple):
            raise errors.Invalid(
                f'requires of {path} in {PATH} must be a list'
            )
        environment = OptionalEnvironment(
            path=path,
            title=_text(entry.get('title')) or path,
            description=_text(entry.get('description')),
            requires=tuple(
                texts.path(requirement, f'requirement of {path} in {PATH}')
                for requirement in requires
            ),
            enabled=path in self._enabled,
            present=path in self._paths,
        )
        self._met.setdefault(path, environment)
        return environment


def _may_be_enabled(path: str) -> bool:
    return (
        path.startswith(_FOLDER)
        and path.endswith('.yaml')
        and not path.endswith('.j2.yaml')
    )


def _maps(
    entries: abc.Mapping[str, Any], section: str, where: str
) -> list[abc.Mapping[str, Any]]:
    value = entries.get(section) or []
    if not isinstance(value, list) or not all(
        isinstance(entry, dict) for entry in value
    ):
        raise errors.Invalid(f'{section} of {where} in {PATH} must be a list')
    return value


def _tags(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _text(value: Any) -> str:
    return '' if value is None else ' '.join(str(value).split())
