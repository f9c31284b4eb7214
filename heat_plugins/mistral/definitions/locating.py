# SPDX-License-Identifier: Apache-2.0
"""Find the place of an error that Mistral reports.

Mistral says that a definition is invalid, but rarely where. So it validates
smaller and smaller parts, until the workflow and the task are known, and with
them the line.
"""

from collections.abc import Callable, Iterable
import dataclasses
import itertools
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import renaming

#: Asks Mistral: given a text and whether it is a workbook, returns what is
#: wrong with it, or None.
Ask = Callable[[str, bool], str | None]

_INSTANCE: Final = re.compile(r'^On instance((?:\[[^\]\n]+\])+):', re.M)
_STEP: Final = re.compile(r"\[(?:'([^']*)'|(\d{1,9}))\]")
_TASK: Final = re.compile(r'\btask_name=(\w+)')

#: A task that a part of a workflow leads to, and that is not in it.
_STUB: Final = {'action': 'std.noop'}

#: What other keys of a task depend on.
_MADE_OF: Final = ('action', 'workflow', 'with-items')

_LENGTH: Final = 300

# Steps of a path that Mistral names.
_STEPS: Final = bounds.DEPTH

# Requests to Mistral to find the workflow that it refuses.
_ASKED: Final = 50


def locate(
    definition: definition_reading.Definition, ask: Ask
) -> list[definition_reading.DefinitionProblem]:
    """Return the errors that Mistral reports, with their places."""
    answer = ask(_whole(definition), definition.workbook)
    if answer is None:
        return []
    workflows = itertools.islice(definition.workflows.values(), _ASKED)
    for workflow in workflows:
        if refusal := ask(_text({workflow.name: workflow.data}), False):
            return [_in_workflow(definition, workflow, refusal, ask)]
    return [_problem(definition, answer, ())]


def _in_workflow(
    definition: definition_reading.Definition,
    workflow: definition_reading.DefinedWorkflow,
    refusal: str,
    ask: Ask,
) -> definition_reading.DefinitionProblem:
    path = definition.workflow_path(workflow.name)
    tasks = workflow.data['tasks']
    named = _TASK.search(refusal)
    if named and named.group(1) in tasks:
        task = named.group(1)
        where = (*path, 'tasks', task)
        return _problem(definition, refusal, where, workflow.name, task)
    suspects = list(tasks)
    culprit = None
    while suspects:
        half = suspects[: (len(suspects) + 1) // 2]
        if answer := ask(_part(workflow, half), False):
            if len(half) == 1:
                culprit = half[0]
                refusal = answer
                break
            suspects = half
        elif len(suspects) == 1:
            break
        else:
            suspects = suspects[len(half) :]
    if culprit is None:
        return _problem(definition, refusal, path, workflow.name)
    where = (*path, 'tasks', culprit)
    key = None if _INSTANCE.search(refusal) else _key(workflow, culprit, ask)
    return _problem(
        definition, refusal, where, workflow.name, str(culprit), key
    )


def _key(
    workflow: definition_reading.DefinedWorkflow, task: str, ask: Ask
) -> str | None:
    """Return the key that Mistral rejects in addition to the required ones."""
    content = workflow.data['tasks'][task]
    made_of = [key for key in _MADE_OF if key in content]
    for key in (*made_of, *(key for key in content if key not in made_of)):
        needed = made_of[: made_of.index(key)] if key in made_of else made_of
        kept = {part: content[part] for part in (*needed, key)}
        alone = dataclasses.replace(workflow, data={'tasks': {task: kept}})
        if ask(_part(alone, [task]), False):
            return str(key)
    return None


def _part(
    workflow: definition_reading.DefinedWorkflow, tasks: Iterable[Any]
) -> str:
    """Write a workflow with only some of its tasks."""
    part: dict[str, Any] = {}
    for name in tasks:
        content = dict(workflow.data['tasks'][name])
        # It counts what leads to the task, and that may be elsewhere.
        content.pop('join', None)
        part[name] = content
    for content in list(part.values()):
        for clause in (*definition_checking.CLAUSES, 'requires'):
            for target, _ in definition_reading.targets(content.get(clause)):
                part.setdefault(target, _STUB)
    if workflow.type == 'direct':
        # In a ring of tasks none would be the first.
        part['the_first_of_a_part'] = _STUB
    reduced = {'type': workflow.type, 'tasks': part}
    return _text({workflow.name: reduced})


def _problem(
    definition: definition_reading.Definition,
    refusal: str,
    path: definition_reading.Path,
    workflow: str | None = None,
    task: str | None = None,
    key: str | None = None,
) -> definition_reading.DefinitionProblem:
    within: list[str | int] = [] if key is None else [key]
    if match := _INSTANCE.search(refusal):
        steps = itertools.islice(_STEP.finditer(match[1]), _STEPS)
        within += [int(step[2]) if step[2] else step[1] for step in steps]
    message = bounds.cut(refusal).partition('\n\nFailed validating')[0]
    message = ' '.join(message.removeprefix('Invalid DSL: ').split())
    message = bounds.shortened(message, _LENGTH)
    if within:
        place = '.'.join(str(step) for step in within)
        message = f'{bounds.shortened(place)}: {message}'
    return definition_reading.DefinitionProblem(
        message=f'Mistral says: {message}',
        workflow=workflow,
        task=task,
        line=definition.line((*path, *within)),
    )


def _whole(definition: definition_reading.Definition) -> str:
    if definition.workbook:
        return renaming.render_book(definition, definition.book or 'workbook')
    return renaming.render(
        definition, {name: name for name in definition.workflows}
    )


def _text(workflows: dict[str, Any]) -> str:
    return renaming.dump({'version': renaming.VERSION, **workflows})
