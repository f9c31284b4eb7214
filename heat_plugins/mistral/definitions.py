# SPDX-License-Identifier: Apache-2.0
"""Workflows in Mistral's language, version 2: read, name and write them.

Mistral keeps the workflows of a project in one list, so two stacks from one
template need different names: ``<stack>.<resource>.<name in the definition>``,
as far as Mistral's language and its limit allow.
"""

from collections.abc import Collection, Mapping
import copy
import hashlib
import re
from typing import Any, Final, TypeAlias

import yaml

from heat_plugins import bounds
from heat_plugins import yaml_reading

#: A workflow or an action, as its definition has it.
Spec: TypeAlias = dict[str, Any]

#: The value of an input without a default.
REQUIRED: Final = object()

#: The most characters of a name that Mistral takes.
NAME_LIMIT: Final = 255

_DIGITS: Final = 10

# What Heat's schema of a task does not convert, as it may be an expression.
_NUMBERS: Final = frozenset(
    {
        'concurrency',
        'count',
        'delay',
        'join',
        'timeout',
        'wait-after',
        'wait-before',
    }
)
_SWITCHES: Final = frozenset(
    {'fail-on', 'keep-result', 'pause-before', 'safe-rerun'}
)
_WORDS: Final = {'true': True, 'false': False}


class InvalidDefinition(ValueError):
    """A definition cannot be used; the message says why."""


def read(text: str) -> dict[str, Spec]:
    """Return the workflows, or actions, of a definition by name.

    :raises InvalidDefinition: it has no such map, or is a workbook.
    """
    try:
        content = yaml_reading.load(text)
    except yaml_reading.UnreadableYAML as exc:
        raise InvalidDefinition(f'the definition {exc}') from exc
    if not isinstance(content, dict):
        raise InvalidDefinition(
            'the definition must be a map, such as "version: \'2.0\'" '
            'followed by "name:" with its content'
        )
    entries = {
        str(name): entry
        for name, entry in content.items()
        if name != 'version'
    }
    for key in ('workflows', 'actions'):
        entry = entries.get(key)
        if isinstance(entry, dict) and 'tasks' not in entry:
            raise InvalidDefinition(
                'the definition is a workbook, which a stack cannot have: '
                'define each workflow by its name, and each action as an '
                'OS::Mistral::Action'
            )
    if not entries:
        raise InvalidDefinition('the definition is empty')
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise InvalidDefinition(
                f'"{bounds.shortened(name)}" of the definition must be a map'
            )
    return entries


def dump(entries: Mapping[str, Any]) -> str:
    """Write workflows or actions, by name, as Mistral reads them."""
    # The version comes first: mistralclient reads a text that is a path or
    # a URL as that file.
    return str(
        yaml.dump(
            {'version': '2.0', **entries},
            Dumper=_Dumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
        )
    )


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes no anchors: Mistral has none."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def inputs(workflow: Mapping[str, Any]) -> dict[str, Any]:
    """Return the declared inputs of a workflow: the default, or REQUIRED."""
    declared: dict[str, Any] = {}
    written = workflow.get('input')
    for declaration in written if isinstance(written, list) else ():
        if isinstance(declaration, Mapping):
            declared.update(declaration)
        else:
            declared[str(declaration)] = REQUIRED
    return declared


def write(
    workflows: Mapping[str, Spec],
    names: Mapping[str, str],
    defaults: Mapping[str, Any],
    only: Collection[str],
) -> str:
    """Return a definition of workflows under their names in Mistral.

    Calls between the workflows change with the names, except those that an
    expression makes while a workflow runs.

    :param names: name in Mistral by name in the definition.
    :param defaults: of inputs, for the workflows that declare them.
    :param only: names in the definition of the workflows to include.
    """
    entries = {}
    for short in only:
        entries[names[short]] = workflow = copy.deepcopy(workflows[short])
        if declared := inputs(workflow):
            declared.update(
                {key: defaults[key] for key in defaults.keys() & declared}
            )
            workflow['input'] = [
                name if default is REQUIRED else {name: default}
                for name, default in declared.items()
            ]
        tasks = workflow.get('tasks')
        for task in tasks.values() if isinstance(tasks, dict) else ():
            call = task.get('workflow') if isinstance(task, dict) else None
            if isinstance(call, str):
                # A call may carry arguments, such as ``sub x=1``.
                name, *arguments = call.split(maxsplit=1) or ['']
                task['workflow'] = ' '.join(
                    [names.get(name, name), *arguments]
                )
    return dump(entries)


def workflow_names(
    shorts: Collection[str], prefix: str, explicit: str | None
) -> dict[str, str]:
    """Return the name in Mistral for each name in the definition.

    :param explicit: from the template: the name of a single workflow, or the
        prefix of the names of several.
    """
    if explicit and len(shorts) == 1:
        return dict.fromkeys(shorts, explicit)
    return {short: _fit(f'{explicit or prefix}.{short}') for short in shorts}


def _fit(name: str) -> str:
    """Shorten and clean a name; a changed one gets a hash of the original.

    Mistral reads the call of a workflow up to the first blank, bracket or
    equals sign, all of which Heat allows in the name of a resource.
    """
    fitting = re.sub(r'[^\w.-]', '_', name)
    if fitting == name and len(name) <= NAME_LIMIT:
        return name
    digest = hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()
    return f'{fitting[: NAME_LIMIT - _DIGITS - 1]}-{digest[:_DIGITS]}'


def typed(task: Mapping[str, Any]) -> Spec:
    """Return a task of Heat's properties with the types that Mistral wants.

    In Heat's templates a number or a truth value may be a text.
    """
    values: dict[str, Any] = {}
    for key, value in task.items():
        if key == 'retry' and isinstance(value, Mapping):
            hyphenated = {
                name.replace('_', '-'): entry for name, entry in value.items()
            }
            value = typed(hyphenated)
        elif isinstance(value, str) and key in _NUMBERS and value.isdecimal():
            value = int(value)
        elif isinstance(value, str) and key in _SWITCHES:
            value = _WORDS.get(value.lower(), value)
        values[key] = value
    return values
