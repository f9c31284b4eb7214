# SPDX-License-Identifier: Apache-2.0
"""What came of an execution: its results, or why there are none."""

from collections.abc import Iterable, Mapping
import json
import re
from typing import Any, Final

#: An execution in one of these states will not go on.
FINISHED: Final = frozenset({'SUCCESS', 'ERROR', 'CANCELLED'})

#: Heat keeps 255 characters of a reason, and puts some words before it.
REASON_LIMIT: Final = 180

_LEAD: Final = re.compile(r'^Failure caused by error in tasks: [^\n]*\n+\s*')
# What follows was said above, or is for those who debug Mistral.
_MORE: Final = re.compile(r'\n\s+\[|Traceback \(most recent call last\)')
_IDS: Final = re.compile(r'\w+_ex_id=[0-9a-f-]{36}(, )?')
_RAISED: Final = re.compile(
    r"The action raised an exception \[.*?msg='(.*?)'(?:, [^']*)?\]", re.DOTALL
)
_NOT_RUN: Final = re.compile(
    r'Failed to run task \[error=(.*), wf=[^,]*, task=([^\]]*)\]:?', re.DOTALL
)
_EMPTY: Final = re.compile(r'\[[\s,]*\]\s*')


def reason(state: str, info: str | None, limit: int = REASON_LIMIT) -> str:
    """Say in a line why an execution did not succeed.

    :param state: of the execution.
    :param info: its ``state_info``: lines on lines, the first task first.
    """
    text = _LEAD.sub('', info or '')
    text = _MORE.split(text, maxsplit=1)[0]
    text = _RAISED.sub(r'\1', text)
    text = _NOT_RUN.sub(r'\2 -> \1', text)
    text = _EMPTY.sub('', _IDS.sub('', text))
    text = ' '.join(text.split()).rstrip(':')
    if not text:
        text = 'no reason is given'
    if len(text) > limit:
        text = text[: limit - 1].rstrip() + '…'
    return f'{state}: {text}'


def mapping(value: Any) -> dict[str, Any]:
    """Read a map that Mistral sends as a text of JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except ValueError:
            return {}
    return dict(value) if isinstance(value, Mapping) else {}


def published(
    tasks: Iterable[Mapping[str, Any]], everywhere: Any = None
) -> dict[str, Any]:
    """Return the variables that tasks have published, the latest of each.

    :param tasks: the task executions, in any order.
    :param everywhere: what was published to all branches.
    """
    found: dict[str, Any] = {}
    for task in sorted(tasks, key=lambda one: str(one.get('updated_at'))):
        found.update(mapping(task.get('published')))
    found.update(mapping(everywhere))
    return found
