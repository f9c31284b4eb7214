# SPDX-License-Identifier: Apache-2.0
"""What services have logged about a test that fails, and how to repeat it."""

from collections.abc import Iterator
import os
import pathlib
import re
import sys

from tests.functional import base

#: At most so many lines of each service's log are shown.
LINES = 60

_TROUBLE = re.compile(r' (?:WARNING|ERROR|CRITICAL) |^Traceback ')
#: How a line of a log begins; what follows without it belongs to that line.
_ENTRY = re.compile(r'^\d{4}-\d\d-\d\d ')

#: The clouds that run, and how long their logs were as the test began.
clouds: list[base.Cloud] = []
_sizes: dict[pathlib.Path, int] = {}


def begin() -> None:
    """Remember how long the logs are: a test begins."""
    _sizes.clear()
    for log in _logs():
        _sizes[log] = log.stat().st_size


def _logs() -> Iterator[pathlib.Path]:
    for cloud in clouds:
        yield from sorted((cloud.path / 'logs').glob('*.log'))


def sections(stacks: list[base.Stack]) -> Iterator[tuple[str, str]]:
    """Return a title and lines for each service that has logged something.

    :param stacks: those of the test; warnings and errors are shown, too.
    """
    names = {word for stack in stacks for word in (stack.id, stack.name)}
    about = re.compile(
        '|'.join(rf'\b{re.escape(word)}\b' for word in names) or '(?!)'
    )
    for log in _logs():
        with log.open('rb') as stream:
            stream.seek(_sizes.get(log, 0))
            text = stream.read().decode(errors='replace')
        if lines := select(text, about):
            yield f'end of {log}', '\n'.join(lines[-LINES:])


def select(text: str, about: re.Pattern[str]) -> list[str]:
    """Return the lines of a log that matter, with those that go with them."""
    lines = []
    wanted = False
    for line in text.splitlines():
        matters = bool(about.search(line) or _TROUBLE.search(line))
        wanted = matters or (wanted and not _ENTRY.match(line))
        if wanted:
            lines.append(line)
    return lines


def command(nodeid: str) -> str:
    """Return what runs a test alone."""
    settings = ''.join(
        f'{name}={os.environ[name]} '
        for name in ('FUNCTIONAL_PROFILE', 'FUNCTIONAL_STORE')
        if name in os.environ
    )
    return f"{settings}{sys.executable} -m pytest '{nodeid}'"
