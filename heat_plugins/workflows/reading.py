# SPDX-License-Identifier: Apache-2.0
"""Read a definition the way Mistral does, and keep the line numbers."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import re
from typing import Any, Final

import yaml

from heat_plugins.workflows import findings

#: What stands for the value of an input that has no default.
REQUIRED: Final = object()

#: The words that Mistral takes for a task in on-success and its like.
COMMANDS: Final = frozenset({'noop', 'fail', 'succeed', 'pause'})

_EXPRESSION: Final = re.compile(r'<%.*?%>|\{\{.*?\}\}|\{%.*?%\}', re.DOTALL)
_COMMAND: Final = re.compile(r'^[\w.]+[^=(\s"]*')

Path = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Takes ``&``, ``*`` and ``@`` for text, as Mistral's own loader does.

    So no text can blow up by way of its anchors, and none is read here
    with an alias in it that would be plain text there.
    """

    def fetch_anchor(self) -> None:
        self.fetch_plain()

    def fetch_alias(self) -> None:
        self.fetch_plain()

    def check_plain(self) -> bool:
        return self.peek() == '@' or bool(super().check_plain())


def _whole_number(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    value: int = loader.construct_yaml_int(node)
    # A ValueError where it has more digits than Python writes.
    str(value)
    return value


_Loader.add_constructor('tag:yaml.org,2002:int', _whole_number)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workflow:
    """One workflow of a definition.

    :ivar name: as the definition has it.
    :ivar inputs: by name, the default or REQUIRED.
    :ivar data: its content; whatever the text says.
    """

    name: str
    type: str
    inputs: Mapping[str, Any]
    data: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Definition:
    """A text that has been read.

    :ivar workbook: whether it is a workbook.
    :ivar book: the name that a workbook gives itself.
    :ivar workflows: by name, in the order of the text.
    :ivar actions: the names of a workbook's ad-hoc actions.
    :ivar data: the whole content.
    """

    text: str
    workbook: bool
    book: str | None
    workflows: Mapping[str, Workflow]
    actions: tuple[str, ...]
    data: Mapping[str, Any]
    root: yaml.Node = dataclasses.field(repr=False, compare=False)

    def node(self, path: Path) -> yaml.Node | None:
        """Return the node at a path, None if there is no such."""
        pair = self.pair(path)
        return pair[1] if pair else None

    def line(self, path: Path) -> int | None:
        """Return the line of what a path leads to, or of what is nearest."""
        while path:
            if found := self.pair(path):
                return int(found[0].start_mark.line) + 1
            path = path[:-1]
        return None

    def workflow_path(self, workflow: str) -> Path:
        return ('workflows', workflow) if self.workbook else (workflow,)

    def task_path(self, workflow: str, task: str) -> Path:
        return (*self.workflow_path(workflow), 'tasks', task)

    def pair(self, path: Path) -> tuple[yaml.Node, yaml.Node] | None:
        """Return the nodes of the key and the value at a path."""
        found = (self.root, self.root)
        for step in path:
            node = found[1]
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == step:
                        found = (key, value)
                        break
                else:
                    return None
            elif isinstance(node, yaml.SequenceNode):
                if not isinstance(step, int) or step >= len(node.value):
                    return None
                found = (node.value[step], node.value[step])
            else:
                return None
        return found


def read(text: str) -> Definition:
    """Read a definition.

    :raises DefinitionError: if it is not YAML, has two things of one name,
        or is no list of workflows and no workbook.
    """
    root, data = load(text)
    if twice := list(_doubles(root)):
        raise findings.DefinitionError(twice)
    if not isinstance(data, dict) or not data:
        raise _error(
            'the definition is not a map of workflows, such as '
            '"version: \'2.0\'" followed by "name:" with its "tasks:"'
        )
    for key in root.value:
        if not isinstance(data, dict) or key[0].tag.endswith(':str'):
            continue
        raise _error(
            f'"{key[0].value}" is no text to YAML, so it cannot be a name; '
            'put it in quotes',
            key[0],
        )
    workbook = _is_workbook(data)
    if workbook:
        items = data.get('workflows')
        if not isinstance(items, dict) or not items.keys() - {'version'}:
            raise _error('the workbook has no workflows')
    else:
        items = data
    workflows = {
        str(name): _workflow(str(name), content)
        for name, content in items.items()
        if name != 'version'
    }
    if not workflows:
        raise _error('there is no workflow in the definition')
    actions = data.get('actions') if workbook else None
    book = data.get('name') if workbook else None
    return Definition(
        text=text,
        workbook=workbook,
        book=book if isinstance(book, str) else None,
        workflows=workflows,
        actions=tuple(
            str(name)
            for name in (actions if isinstance(actions, dict) else ())
            if name != 'version'
        ),
        data=data,
        root=root,
    )


def load(text: str) -> tuple[yaml.Node, Any]:
    """Return the nodes and the content of a text, as Mistral reads it.

    :raises DefinitionError: if it is not YAML.
    """
    loader: Any = None
    try:
        # It looks for characters that YAML does not know.
        loader = _Loader(text)
        node = loader.get_single_node()
        data = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ', '.join(
            part for part in (error.context, error.problem) if part
        )
        raise findings.DefinitionError(
            [
                findings.Problem(
                    message=f'this is not valid YAML: {said}',
                    line=None if mark is None else int(mark.line) + 1,
                )
            ]
        ) from error
    except RecursionError as error:
        raise _error('the definition is nested too deeply') from error
    # Such as the 31st of February: a ValueError. A tab is no character for
    # YAML: a YAMLError without a mark.
    except (yaml.YAMLError, ValueError) as error:
        said = ' '.join(str(error).split())
        raise _error(f'this is not valid YAML: {said}') from error
    # What comes of "!!bool x" and "!!timestamp x".
    except (AttributeError, LookupError) as error:
        raise _error(
            'this is not valid YAML: something is not what its tag, such as '
            '"!!int", says'
        ) from error
    finally:
        if loader is not None:
            loader.dispose()
    return node, data


def called(command: object) -> str | None:
    """Return the name in the ``workflow`` or ``action`` of a task.

    ``sub x=1`` calls ``sub``. None is returned for what is no text, and for
    a name that an expression makes up while the workflow runs.
    """
    if not isinstance(command, str):
        return None
    if ' ' not in command:
        name = command
    else:
        match = _COMMAND.match(command)
        name = match.group() if match else ''
    # One may also begin in the middle of the name.
    return name if name and not re.search(r'<%|\{[{%]', name) else None


def is_expression(text: object) -> bool:
    """Return whether there is YAQL or Jinja in a text."""
    return isinstance(text, str) and bool(_EXPRESSION.search(text))


def targets(clause: object) -> Iterator[tuple[str, Path]]:
    """Return the tasks that an ``on-…`` clause leads to, and where.

    The path is from the clause on. Engine commands are left out, and so is
    what has no form that Mistral knows.
    """
    if isinstance(clause, str):
        match = _COMMAND.match(clause)
        name = match.group() if match else clause
        if name not in COMMANDS and not is_expression(clause):
            yield name, ()
    elif isinstance(clause, Mapping):
        if clause.keys() & {'publish', 'next'}:
            for name, path in targets(clause.get('next')):
                yield name, ('next', *path)
        else:
            for key in clause:
                for name, path in targets(key):
                    yield name, (key, *path)
    elif isinstance(clause, Sequence):
        for number, one in enumerate(clause):
            for name, path in targets(one):
                yield name, (number, *path)


def _is_workbook(data: Mapping[str, Any]) -> bool:
    """Tell a workbook from workflows, one of which may be `workflows`."""
    found = data.get('workflows', data.get('actions'))
    if isinstance(found, dict) and isinstance(found.get('tasks'), dict):
        return 'tasks' in found['tasks']
    return 'workflows' in data or 'actions' in data


def _workflow(name: str, content: Any) -> Workflow:
    said = content if isinstance(content, dict) else {}
    inputs: dict[str, Any] = {}
    declared = said.get('input')
    for one in declared if isinstance(declared, list) else ():
        if isinstance(one, dict):
            inputs.update({str(key): value for key, value in one.items()})
        else:
            inputs[str(one)] = REQUIRED
    return Workflow(
        name=name,
        type=str(said.get('type', 'direct')),
        inputs=inputs,
        data=content,
    )


def _doubles(node: yaml.Node, path: Path = ()) -> Iterator[findings.Problem]:
    """Find keys that stand twice; YAML would keep the last one only."""
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = int(key.start_mark.line) + 1
                if key.value in lines:
                    yield findings.Problem(
                        message=f'{_kind(path)} "{key.value}" is there '
                        f'twice, also on line {lines[key.value]}',
                        line=line,
                    )
                lines.setdefault(key.value, line)
                yield from _doubles(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for number, one in enumerate(node.value):
            yield from _doubles(one, (*path, number))


def _kind(path: Path) -> str:
    if path in ((), ('workflows',)):
        return 'the workflow'
    if path[-1] == 'tasks' and len(path) in (2, 3):
        return 'the task'
    return 'the key'


def _error(
    message: str, node: yaml.Node | None = None
) -> findings.DefinitionError:
    line = None if node is None else int(node.start_mark.line) + 1
    return findings.DefinitionError(
        [findings.Problem(message=message, line=line)]
    )
