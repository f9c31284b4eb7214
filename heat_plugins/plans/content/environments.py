# SPDX-License-Identifier: Apache-2.0
"""``plan-environment.yaml``: enabled environments and set parameters."""

from collections import abc
import dataclasses
from typing import Any, Self

from heat_plugins import errors
from heat_plugins.content import texts

#: Where it lies in a plan.
PATH = 'plan-environment.yaml'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """An environment of a plan, in the order in which Heat merges them.

    :ivar path: of a file in the plan; None where `data` stands here.
    :ivar data: an environment written out in this place.
    """

    path: str | None = None
    data: abc.Mapping[str, Any] | None = dataclasses.field(
        default=None, repr=False
    )


def _values() -> Any:
    # Any of them may be a secret.
    return dataclasses.field(default_factory=dict, repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanEnvironment:
    """The content of the file.

    :ivar parameter_defaults: set parameters, which override environments.
    :ivar passwords: generated ones by the name of the parameter; None before
        they are generated. Environments override them.
    :ivar derived_parameters: computed by workflows; `parameter_defaults`
        override them.
    :ivar more: the sections that plans themselves do not read.
    """

    version: str = '1.0'
    name: str = ''
    description: str = ''
    template: str
    environments: tuple[Entry, ...] = ()
    parameter_defaults: abc.Mapping[str, Any] = _values()
    passwords: abc.Mapping[str, Any] = _values()
    derived_parameters: abc.Mapping[str, Any] = _values()
    resource_registry: abc.Mapping[str, Any] = _values()
    workflow_parameters: abc.Mapping[str, Any] = _values()
    more: abc.Mapping[str, Any] = _values()

    @property
    def enabled(self) -> tuple[str, ...]:
        """The paths of the environments, without those written out."""
        return tuple(
            entry.path for entry in self.environments if entry.path is not None
        )

    @classmethod
    def from_text(cls, text: str, template: str | None = None) -> Self:
        """Read the file.

        :param template: the root template where the file names none.
        :raises errors.Invalid: it is no such file.
        """
        sections = dict(texts.mapping(text, PATH))
        values: dict[str, Any] = {
            'template': texts.path(
                sections.pop('template', None) or template,
                f'template of {PATH}',
            )
        }
        for section in _MAPS:
            values[section] = texts.section(sections, section, PATH)
        for section in ('version', 'name', 'description'):
            value = sections.pop(section, None)
            if value is not None:
                values[section] = str(value).strip()
        listed = sections.pop('environments', None)
        if not isinstance(listed, list | None):
            raise errors.Invalid(f'environments of {PATH} must be a list')
        entries = []
        for given in listed or ():
            match given:
                case {'path': path, **others} if not others:
                    path = texts.path(path, f'an environment of {PATH}')
                    entries.append(Entry(path=path))
                case {'data': dict(data), **others} if not others:
                    entries.append(Entry(data=data))
                case _:
                    raise errors.Invalid(
                        f'Each of the environments of {PATH} must be a map '
                        'with either path, a file of the plan, or data, a map'
                    )
        # The last of equal paths counts, as in Heat's merging.
        later = {entry.path: place for place, entry in enumerate(entries)}
        values['environments'] = tuple(
            entry
            for place, entry in enumerate(entries)
            if entry.path is None or later[entry.path] == place
        )
        return cls(**values, more=sections)

    def to_text(self) -> str:
        """Write the file, in a stable order, without empty sections.

        :raises errors.Invalid: it would be more than is read.
        """
        values: dict[str, Any] = {
            'version': self.version,
            'name': self.name,
            'description': self.description,
            'template': self.template,
            'environments': [
                {'data': dict(entry.data)}
                if entry.data is not None
                else {'path': entry.path}
                for entry in self.environments
            ],
        }
        for section in _MAPS:
            content = getattr(self, section)
            if content:
                values[section] = dict(content)
        text = texts.dump(values | dict(self.more))
        # A file that cannot be read again would make the plan useless.
        texts.load(text, PATH)
        return text


_MAPS = (
    'parameter_defaults',
    'passwords',
    'derived_parameters',
    'resource_registry',
    'workflow_parameters',
)
