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

They are parsed and run in Jinja's sandbox, which keeps them from Python and
from the machine, and in a process of their own, which keeps them from taking
long and from making large things: Python stops neither a loop nor a match.
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
from heat_plugins.plans.content import roles
from heat_plugins.plans.rendering import jinja

#: Returns the contents of some paths of a plan.
Fetch = abc.Callable[[abc.Collection[str]], abc.Mapping[str, bytes]]

_DATA: Final = frozenset({roles.PATH, jinja.NETWORKS, jinja.EXCLUDES})

# Many times the processor time: for a machine that has much else to do.
_SLACK: Final = 20

# How a process ends that took more time than it was given.
_TIMED_OUT: Final = (-signal.SIGXCPU, -signal.SIGKILL)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RenderingLimits:
    """What the rendering of a plan may take.

    :ivar seconds: of processor time.
    :ivar memory: bytes of address space.
    :ivar source: characters of the templates, their data, and what they
        include.
    :ivar output: bytes of all that is rendered.
    """

    seconds: int = 60
    memory: int = 512 * 1024 * 1024
    source: int = 32 * 1024 * 1024
    output: int = 64 * 1024 * 1024


_LIMITS: Final = RenderingLimits()


def is_due(paths: abc.Iterable[str]) -> bool:
    """Say whether there is anything to render."""
    return any(path.endswith(jinja.SUFFIX) for path in paths)


def render(
    content: sources.Content, limits: RenderingLimits = _LIMITS
) -> sources.Content:
    """Return a plan's content with its templates rendered into it.

    :raises errors.Invalid: one of them cannot be rendered.
    """
    gathered = sources.Gathering()
    made = outputs(
        content, lambda paths: {path: content[path] for path in paths}, limits
    )
    for path, file in {**content, **made}.items():
        gathered.add(path, file)
    return gathered.files


def outputs(
    paths: abc.Collection[str], fetch: Fetch, limits: RenderingLimits = _LIMITS
) -> dict[str, bytes]:
    """Return what is made of a plan's templates, by its paths.

    :param fetch: is asked for what the rendering takes of them.
    :raises errors.Invalid: one of the templates cannot be rendered.
    """
    if not is_due(paths):
        return {}
    # A template may include any file.
    needed = _texts(paths, fetch)
    if sum(map(len, needed.values())) > limits.source:
        raise errors.Invalid(
            'The texts of the plan, which Jinja templates may include, exceed '
            f'{limits.source} characters'
        )
    code, outcome = _confined(needed, limits)
    if 'files' not in outcome:
        raise errors.Invalid(outcome.get('error') or _cause(code, limits))
    gathered = sources.Gathering()
    for path, text in outcome['files'].items():
        gathered.add(path, text.encode())
    return gathered.files


def targets(paths: abc.Collection[str], fetch: Fetch) -> dict[str, str]:
    """Return the paths of what is made of a plan's templates, and theirs."""
    data = fetch(sorted(_DATA & set(paths)))
    return jinja.targets(
        {
            **{path: '' for path in paths if path.endswith(jinja.SUFFIX)},
            **{path: texts.decode(file, path) for path, file in data.items()},
        }
    )


def _texts(paths: abc.Collection[str], fetch: Fetch) -> dict[str, str]:
    """Return the files that are texts."""
    contents = {}
    for path, file in fetch(sorted(paths)).items():
        with contextlib.suppress(errors.Invalid):
            contents[path] = texts.decode(file, path)
    return contents


def _confined(
    given: abc.Mapping[str, str], limits: RenderingLimits
) -> tuple[int, abc.Mapping[str, Any]]:
    """Run `jinja` in a process that can be stopped, and is small.

    :return: how it has ended, and what it wrote; an empty map if that is
        none.
    """
    output = limits.output
    sizes = (limits.seconds, limits.memory, output)
    # Files on a disk cannot keep either side waiting, and have an end.
    with tempfile.TemporaryFile() as reads, tempfile.TemporaryFile() as writes:
        reads.write(json.dumps(given).encode())
        reads.seek(0)
        process = subprocess.Popen(
            [sys.executable, '-P', '-m', jinja.__name__, *map(str, sizes)],
            stdin=reads,
            stdout=writes,
            stderr=subprocess.DEVNULL,
            # The same code as here, and nothing else that is known here.
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
    try:
        written = json.loads(text)
    except ValueError:
        written = None
    return code, written if isinstance(written, dict) else {}


def _cause(code: int, limits: RenderingLimits) -> str:
    if code in _TIMED_OUT:
        return (
            f'Rendering the Jinja templates took more than {limits.seconds} '
            'seconds of processor time; look for nested loops'
        )
    return (
        f'Cannot render the Jinja templates with {limits.memory // 1024**2} '
        f'MiB of memory: the process ended with code {code}'
    )
