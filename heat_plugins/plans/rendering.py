# SPDX-License-Identifier: Apache-2.0
"""Jinja templates of Heat templates, rendered once for all.

A file's name says for what it is rendered:

- ``x.role.j2.yaml`` for each role of roles_data.yaml, as ``<role>-x.yaml``;
- ``port_x.network.j2.yaml`` in a folder ``ports``, and elsewhere
  ``network_x.network.j2.yaml``, for each network of network_data.yaml that
  is enabled, as ``<network>_x.yaml``;
- any other ``x.j2.yaml`` once, as ``x.yaml``.

They may include and import files of the plan, and nothing else. The names of
roles and networks are in lower case there, and what j2_excludes.yaml names
is not made.

They run in Jinja's sandbox. It keeps them from Python and from the machine,
and here from making large things; not from taking long. So render only for
those whom you would let deploy.
"""

from collections import abc
import copy
import posixpath
from typing import Any, Final

import jinja2
from jinja2 import exceptions
from jinja2 import sandbox

from heat_plugins.plans import errors
from heat_plugins.plans import roles as roles_module
from heat_plugins.plans import sources
from heat_plugins.plans import texts

_NETWORKS: Final = 'network_data.yaml'
_EXCLUDES: Final = 'j2_excludes.yaml'

_SUFFIX: Final = '.j2.yaml'
_ROLE: Final = '.role.j2.yaml'
_NETWORK: Final = '.network.j2.yaml'

# Of what one multiplication or power may make.
_LARGEST = 1024 * 1024


def is_due(paths: abc.Iterable[str]) -> bool:
    """Say whether there is anything to render."""
    return any(path.endswith(_SUFFIX) for path in paths)


def takes_part(path: str) -> bool:
    """Say whether a file is a Jinja template, or what one is made with."""
    data = (roles_module.PATH, _NETWORKS, _EXCLUDES)
    return path in data or '.j2' in posixpath.basename(path)


def render(
    content: sources.Content, limits: sources.Limits | None = None
) -> sources.Content:
    """Return a plan's content with its templates rendered into it.

    :raises errors.Invalid: one of them cannot be rendered.
    """
    found = sources.Gathering(limits or sources.Limits())
    for path, source in content.items():
        found.add(path, source)
    data = _Data(content)
    excluded = data.excluded()
    renderer = _Sandbox(content)
    for path in sorted(content):
        if path.endswith(_SUFFIX):
            for target, values in data.renderings(path):
                if target not in excluded:
                    found.add(target, renderer.rendered(path, values))
    return found.files


class _Data:
    """What templates are rendered with."""

    def __init__(self, content: sources.Content) -> None:
        self._content = content
        text = self._text(roles_module.PATH)
        self._roles = [
            role.data for role in roles_module.from_roles_data(text or '[]')
        ]
        self._networks = self._read_networks()

    def excluded(self) -> set[str]:
        found = texts.mapping(self._text(_EXCLUDES) or '', _EXCLUDES)
        names = found.get('name') or []
        if not isinstance(names, list):
            raise errors.Invalid(f'name of {_EXCLUDES} is no list')
        return {str(name) for name in names}

    def renderings(
        self, path: str
    ) -> abc.Iterator[tuple[str, dict[str, Any]]]:
        """Give the paths that a template is rendered to, with the values."""
        folder, name = posixpath.split(path)
        if path.endswith(_ROLE):
            name = name.removesuffix(_ROLE)
            for role in self._roles:
                yield (
                    posixpath.join(
                        folder, f'{role["name"].lower()}-{name}.yaml'
                    ),
                    self._for_role(path, role),
                )
        elif path.endswith(_NETWORK):
            word = 'port' if folder.endswith('ports') else 'network'
            name = name.removesuffix(_NETWORK)
            for network in self._networks:
                if network.get('enabled') is not False:
                    target = name.replace(word, network['name_lower'])
                    yield (
                        posixpath.join(folder, f'{target}.yaml'),
                        {'network': network},
                    )
        else:
            yield (
                f'{path.removesuffix(_SUFFIX)}.yaml',
                {'roles': self._roles, 'networks': self._networks},
            )

    def _for_role(
        self, path: str, role: abc.Mapping[str, Any]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {'role': role, 'networks': self._networks}
        if '{{role.name}}' in (self._text(path) or ''):
            return values
        # In templates from before roles had more than a name, it is that.
        values['role'] = role['name']
        if role.get('disable_constraints'):
            values['disable_constraints'] = True
        return values

    def _read_networks(self) -> list[dict[str, Any]]:
        found = texts.load(self._text(_NETWORKS) or '[]', _NETWORKS)
        if not isinstance(found, list) or not all(
            isinstance(one, dict) and isinstance(one.get('name'), str)
            for one in found
        ):
            raise errors.Invalid(f'{_NETWORKS} is no list of maps with names')
        return [
            one
            | {'name_lower': str(one.get('name_lower') or one['name'].lower())}
            for one in found
        ]

    def _text(self, path: str) -> str | None:
        content = self._content.get(path)
        return None if content is None else texts.decode(content, path)


class _Sandbox(sandbox.SandboxedEnvironment):
    """Renders a plan's files; lets nothing grow out of all proportion."""

    intercepted_binops = frozenset({'*', '**'})

    def __init__(self, content: sources.Content) -> None:
        super().__init__(loader=jinja2.FunctionLoader(self._load))
        self._content = content

    def join_path(self, template: str, parent: str) -> str:
        """Look beside the file that includes another, then at the root."""
        beside = posixpath.join(posixpath.dirname(parent), template)
        beside = posixpath.normpath(beside)
        return beside if beside in self._content else template

    def call_binop(
        self, context: Any, operator: str, left: Any, right: Any
    ) -> Any:
        if operator == '**':
            raise exceptions.SecurityError('powers are not allowed')
        for one, other in ((left, right), (right, left)):
            if (
                isinstance(one, str | bytes | list | tuple)
                and isinstance(other, int)
                and len(one) * other > _LARGEST
            ):
                raise exceptions.SecurityError('a repetition is too large')
        return super().call_binop(context, operator, left, right)

    def rendered(self, path: str, values: abc.Mapping[str, Any]) -> bytes:
        """Render a file.

        :raises errors.Invalid: it cannot be done.
        """
        try:
            return self._rendered(path, values).encode()
        except (
            jinja2.TemplateError,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            RecursionError,
        ) as exc:
            line = getattr(exc, 'lineno', None)
            place = f' (line {line})' if line else ''
            raise errors.Invalid(
                f'{path}{place} cannot be rendered: {type(exc).__name__}: '
                f'{exc}'
            ) from exc

    def _rendered(self, path: str, values: abc.Mapping[str, Any]) -> str:
        size = 0
        parts = []
        # Templates may change what they are given.
        given = copy.deepcopy(dict(values))
        for part in self.get_template(path).generate(given):
            size += len(part)
            if size > _LARGEST:
                raise errors.Invalid(
                    f'{path} renders to more than {_LARGEST} characters'
                )
            parts.append(part)
        return ''.join(parts)

    def _load(self, name: str) -> str | None:
        content = self._content.get(name)
        return None if content is None else texts.decode(content, name)
