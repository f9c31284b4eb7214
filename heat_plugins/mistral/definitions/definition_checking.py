# SPDX-License-Identifier: Apache-2.0
"""Find mistakes in a definition: without Mistral, and what Mistral reports.

Mistral's own validation names neither the workflow nor the line, and often not
the task; and Mistral may be unreachable. So this module finds the most
frequent mistakes, and leaves all others to Mistral. `locate` finds the place
of those: Mistral validates smaller and smaller parts, until the workflow and
the task are known, and with them the line.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
import dataclasses
import itertools
import re
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import renaming

WORKFLOW_KEYS: Final = frozenset(
    {
        'description',
        'input',
        'name',
        'output',
        'output-on-error',
        'tags',
        'task-defaults',
        'tasks',
        'type',
        'vars',
        'version',
    }
)

#: What task-defaults may hold, and a task too.
POLICY_KEYS: Final = frozenset(
    {
        'concurrency',
        'fail-on',
        'pause-before',
        'retry',
        'safe-rerun',
        'timeout',
        'wait-after',
        'wait-before',
    }
)

CLAUSES: Final = ('on-complete', 'on-error', 'on-skip', 'on-success')

TASK_KEYS: Final = POLICY_KEYS | {
    'action',
    'description',
    'input',
    'keep-result',
    'name',
    'publish',
    'publish-on-error',
    'publish-on-skip',
    'tags',
    'target',
    'type',
    'version',
    'with-items',
    'workflow',
}

#: What only one type of workflow knows.
TYPED_KEYS: Final = {
    'direct': frozenset({*CLAUSES, 'join'}),
    'reverse': frozenset({'requires'}),
}

_HALF: Final = re.compile('[\ud800-\udfff]')

_MOVED: Final = {
    'policies': 'its entries stand in the task itself since version 2',
    'start-task': 'a reverse workflow is given task_name when it is started',
    'parameters': 'it is called "input" since version 2',
}


def check(
    definition: definition_reading.Definition,
) -> list[definition_reading.DefinitionProblem]:
    """Return the problems of a definition, in its order.

    It stops at one problem more than an error lists.
    """
    problems = itertools.chain(
        _version(definition),
        *(
            _Checker(definition, workflow).check()
            for workflow in definition.workflows.values()
        ),
    )
    return list(itertools.islice(problems, bounds.LISTED + 1))


def _version(
    definition: definition_reading.Definition,
) -> Iterator[definition_reading.DefinitionProblem]:
    version = definition.data.get('version', '2.0')
    try:
        known = float(version) == 2.0
    except (OverflowError, TypeError, ValueError):
        known = False
    if not known:
        yield definition_reading.DefinitionProblem(
            message='Mistral supports only version 2.0 of its language, not '
            f'"{bounds.shortened(str(version))}"',
            line=definition.line(('version',)),
        )


class _Checker:
    """Checks one workflow."""

    def __init__(
        self,
        definition: definition_reading.Definition,
        workflow: definition_reading.DefinedWorkflow,
    ) -> None:
        self._definition = definition
        self._workflow = workflow
        self._path = definition.workflow_path(workflow.name)

    def check(self) -> Iterator[definition_reading.DefinitionProblem]:
        name, data = self._workflow.name, self._workflow.data
        if len(name) > 255:
            yield self._problem('its name has more than 255 characters')
        if _HALF.search(name):
            yield self._problem(
                'its name has an incomplete character; write the character '
                'itself, not two "\\u"'
            )
        if not isinstance(data, dict):
            yield self._problem('a workflow must be a map with "tasks:"')
            return
        yield from self._unknown(data, WORKFLOW_KEYS, ())
        if self._workflow.type not in TYPED_KEYS:
            yield self._problem(
                'its type must be "direct" or "reverse", not '
                f'"{bounds.shortened(self._workflow.type)}"',
                'type',
            )
            return
        tasks = data.get('tasks')
        if not isinstance(tasks, dict) or not tasks:
            yield self._problem('it has no tasks', 'tasks')
            return
        for task, content in tasks.items():
            yield from self._task(str(task), content, tasks)
        defaults = data.get('task-defaults')
        if isinstance(defaults, dict):
            known = POLICY_KEYS | {*CLAUSES, 'requires'}
            known |= {'name', 'version', 'description', 'tags'}
            yield from self._unknown(defaults, known, ('task-defaults',))
            yield from self._clauses(None, defaults, tasks, 'task-defaults')

    def _task(
        self, task: str, content: Any, tasks: Collection[str]
    ) -> Iterator[definition_reading.DefinitionProblem]:
        if not isinstance(content, dict) or not content:
            yield self._problem(
                'a task must be a map with an "action:" or "workflow:"',
                'tasks',
                task,
                task=task,
            )
            return
        mine = TYPED_KEYS[self._workflow.type]
        for key in content.keys() - mine:
            for kind, keys in TYPED_KEYS.items():
                if key in keys:
                    yield self._problem(
                        f'"{key}" works only in a {kind} workflow, and this '
                        f'one is {self._workflow.type}',
                        *('tasks', task, key),
                        task=task,
                    )
        known = TASK_KEYS.union(*TYPED_KEYS.values())
        yield from self._unknown(content, known, ('tasks', task), task)
        if 'action' in content and 'workflow' in content:
            yield self._problem(
                'a task needs either an "action" or a "workflow"',
                *('tasks', task, 'workflow'),
                task=task,
            )
        yield from self._join(task, content.get('join', 'all'))
        yield from self._clauses(task, content, tasks, 'tasks', task)

    def _join(
        self, task: str, join: Any
    ) -> Iterator[definition_reading.DefinitionProblem]:
        # Mistral's answer names no task.
        number = isinstance(join, int) and not isinstance(join, bool)
        if join not in ('all', 'one') and not (number and join > 0):
            yield self._problem(
                'join must be "all", "one" or the number of tasks to wait '
                f'for, not {bounds.shortened(repr(join))}',
                *('tasks', task, 'join'),
                task=task,
            )

    def _clauses(
        self,
        task: str | None,
        content: dict[str, Any],
        tasks: Collection[str],
        *path: str,
    ) -> Iterator[definition_reading.DefinitionProblem]:
        """Check that the tasks which clauses name exist."""
        direct = self._workflow.type == 'direct'
        for clause in CLAUSES if direct else ('requires',):
            for target, where in definition_reading.targets(
                content.get(clause)
            ):
                if target not in tasks:
                    yield self._problem(
                        f'{clause} names the task '
                        f'"{bounds.shortened(target)}", which does not '
                        f'exist{_perhaps(target, tasks)}',
                        *(*path, clause, *where),
                        task=task,
                    )

    def _unknown(
        self,
        content: dict[str, Any],
        known: Collection[str],
        path: definition_reading.Path,
        task: str | None = None,
    ) -> Iterator[definition_reading.DefinitionProblem]:
        for key in content:
            if key in known:
                continue
            hint = _perhaps(str(key), known)
            if key in _MOVED:
                hint = f': {_MOVED[key]}'
            yield self._problem(
                f'Mistral does not know "{bounds.shortened(str(key))}" '
                f'here{hint}',
                *(*path, key),
                task=task,
            )

    def _problem(
        self, message: str, *path: str | int, task: str | None = None
    ) -> definition_reading.DefinitionProblem:
        return definition_reading.DefinitionProblem(
            message=message,
            workflow=self._workflow.name,
            task=task,
            line=self._definition.line((*self._path, *path)),
        )


def _perhaps(name: str, known: Collection[str]) -> str:
    texts = [candidate for candidate in known if isinstance(candidate, str)]
    near = bounds.closest(name.replace('_', '-'), texts)
    near = near or bounds.closest(name, texts)
    return f'; did you mean "{near}"?' if near else ''


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
        for clause in (*CLAUSES, 'requires'):
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
