# SPDX-License-Identifier: Apache-2.0
"""Write the definition of a workflow or an ad-hoc action from properties.

The properties of Heat's class have Mistral's words with underscores, and plain
values of Heat: a number may be a text.
"""

import collections
from collections.abc import Mapping
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_reading
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

    :param properties: ``type``, ``tasks`` and so on; None is left out.
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
        spec = {key: task[key] for key in task if key != 'policies'}
        spec |= task.get('policies') or {}
        tasks[task['name']] = _policies(spec)
    workflow['tasks'] = tasks
    return renaming.dump({'version': renaming.VERSION, name: workflow})


def doubles(properties: Mapping[str, Any]) -> list[str]:
    """Return the names that several tasks have."""
    tasks = properties.get('tasks') or ()
    counted = collections.Counter(str(task.get('name')) for task in tasks)
    return sorted(name for name, count in counted.items() if count > 1)


def _policies(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        _word(key): _value(key, value)
        for key, value in spec.items()
        if key != 'name' and value is not None and value not in ([], {})
    }


def _value(key: str, value: Any) -> Any:
    if key == 'retry' and isinstance(value, Mapping):
        return {
            _word(name): _value(name, entry)
            for name, entry in value.items()
            if entry is not None
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


#: The keys of an ad-hoc action in Mistral's language.
ACTION_KEYS: Final = (
    'description',
    'tags',
    'base',
    'base-input',
    'input',
    'output',
)

# The base may be written with arguments: std.echo output="x".
_BASE_NAME: Final = re.compile(r'^\s*([\w.][^=(\s"]*)')


class AdhocError(ValueError):
    """A text does not define one ad-hoc action; the message says why."""


def read_action(text: str) -> dict[str, Any]:
    """Return the definition of the only action in a text.

    :raises AdhocError: it defines none, or several.
    """
    try:
        _, content = definition_reading.load(text)
    except definition_reading.DefinitionError as exc:
        raise AdhocError(f'the definition is not YAML: {exc}') from exc
    if not isinstance(content, Mapping):
        raise AdhocError('the definition must be a map.')
    actions = {k: v for k, v in content.items() if k != 'version'}
    if len(actions) != 1:
        raise AdhocError(
            f'the definition has {len(actions)} actions; a resource can hold '
            'only one.'
        )
    (spec,) = actions.values()
    if not isinstance(spec, Mapping):
        raise AdhocError('the action in the definition must be a map.')
    unknown = sorted(str(key) for key in spec.keys() - {*ACTION_KEYS, 'name'})
    if unknown:
        raise AdhocError(
            f'an ad-hoc action has no key "{bounds.shortened(unknown[0])}"; '
            f'known keys: {", ".join(ACTION_KEYS)}.'
        )
    if not spec.get('base'):
        raise AdhocError('the action in the definition needs a "base".')
    return {str(key): value for key, value in spec.items() if key != 'name'}


def write_action(name: str, spec: Mapping[str, Any]) -> str:
    """Return the definition of an action under a name."""
    wanted = {
        key: spec[key]
        for key in ACTION_KEYS
        if spec.get(key) not in (None, '')
    }
    # The version first, so that mistralclient cannot take the text for a
    # file's name.
    return renaming.dump({'version': renaming.VERSION, name: wanted})


def base_name(spec: Mapping[str, Any]) -> str:
    """Return the name of the base of an ad-hoc action."""
    match = _BASE_NAME.match(str(spec.get('base') or ''))
    return match[1] if match else ''
