# SPDX-License-Identifier: Apache-2.0
"""The inside of `rendering`: what a template is given, and its sandbox.

It runs in a process of its own, which `rendering` starts: that limits itself
first, reads a map of files in JSON from its standard input, and writes a map
of what was made of them, or of an ``error``.
"""

from collections import abc
import copy
import json
import posixpath
import resource
import sys
from typing import Any, Final

import jinja2
from jinja2 import sandbox

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import roles

#: What templates are rendered with, as well as the roles.
NETWORKS: Final = 'network_data.yaml'
EXCLUDES: Final = 'j2_excludes.yaml'

#: How names of templates end.
SUFFIX: Final = '.j2.yaml'
_ROLE: Final = '.role.j2.yaml'
_NETWORK: Final = '.network.j2.yaml'

# Characters of what Jinja says, which quotes the template.
_LONGEST_REASON = 500

#: Files that are made in all, as `sources.SourceLimits` has it.
FILES = 50_000

# Characters of what one template renders to.
_LARGEST = 1024 * 1024


def render(content: abc.Mapping[str, str]) -> dict[str, str]:
    """Return what is made of the templates in a plan.

    :param content: the templates, the data that they are rendered with, and
        what they include.
    :raises errors.Invalid: one of them cannot be rendered.
    """
    sandbox = _Sandbox(content)
    return {
        target: sandbox.rendered(path, values)
        for target, (path, values) in _renderings(content).items()
    }


def targets(content: abc.Mapping[str, str]) -> dict[str, str]:
    """Return the paths of what is made of templates, and those of these.

    :param content: of templates, the paths are enough.
    """
    return {
        target: template
        for target, (template, _) in _renderings(content).items()
    }


def _renderings(
    content: abc.Mapping[str, str],
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return, by target, the template and its values."""
    data = _Data(content)
    excluded = data.excluded()
    rendered: dict[str, tuple[str, dict[str, Any]]] = {}
    for path in sorted(content):
        for target, values in data.renderings(path):
            if target not in excluded:
                target = texts.path(target, 'name of a rendered file')
                rendered[target] = path, values
            if len(rendered) > FILES:
                raise errors.Invalid(
                    f'The Jinja templates render more than {FILES} files'
                )
    return rendered


class _Data:
    """What templates are rendered with."""

    def __init__(self, content: abc.Mapping[str, str]) -> None:
        self._content = content
        text = self._content.get(roles.PATH)
        self._roles = [
            role.data for role in roles.from_roles_data(text or '[]')
        ]
        self._networks = self._read_networks()

    def excluded(self) -> set[str]:
        excludes = texts.mapping(self._content.get(EXCLUDES) or '', EXCLUDES)
        names = excludes.get('name') or []
        if not isinstance(names, list):
            raise errors.Invalid(f'name of {EXCLUDES} must be a list')
        return {str(name) for name in names}

    def renderings(
        self, path: str
    ) -> abc.Iterator[tuple[str, dict[str, Any]]]:
        """Give the paths that a file is rendered to, with the values."""
        if not path.endswith(SUFFIX):
            return
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
                f'{path.removesuffix(SUFFIX)}.yaml',
                {'roles': self._roles, 'networks': self._networks},
            )

    def _for_role(
        self, path: str, role: abc.Mapping[str, Any]
    ) -> dict[str, Any]:
        values: dict[str, Any] = {'role': role, 'networks': self._networks}
        if '{{role.name}}' in (self._content.get(path) or ''):
            return values
        # In templates from before roles had more than a name, it is that.
        values['role'] = role['name']
        if role.get('disable_constraints'):
            values['disable_constraints'] = True
        return values

    def _read_networks(self) -> list[dict[str, Any]]:
        networks = texts.load(self._content.get(NETWORKS) or '[]', NETWORKS)
        if not isinstance(networks, list):
            raise errors.Invalid(f'{NETWORKS} must be a list of maps')
        roles.check_names(networks, NETWORKS)
        return [
            network
            | {
                'name_lower': str(
                    network.get('name_lower') or network['name'].lower()
                )
            }
            for network in networks
        ]


class _Sandbox(sandbox.SandboxedEnvironment):
    """Renders a plan's files; the process around it has limits."""

    def __init__(self, content: abc.Mapping[str, str]) -> None:
        super().__init__(loader=jinja2.FunctionLoader(content.get))
        self._content = content

    def join_path(self, template: str, parent: str) -> str:
        """Return the path of what a file includes or imports.

        It is looked for next to that file, and then at the root.
        """
        sibling = posixpath.join(posixpath.dirname(parent), template)
        sibling = posixpath.normpath(sibling)
        return sibling if sibling in self._content else template

    def rendered(self, path: str, values: abc.Mapping[str, Any]) -> str:
        """Render a file.

        :raises errors.Invalid: it cannot be done.
        """
        try:
            return self._rendered(path, values)
        except (errors.Invalid, MemoryError):
            raise
        # Whatever a template brings about, in Jinja or in Python's compiler.
        except Exception as exc:
            line = getattr(exc, 'lineno', None)
            place = f' (line {line})' if line else ''
            reason = bounds.shortened(str(exc), _LONGEST_REASON)
            raise errors.Invalid(
                f'Cannot render {path}{place}: {type(exc).__name__}: {reason}'
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


def main() -> None:
    seconds, memory, output = map(int, sys.argv[1:])
    for kind, limit in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, output),
        (resource.RLIMIT_CORE, 0),
    ):
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        resource.setrlimit(kind, (limit, limit))
    try:
        text = json.dumps({'files': render(json.load(sys.stdin))})
    except errors.Invalid as exc:
        text = _error(str(exc))
    except MemoryError:
        text = _error(
            f'The Jinja templates need more than {memory // 1024**2} MiB of '
            'memory'
        )
    if len(text) > output:
        text = _error(f'The Jinja templates render more than {output} bytes')
    sys.stdout.write(text)


def _error(message: str) -> str:
    return json.dumps({'error': message})


if __name__ == '__main__':
    main()
