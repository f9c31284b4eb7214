# SPDX-License-Identifier: Apache-2.0
"""The outcome of an execution: its results, or the reason of its failure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from heat_plugins import bounds

#: The final states of an execution.
FINISHED: Final = frozenset({'SUCCESS', 'ERROR', 'CANCELLED'})

#: Heat keeps 255 characters of a reason, and puts some words before it.
REASON_LIMIT: Final = 150


def reason(state: str, info: str | None, limit: int = REASON_LIMIT) -> str:
    """Return in one line why an execution has failed, as Mistral says it.

    :param info: its ``state_info``, which may have many lines.
    """
    text = ' '.join(bounds.cut(info or 'no reason given').split())
    return f'{state}: {bounds.shortened(text, limit)}'


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
