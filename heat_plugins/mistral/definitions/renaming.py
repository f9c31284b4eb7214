# SPDX-License-Identifier: Apache-2.0
"""Replace the names in the text of a definition for Mistral.

Comments and layout stay; only names change, and inputs get defaults. Calls
between the workflows of one definition change with them. Names that an
expression gives while a workflow runs stay.
"""

from collections.abc import Collection, Iterator, Mapping
import copy
import json
from typing import Any, Final

import yaml

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_reading

VERSION: Final = '2.0'

_Edit = tuple[int, int, str]

_NONE: Final[Mapping[str, Any]] = {}


def render(
    definition: definition_reading.Definition,
    names: Mapping[str, str],
    only: Collection[str] | None = None,
    defaults: Mapping[str, Any] = _NONE,
) -> str:
    """Return a definition of workflows under their new names.

    :param names: name in Mistral by name in the definition.
    :param only: the workflows to include, by name in the definition.
    :param defaults: of inputs, for the workflows that declare them.
    """
    chosen = set(definition.workflows if only is None else only)
    taken = [name for name in definition.workflows if name in chosen]
    wanted: dict[str, Any] = {'version': VERSION}
    for name in taken:
        data = copy.deepcopy(definition.workflows[name].data)
        for task in _tasks(data):
            _rename_call(task, names)
        if inputs := _inputs(data, defaults):
            data['input'] = inputs
        wanted[names[name]] = data
    pieces = [f"version: '{VERSION}'\n"]
    for key, value in definition.root.value:
        if key.value in chosen and key.value in definition.workflows:
            edits = [_replace(key, names[key.value])]
            edits += _call_edits(value, names)
            edits += _input_edits(
                value, definition.workflows[key.value].data, defaults
            )
            piece = _edited(
                definition.text,
                key.start_mark.index,
                value.end_mark.index,
                edits,
            )
            pieces.append(piece.rstrip() + '\n')
    return _faithful('\n'.join(pieces), wanted)


def render_book(
    definition: definition_reading.Definition,
    name: str,
    defaults: Mapping[str, Any] = _NONE,
) -> str:
    """Return a workbook under its new name.

    Inside of it Mistral looks up short names in the workbook first, so only
    calls that name the workbook itself are changed.
    """
    names = {}
    if definition.book:
        members = [*definition.workflows, *definition.actions]
        names = {
            f'{definition.book}.{member}': f'{name}.{member}'
            for member in members
        }
    wanted: dict[str, Any] = {'name': name, 'version': VERSION}
    wanted |= {
        key: value
        for key, value in copy.deepcopy(dict(definition.data)).items()
        if key not in wanted
    }
    for workflow in wanted['workflows'].values():
        if inputs := _inputs(workflow, defaults):
            workflow['input'] = inputs
        for task in _tasks(workflow):
            _rename_call(task, names, 'workflow')
            _rename_call(task, names, 'action')
    # Mistral cuts the pieces that it shows out of the text, and finds them
    # in one form only. PyYAML writes it.
    return dump(wanted)


def dump(data: Mapping[str, Any]) -> str:
    """Write YAML as Mistral reads it.

    :raises DefinitionError: it is nested too deeply.
    """
    try:
        bounds.check_depth(data)
    except bounds.TooDeep as exc:
        problem = definition_reading.DefinitionProblem(
            message=f'the definition: {exc}'
        )
        raise definition_reading.DefinitionError([problem]) from exc
    return str(
        yaml.dump(
            dict(data),
            Dumper=_WorkflowDumper,
            sort_keys=False,
            allow_unicode=True,
            default_flow_style=False,
        )
    )


class _WorkflowDumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes no anchors: Mistral has none."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _tasks(data: object) -> Iterator[dict[str, Any]]:
    tasks = data.get('tasks') if isinstance(data, dict) else None
    if isinstance(tasks, dict):
        yield from (task for task in tasks.values() if isinstance(task, dict))


def _renamed(command: object, names: Mapping[str, str]) -> str | None:
    """Return the `workflow` of a task with its new name, or None."""
    name = definition_reading.called(command)
    if name is None or name not in names or not isinstance(command, str):
        return None
    return names[name] + command[len(name) :]


def _rename_call(
    task: dict[str, Any], names: Mapping[str, str], key: str = 'workflow'
) -> None:
    if new := _renamed(task.get(key), names):
        task[key] = new


def _call_edits(
    workflow: yaml.Node, names: Mapping[str, str]
) -> Iterator[_Edit]:
    tasks = definition_reading.child(workflow, 'tasks')
    if tasks is None or not isinstance(tasks[1], yaml.MappingNode):
        return
    for _, task in tasks[1].value:
        call = definition_reading.child(task, 'workflow')
        if (
            call is not None
            and isinstance(call[1], yaml.ScalarNode)
            and (new := _renamed(call[1].value, names))
        ):
            yield _replace(call[1], new)


def _inputs(data: object, defaults: Mapping[str, Any]) -> list[Any] | None:
    """Return the declared inputs with defaults; None if nothing changes."""
    declared = data.get('input') if isinstance(data, dict) else None
    if not isinstance(declared, list):
        return None
    inputs: list[Any] = []
    for declaration in declared:
        name = (
            str(next(iter(declaration), ''))
            if isinstance(declaration, dict)
            else str(declaration)
        )
        inputs.append(
            {name: defaults[name]} if name in defaults else declaration
        )
    return None if inputs == declared else inputs


def _input_edits(
    workflow: yaml.Node, data: object, defaults: Mapping[str, Any]
) -> Iterator[_Edit]:
    inputs = _inputs(data, defaults)
    if inputs and (pair := definition_reading.child(workflow, 'input')):
        text = json.dumps(inputs, ensure_ascii=False)
        yield pair[0].end_mark.index, _end(pair[1]), f': {text}'


def _end(node: yaml.Node) -> int:
    """Return where a node ends; a block extends to the next token."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return int(node.end_mark.index)


def _replace(node: yaml.Node, new: str) -> _Edit:
    text = json.dumps(new, ensure_ascii=False)
    if getattr(node, 'style', None) in ('|', '>'):
        # Such a text ends where the next token begins.
        text += '\n'
    return node.start_mark.index, node.end_mark.index, text


def _edited(text: str, start: int, end: int, edits: list[_Edit]) -> str:
    pieces = []
    for first, last, new in sorted(edits):
        pieces += [text[start:first], new]
        start = last
    return ''.join([*pieces, text[start:end]])


def _faithful(text: str, wanted: Mapping[str, Any]) -> str:
    """Return the text if it reads back as the content, else PyYAML's form.

    Some forms of YAML, such as ``? key``, cannot be cut out of a text.
    """
    try:
        if definition_reading.load(text)[1] == wanted:
            return text
    except definition_reading.DefinitionError:
        pass
    return dump(wanted)
