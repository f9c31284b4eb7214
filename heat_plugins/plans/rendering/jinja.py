# SPDX-License-Identifier: Apache-2.0
"""The inside of `rendering`: the values of templates, and the sandbox.

It runs in a process of its own, which `rendering` starts: the process limits
itself first, reads a map of files in JSON from its standard input, and writes
a map with the rendered ``files``, or with an ``error``.
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

#: The files of data for templates, as well as roles_data.yaml.
NETWORKS: Final = 'network_data.yaml'
EXCLUDES: Final = 'j2_excludes.yaml'

#: How names of templates end.
SUFFIX: Final = '.j2.yaml'
_ROLE: Final = '.role.j2.yaml'
_NETWORK: Final = '.network.j2.yaml'

# Characters of a message of Jinja, which quotes the template.
_LONGEST_REASON = 500

#: The most rendered files, as in `sources.SourceLimits`.
FILES = 50_000

# The most characters of one rendered file.
_LARGEST = 1024 * 1024


def render(content: abc.Mapping[str, str]) -> dict[str, str]:
    """Render the templates of a plan.

    :param content: the templates, their data, and the files that they
        include.
    :raises errors.Invalid: one of them cannot be rendered.
    """
    sandbox = _Sandbox(content)
    return {
        target: sandbox.rendered(path, values)
        for target, (path, values) in _renderings(content).items()
    }


def targets(content: abc.Mapping[str, str]) -> dict[str, str]:
    """Return the paths of rendered files, with those of their templates.

    :param content: as for `render`; the texts of templates may be empty.
    """
    return {
        target: template
        for target, (template, _) in _renderings(content).items()
    }


def _renderings(
    content: abc.Mapping[str, str],
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the template and the values for each rendered file."""
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
    """The roles and networks of a plan, as values for its templates."""

    def __init__(self, content: abc.Mapping[str, str]) -> None:
        self._content = content
        text = content.get(roles.PATH) or '[]'
        self._roles = [role.data for role in roles.from_roles_data(text)]
        networks = texts.load(content.get(NETWORKS) or '[]', NETWORKS)
        if not isinstance(networks, list):
            raise errors.Invalid(f'{NETWORKS} must be a list of maps')
        roles.check_names(networks, NETWORKS)
        self._networks: list[dict[str, Any]] = [
            network
            | {
                'name_lower': str(
                    network.get('name_lower') or network['name'].lower()
                )
            }
            for network in networks
        ]

    def excluded(self) -> set[str]:
        excludes = texts.mapping(self._content.get(EXCLUDES) or '', EXCLUDES)
        names = excludes.get('name') or []
        if not isinstance(names, list):
            raise errors.Invalid(f'name of {EXCLUDES} must be a list')
        return {str(name) for name in names}

    def renderings(
        self, path: str
    ) -> abc.Iterator[tuple[str, dict[str, Any]]]:
        """Yield the paths that a template renders to, with its values."""
        if not path.endswith(SUFFIX):
            return
        folder, name = posixpath.split(path)
        if path.endswith(_ROLE):
            name = name.removesuffix(_ROLE)
            for role in self._roles:
                values: dict[str, Any] = {
                    'role': role,
                    'networks': self._networks,
                }
                if '{{role.name}}' not in (self._content.get(path) or ''):
                    # Old templates write {{role}} for the name, as roles had
                    # nothing else.
                    values['role'] = role['name']
                    if role.get('disable_constraints'):
                        values['disable_constraints'] = True
                target = f'{role["name"].lower()}-{name}.yaml'
                yield posixpath.join(folder, target), values
        elif path.endswith(_NETWORK):
            word = 'port' if folder.endswith('ports') else 'network'
            name = name.removesuffix(_NETWORK)
            for network in self._networks:
                if network.get('enabled') is not False:
                    target = name.replace(word, network['name_lower'])
                    target = posixpath.join(folder, f'{target}.yaml')
                    yield target, {'network': network}
        else:
            yield (
                f'{path.removesuffix(SUFFIX)}.yaml',
                {'roles': self._roles, 'networks': self._networks},
            )


class _Sandbox(sandbox.SandboxedEnvironment):
    """Jinja's sandbox for a plan's files; its process has limits."""

    def __init__(self, content: abc.Mapping[str, str]) -> None:
        super().__init__(loader=jinja2.FunctionLoader(content.get))
        self._content = content

    def join_path(self, template: str, parent: str) -> str:
        """Return an included file's path, next to its includer if there."""
        sibling = posixpath.join(posixpath.dirname(parent), template)
        sibling = posixpath.normpath(sibling)
        return sibling if sibling in self._content else template

    def rendered(self, path: str, values: abc.Mapping[str, Any]) -> str:
        """Render a file.

        :raises errors.Invalid: the template is wrong or renders to too much.
        """
        size = 0
        parts = []
        try:
            # Templates may change their values.
            given = copy.deepcopy(dict(values))
            for part in self.get_template(path).generate(given):
                size += len(part)
                if size > _LARGEST:
                    raise errors.Invalid(
                        f'{path} renders to more than {_LARGEST} characters'
                    )
                parts.append(part)
        except (errors.Invalid, MemoryError):
            raise
        # A template can raise anything in Jinja and in Python's compiler.
        except Exception as exc:
            line = getattr(exc, 'lineno', None)
            place = f' (line {line})' if line else ''
            reason = bounds.shortened(str(exc), _LONGEST_REASON)
            raise errors.Invalid(
                f'Cannot render {path}{place}: {type(exc).__name__}: {reason}'
            ) from exc
        return ''.join(parts)


def main() -> None:
    """Render a plan's templates in a process with limits."""
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
        text = json.dumps({'error': str(exc)})
    except MemoryError:
        message = (
            f'The Jinja templates need more than {memory // 1024**2} MiB of '
            'memory'
        )
        text = json.dumps({'error': message})
    if len(text) > output:
        message = f'The Jinja templates render more than {output} bytes'
        text = json.dumps({'error': message})
    sys.stdout.write(text)


if __name__ == '__main__':
    main()
