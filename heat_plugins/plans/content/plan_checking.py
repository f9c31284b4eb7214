# SPDX-License-Identifier: Apache-2.0
"""Whether a plan's files are such as later commands need them."""

from collections import abc
import contextlib
import re
from typing import Final

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references
from heat_plugins.plans.content import roles
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.deploy import steps
from heat_plugins.plans.rendering import rendering

# Parts of a line of a template that something else stands for when rendered.
_JINJA = re.compile(r'\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}')

# Characters of a line that is compared, and such parts in it.
_LONGEST = 500
_PARTS = 10


def check(
    environment: environments.PlanEnvironment,
    paths: abc.Collection[str],
    fetch: references.Fetch,
    *,
    rendered: bool,
) -> None:
    """Check what is enabled, what it refers to, and the plan's own files.

    :param paths: of all files of the plan.
    :param rendered: whether Jinja templates are among them, with what was
        made of them.
    :raises errors.BadFile: a file cannot be used; of one that was rendered
        it names the template.
    :raises errors.Invalid: it is all too large.
    """
    with _own(environments.PATH):
        steps.read(environment)
        deploy_records.read(environment)
    own = fetch([path for path in _READERS if path in paths])
    for path, content in own.items():
        with _own(path):
            _READERS[path](texts.decode(content, path))
    with _naming_templates(paths, fetch, rendered=rendered):
        references.resolve(environment, fetch)


def check_environments(
    wanted: abc.Iterable[str],
    paths: abc.Collection[str],
    fetch: references.Fetch,
    *,
    rendered: bool,
) -> None:
    """Check environments, and what they refer to; see `check`."""
    with _naming_templates(paths, fetch, rendered=rendered):
        references.follow(wanted, fetch)


_READERS: Final[abc.Mapping[str, abc.Callable[[str], object]]] = {
    capabilities.PATH: lambda text: capabilities.read(text, (), ()),
    roles.PATH: roles.from_roles_data,
}


@contextlib.contextmanager
def _own(path: str) -> abc.Iterator[None]:
    """Say which file an error is about."""
    try:
        yield
    except errors.BadFile:
        raise
    except errors.Invalid as exc:
        raise errors.BadFile(str(exc), path) from exc


@contextlib.contextmanager
def _naming_templates(
    paths: abc.Collection[str], fetch: references.Fetch, *, rendered: bool
) -> abc.Iterator[None]:
    """Name the Jinja template that a bad file was made of."""
    try:
        yield
    except errors.BadFile as exc:
        template = None
        if rendered:
            template = rendering.targets(paths, fetch).get(exc.path)
        if template is None:
            raise
        place = template
        if exc.line is not None:
            files = {
                path: texts.decode(content, path)
                for path, content in fetch([exc.path, template]).items()
            }
            line = _source_line(files[exc.path], exc.line, files[template])
            place = f'line {line} of {template}' if line else template
        raise errors.BadFile(
            f'{exc}. Jinja rendered it from {place}; correct that',
            exc.path,
            exc.line,
        ) from exc


def _source_line(made: str, line: int, template: str) -> int | None:
    """Return the line of a template that has become a line.

    :return: None where none, or more than one, can have become it.
    """
    wanted = made.splitlines()[line - 1 : line]
    if not wanted or not wanted[0].strip() or len(wanted[0]) > _LONGEST:
        return None
    numbers = [
        number
        for number, text in enumerate(template.splitlines(), 1)
        if _becomes(text[:_LONGEST], wanted[0])
    ]
    return numbers[0] if len(numbers) == 1 else None


def _becomes(text: str, made: str) -> bool:
    """Say whether a line of a template can have become a line."""
    parts = _JINJA.split(text)
    if len(parts) == 1:
        return text == made
    if len(parts) > _PARTS or not ''.join(parts).strip():
        return False
    first, *middle, last = parts
    if not made.startswith(first):
        return False
    place = len(first)
    for part in middle:
        place = made.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return made.endswith(last) and len(made) - len(last) >= place
