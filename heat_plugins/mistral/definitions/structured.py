# SPDX-License-Identifier: Apache-2.0
"""Write a definition from the properties that Heat's class has for one.

They have Mistral's words with underscores, and values that Heat has made
plain: a number may come as a text.
"""

import collections
from collections.abc import Mapping
import re
from typing import Any, Final

from heat_plugins.mistral.definitions import renaming

_NUMBERS: Final = frozenset(
    {'concurrency', 'count', 'delay', 'timeout', 'wait_after', 'wait_before'}
)
_WORDS: Final = {'true': True, 'false': False}
_SWITCHES: Final = frozenset(
    {'fail_on', 'keep_result', 'pause_before', 'safe_rerun'}
)


def definition(name: str, properties: Mapping[str, Any]) -> str:
    """Return the text of a definition of one workflow.

    :param properties: ``type``, ``tasks`` and so on; None is not said.
    """
    workflow: dict[str, Any] = {}
    for key in ('type', 'description', 'tags', 'output', 'output_on_error'):
        if properties.get(key) is not None:
            workflow[_word(key)] = properties[key]
    if properties.get('vars'):
        workflow['vars'] = properties['vars']
    if properties.get('input'):
        # With their values, so that other callers of the workflow, such as
        # a cron trigger, get the same ones.
        workflow['input'] = [
            {key: value} for key, value in properties['input'].items()
        ]
    if defaults := _policies(properties.get('task_defaults') or {}):
        workflow['task-defaults'] = defaults
    tasks: dict[str, Any] = {}
    for task in properties.get('tasks') or ():
        said = {key: task[key] for key in task if key != 'policies'}
        said |= task.get('policies') or {}
        tasks[task['name']] = _policies(said)
    workflow['tasks'] = tasks
    return renaming.dump({'version': renaming.VERSION, name: workflow})


def doubles(properties: Mapping[str, Any]) -> list[str]:
    """Return the names of tasks that are there more than once."""
    tasks = properties.get('tasks') or ()
    counted = collections.Counter(str(task.get('name')) for task in tasks)
    return sorted(name for name, count in counted.items() if count > 1)


def _policies(said: Mapping[str, Any]) -> dict[str, Any]:
    return {
        _word(key): _value(key, value)
        for key, value in said.items()
        if key != 'name' and value is not None and value not in ([], {})
    }


def _value(key: str, value: Any) -> Any:
    if key == 'retry' and isinstance(value, Mapping):
        return {
            _word(name): _value(name, one)
            for name, one in value.items()
            if one is not None
        }
    if not isinstance(value, str):
        return value
    if key in _SWITCHES:
        return _WORDS.get(value.lower(), value)
    if (key in _NUMBERS or key == 'join') and re.fullmatch(r'\d+', value):
        return int(value)
    return value


def _word(key: str) -> str:
    return key.replace('_', '-')
