# SPDX-License-Identifier: Apache-2.0
"""The outcome of an execution: its results, or the reason of its failure."""

from collections.abc import Iterable, Mapping
import re
from typing import Any, Final

from heat_plugins import bounds

#: The final states of an execution.
FINISHED: Final = frozenset({'SUCCESS', 'ERROR', 'CANCELLED'})

#: Heat keeps 255 characters of a reason, and puts some words before it.
REASON_LIMIT: Final = 180

_LEAD: Final = 'Failure caused by error in tasks: '
_TRACE: Final = 'Traceback (most recent call last)'
_RAISED: Final = 'The action raised an exception ['
_MESSAGE: Final = "msg='"
_NOT_RUN: Final = 'Failed to run task [error='
# The expressions below take at most the square of bounds.TEXT.
_RAISED_END: Final = re.compile(r"'(?:, [^']{0,200})?\]")
_NOT_RUN_END: Final = re.compile(r', wf=[^,]{0,255}, task=([^\]]{0,255})\]:?')
_IDS: Final = re.compile(r'\b\w{1,40}_ex_id=[0-9a-f-]{36}(?:, )?')
_EMPTY: Final = re.compile(r'\[[\s,]*\]\s*')


def reason(state: str, info: str | None, limit: int = REASON_LIMIT) -> str:
    """Return in a line why an execution has failed.

    :param info: its ``state_info``: many lines, the first task first.
    """
    text = info or ''
    if text.startswith(_LEAD):
        text = text.partition('\n')[2].lstrip() or text
    text = _first_part(bounds.cut(text))
    text = _not_run(_raised(text))
    text = _EMPTY.sub('', _IDS.sub('', text))
    text = ' '.join(text.split()).rstrip(':')
    if not text:
        text = 'no reason given'
    if len(text) > limit:
        text = text[: limit - 1].rstrip() + '…'
    return f'{state}: {text}'


def _first_part(text: str) -> str:
    """Leave out repetitions, and lines for Mistral's developers."""
    lines = text.partition(_TRACE)[0].split('\n')
    for number, line in enumerate(lines[1:], 1):
        if line.lstrip().startswith('[') and (
            line[:1].isspace() or not lines[number - 1].strip()
        ):
            return '\n'.join(lines[:number])
    return '\n'.join(lines)


def _raised(text: str) -> str:
    """Replace the exception of each action by its message."""
    first, *others = text.split(_RAISED)
    pieces = [first]
    for piece in others:
        message = piece.partition(_MESSAGE)[2]
        if end := _RAISED_END.search(message):
            piece = message[: end.start()] + message[end.end() :]
        else:
            piece = _RAISED + piece
        pieces.append(piece)
    return ''.join(pieces)


def _not_run(text: str) -> str:
    """Name a task that could not run, and why."""
    before, _, task = text.partition(_NOT_RUN)
    ends = [*_NOT_RUN_END.finditer(task)]
    if not ends:
        return text
    end = ends[-1]
    return f'{before}{end[1]} -> {task[: end.start()]}{task[end.end() :]}'


def mapping(value: Any) -> dict[str, Any]:
    """Read a map that Mistral sends as JSON."""
    if isinstance(value, str):
        try:
            value = bounds.read_json(value) if value else {}
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def published(
    tasks: Iterable[Mapping[str, Any]], everywhere: Any = None
) -> dict[str, Any]:
    """Return the variables that tasks have published, the latest of each.

    :param tasks: the task executions, in any order.
    :param everywhere: variables that were published to all branches.
    """
    variables: dict[str, Any] = {}
    for task in sorted(tasks, key=lambda row: str(row.get('updated_at'))):
        variables.update(mapping(task.get('published')))
    variables.update(mapping(everywhere))
    return variables
