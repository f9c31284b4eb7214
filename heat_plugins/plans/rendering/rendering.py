# SPDX-License-Identifier: Apache-2.0
"""Jinja templates of Heat templates, rendered once for all.

The name of a template says how often it is rendered:

- ``x.role.j2.yaml`` for each role of roles_data.yaml, as ``<role>-x.yaml``;
- ``port_x.network.j2.yaml`` in a folder ``ports``, and elsewhere
  ``network_x.network.j2.yaml``, for each network of network_data.yaml that
  is enabled, as ``<network>_x.yaml``;
- any other ``x.j2.yaml`` once, as ``x.yaml``.

Templates may include and import files of the plan, and nothing else. Paths
have the names of roles and networks in lower case; those that j2_excludes.yaml
names are not rendered.

They run in Jinja's sandbox, which keeps them from Python and from the machine,
and in a process of their own, whose time and memory are limited: Python can
stop neither a loop nor a match.
"""

from collections import abc
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any, Final

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.content import texts
from heat_plugins.plans.content import references
from heat_plugins.plans.content import roles
from heat_plugins.plans.rendering import jinja

_DATA: Final = frozenset({roles.PATH, jinja.NETWORKS, jinja.EXCLUDES})

# Seconds to wait for each second of processor time: the machine may be busy.
_SLACK: Final = 20

# The exit codes of a process that exceeded its time.
_TIMED_OUT: Final = (-signal.SIGXCPU, -signal.SIGKILL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RenderingLimits:
    """The limits of the rendering of a plan.

    :ivar seconds: of processor time.
    :ivar memory: bytes of address space.
    :ivar source: characters of the templates, their data, and included
        files.
    :ivar output: bytes of all that is rendered.
    """

    seconds: int = 60
    memory: int = 512 * 1024 * 1024
    source: int = 32 * 1024 * 1024
    output: int = 64 * 1024 * 1024


_LIMITS: Final = RenderingLimits()


def is_due(paths: abc.Iterable[str]) -> bool:
    """Return whether there are templates to render."""
    return any(path.endswith(jinja.SUFFIX) for path in paths)


def render(
    content: sources.Content, limits: RenderingLimits = _LIMITS
) -> sources.Content:
    """Return a plan's content with its templates rendered into it.

    :raises errors.Invalid: one of them cannot be rendered.
    """
    made = outputs(
        content, lambda paths: {path: content[path] for path in paths}, limits
    )
    return {**content, **made}


def outputs(
    paths: abc.Collection[str],
    fetch: references.Fetch,
    limits: RenderingLimits = _LIMITS,
) -> dict[str, bytes]:
    """Render the templates of a plan; return the rendered files.

    :param fetch: is called with all paths.
    :raises errors.Invalid: one of the templates cannot be rendered.
    """
    if not is_due(paths):
        return {}
    # A template may include any text file.
    needed = {}
    for path, file in fetch(sorted(paths)).items():
        with contextlib.suppress(errors.Invalid):
            needed[path] = texts.decode(file, path)
    if sum(map(len, needed.values())) > limits.source:
        raise errors.Invalid(
            'The texts of the plan, which Jinja templates may include, exceed '
            f'{limits.source} characters'
        )
    code, outcome = _confined(needed, limits)
    if 'files' not in outcome:
        cause = (
            'Cannot render the Jinja templates with '
            f'{limits.memory // 1024**2} MiB of memory: the process ended '
            f'with code {code}'
        )
        if code in _TIMED_OUT:
            cause = (
                'Rendering the Jinja templates took more than '
                f'{limits.seconds} seconds of processor time; look for nested '
                'loops'
            )
        raise errors.Invalid(outcome.get('error') or cause)
    gathered = sources.Gathering()
    for path, text in outcome['files'].items():
        gathered.add(path, text.encode())
    return gathered.files


def targets(
    paths: abc.Collection[str], fetch: references.Fetch
) -> dict[str, str]:
    """Return the paths of rendered files, with those of their templates."""
    data = fetch(sorted(_DATA & set(paths)))
    return jinja.targets(
        {
            **{path: '' for path in paths if path.endswith(jinja.SUFFIX)},
            **{path: texts.decode(file, path) for path, file in data.items()},
        }
    )


def _confined(
    given: abc.Mapping[str, str], limits: RenderingLimits
) -> tuple[int, abc.Mapping[str, Any]]:
    """Run `jinja` in a process with limits.

    :return: its exit code and its output; an empty map if that is unreadable.
    """
    output = limits.output
    sizes = (limits.seconds, limits.memory, output)
    # Unlike with pipes, neither side waits for the other.
    with tempfile.TemporaryFile() as reads, tempfile.TemporaryFile() as writes:
        reads.write(json.dumps(given).encode())
        reads.seek(0)
        process = subprocess.Popen(
            [sys.executable, '-P', '-m', jinja.__name__, *map(str, sizes)],
            stdin=reads,
            stdout=writes,
            stderr=subprocess.DEVNULL,
            # It finds our code, and none of our secrets.
            env={'PYTHONPATH': os.pathsep.join(filter(None, sys.path))},
        )
        try:
            code = process.wait(limits.seconds * _SLACK)
        except subprocess.TimeoutExpired:
            code = -signal.SIGKILL
        finally:
            process.kill()
            process.wait()
        writes.seek(0)
        text = writes.read(output + 1)
    with contextlib.suppress(ValueError):
        return code, dict(json.loads(text))
    return code, {}
