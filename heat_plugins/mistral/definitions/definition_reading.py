# SPDX-License-Identifier: Apache-2.0
"""Read a definition the way Mistral does, and keep the line numbers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import re
from typing import Any, Final

import yaml

from heat_plugins import bounds


@dataclasses.dataclass(frozen=True, kw_only=True)
class DefinitionProblem:
    """A mistake in a definition.

    :ivar message: the mistake, with the value and the remedy.
    :ivar line: its line, from 1; None where that is not known.
    """

    message: str
    workflow: str | None = None
    task: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        places = []
        if self.workflow is not None:
            places.append(f'workflow "{bounds.shortened(self.workflow)}"')
        if self.task is not None:
            places.append(f'task "{bounds.shortened(self.task)}"')
        if self.line is not None:
            places.append(f'line {self.line}')
        if not places:
            return self.message
        return f'{", ".join(places)}: {self.message}'


class DefinitionError(ValueError):
    """A definition cannot be used.

    :param problems: in the order of the text.
    """

    def __init__(self, problems: Iterable[DefinitionProblem]) -> None:
        super().__init__(bounds.listed(problems, between='; '))


#: The value of an input without a default.
REQUIRED: Final = object()

#: The words that Mistral takes for a task in on-success and its like.
COMMANDS: Final = frozenset({'noop', 'fail', 'succeed', 'pause'})

#: Characters of a definition; Heat takes a template of half a megabyte.
CHARACTERS: Final = 512 * 1024

#: Keys and values of a definition. They, and not the characters, are what
#: takes time: each is read, checked, copied and written several times.
NODES: Final = 20_000

# Characters of what PyYAML says, which may quote the text.
_SAID: Final = 300

#: Digits of a whole number; Python writes no more.
_DIGITS: Final = 4300

#: Levels of an ``on-…`` clause that may name tasks.
_CLAUSE_DEPTH: Final = 5

_EXPRESSIONS: Final = (('<%', '%>'), ('{{', '}}'), ('{%', '%}'))
_COMMAND: Final = re.compile(r'^[\w.]+[^=(\s"]*')

Path = tuple[str | int, ...]

_Pair = tuple[yaml.Node, yaml.Node]


class _DefinitionLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Reads ``&``, ``*`` and ``@`` as text, as Mistral's own loader does.

    So no text grows by its anchors, and no text is an alias here that is plain
    text for Mistral. The loader counts what it reads, and stops at a limit.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._nodes = itertools.count(1)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        if next(self._nodes) > NODES:
            raise yaml.YAMLError(
                f'the definition has more than {NODES} keys and values'
            )
        self._depth += 1
        try:
            self._check_depth(self._depth)
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def fetch_flow_collection_start(self, token: Any) -> None:
        # The scanner looks at all open brackets for each token.
        self._check_depth(self.flow_level + 1)
        super().fetch_flow_collection_start(token)

    def _check_depth(self, depth: int) -> None:
        # The outermost value is no level of its own.
        if depth > bounds.DEPTH + 1:
            raise RecursionError

    def fetch_anchor(self) -> None:
        self.fetch_plain()

    def fetch_alias(self) -> None:
        self.fetch_plain()

    def check_plain(self) -> bool:
        return self.peek() == '@' or bool(super().check_plain())


def _whole_number(loader: yaml.SafeLoader, node: yaml.Node) -> int:
    if len(node.value) > _DIGITS:
        raise ValueError(f'a number has more than {_DIGITS} digits')
    value: int = loader.construct_yaml_int(node)
    # A ValueError where it has more digits than Python writes.
    str(value)
    return value


_DefinitionLoader.add_constructor('tag:yaml.org,2002:int', _whole_number)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DefinedWorkflow:
    """A workflow of a definition.

    :ivar name: its name in the definition.
    :ivar inputs: by name, the default or REQUIRED.
    :ivar data: its content, unchecked.
    """

    name: str
    type: str
    inputs: Mapping[str, Any]
    data: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Definition:
    """A definition that has been read.

    :ivar book: the name that a workbook gives itself.
    :ivar workflows: by name, in the order of the text.
    :ivar actions: the names of a workbook's ad-hoc actions.
    """

    text: str
    workbook: bool
    book: str | None
    workflows: Mapping[str, DefinedWorkflow]
    actions: tuple[str, ...]
    data: Mapping[str, Any]
    root: yaml.Node = dataclasses.field(repr=False, compare=False)

    def line(self, path: Path) -> int | None:
        """Return the line of what a path leads to, or of what is nearest."""
        *_, nearest = self._along(path)
        if nearest[0] is self.root:
            return None
        return int(nearest[0].start_mark.line) + 1

    def workflow_path(self, workflow: str) -> Path:
        return ('workflows', workflow) if self.workbook else (workflow,)

    def _along(self, path: Path) -> Iterator[_Pair]:
        """Yield the root and what the steps lead to, as far as they do."""
        pair = (self.root, self.root)
        yield pair
        for step in path:
            below = child(pair[1], step)
            if below is None:
                return
            pair = below
            yield pair


def child(node: yaml.Node, step: str | int) -> _Pair | None:
    """Return the nodes of the key and the value below a node.

    An item of a list stands for both.
    """
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        for item in node.value[step : step + 1]:
            return item, item
    return None


def read(text: str) -> Definition:
    """Read a definition.

    :raises DefinitionError: it is not YAML, has a name twice, or is neither a
        list of workflows nor a workbook.
    """
    root, data = load(text)
    if twice := list(_doubles(root)):
        raise DefinitionError(twice)
    if not isinstance(data, dict) or not data:
        raise _error(
            'the definition is not a map of workflows, such as '
            '"version: \'2.0\'" followed by "name:" with its "tasks:"'
        )
    for key, _ in root.value:
        if not key.tag.endswith(':str'):
            raise _error(
                f'"{bounds.shortened(str(key.value))}" is not a text in '
                'YAML, so it cannot be a name; put it in quotes',
                key,
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
        raise _error('the definition has no workflow')
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

    :raises DefinitionError: it is not YAML.
    """
    if len(text) > CHARACTERS:
        raise _error(
            f'the definition has {len(text)} characters, and the limit is '
            f'{CHARACTERS}; use several resources'
        )
    loader: Any = None
    try:
        # It looks for characters that YAML does not know.
        loader = _DefinitionLoader(text)
        node = loader.get_single_node()
        data = None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        parts = (error.context, error.problem)
        reason = bounds.shortened(', '.join(filter(None, parts)), _SAID)
        raise DefinitionError(
            [
                DefinitionProblem(
                    message=f'this is not valid YAML: {reason}',
                    line=None if mark is None else int(mark.line) + 1,
                )
            ]
        ) from error
    except RecursionError as error:
        raise _error(
            'the definition is nested too deeply: at most '
            f'{bounds.DEPTH} levels are read'
        ) from error
    # Such as the 31st of February: a ValueError. A tab is no character for
    # YAML: a YAMLError without a mark.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = bounds.shortened(' '.join(str(error).split()), _SAID)
        raise _error(f'this is not valid YAML: {reason}') from error
    # "!!bool x" and "!!timestamp x" raise these.
    except (AttributeError, LookupError) as error:
        raise _error(
            'this is not valid YAML: a value does not fit its tag, such as '
            '"!!int"'
        ) from error
    finally:
        if loader is not None:
            loader.dispose()
    return node, data


def called(command: object) -> str | None:
    """Return the name in the ``workflow`` or ``action`` of a task.

    ``sub x=1`` calls ``sub``. It is None unless the value is a text, and for a
    name that an expression gives while the workflow runs.
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
    """Say whether a text has an expression in YAQL or Jinja."""
    return isinstance(text, str) and any(
        (start := text.find(begin)) >= 0 and text.find(end, start + 2) >= 0
        for begin, end in _EXPRESSIONS
    )


def targets(
    clause: object, depth: int = _CLAUSE_DEPTH
) -> Iterator[tuple[str, Path]]:
    """Return the tasks that an ``on-…`` clause leads to, with their paths.

    A path starts at the clause. Engine commands are left out, and so are
    values in a form that Mistral does not know.

    :param depth: the levels of lists and maps to read.
    """
    if isinstance(clause, str):
        match = _COMMAND.match(clause)
        name = match.group() if match else clause
        if name not in COMMANDS and not is_expression(clause):
            yield name, ()
        return
    inner: Iterable[tuple[str | int, object]] = ()
    if depth and isinstance(clause, Mapping):
        if clause.keys() & {'publish', 'next'}:
            inner = [('next', clause.get('next'))]
        else:
            inner = ((key, key) for key in clause)
    elif depth and isinstance(clause, Sequence):
        inner = enumerate(clause)
    for step, value in inner:
        for name, path in targets(value, depth - 1):
            yield name, (step, *path)


def _is_workbook(data: Mapping[str, Any]) -> bool:
    """Tell a workbook from workflows, of which one may be `workflows`."""
    members = data.get('workflows', data.get('actions'))
    if isinstance(members, dict) and isinstance(members.get('tasks'), dict):
        return 'tasks' in members['tasks']
    return 'workflows' in data or 'actions' in data


def _workflow(name: str, content: Any) -> DefinedWorkflow:
    spec = content if isinstance(content, dict) else {}
    inputs: dict[str, Any] = {}
    declared = spec.get('input')
    for declaration in declared if isinstance(declared, list) else ():
        if isinstance(declaration, dict):
            inputs.update(
                {str(key): value for key, value in declaration.items()}
            )
        else:
            inputs[str(declaration)] = REQUIRED
    return DefinedWorkflow(
        name=name,
        type=str(spec.get('type', 'direct')),
        inputs=inputs,
        data=content,
    )


def _doubles(node: yaml.Node, path: Path = ()) -> Iterator[DefinitionProblem]:
    """Find keys that occur twice; YAML would keep the last one only."""
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = int(key.start_mark.line) + 1
                if key.value in lines:
                    yield DefinitionProblem(
                        message=f'{_kind(path)} '
                        f'"{bounds.shortened(key.value)}" appears twice, '
                        f'also on line {lines[key.value]}',
                        line=line,
                    )
                lines.setdefault(key.value, line)
                yield from _doubles(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _doubles(item, (*path, number))


def _kind(path: Path) -> str:
    if path in ((), ('workflows',)):
        return 'the workflow'
    if path[-1] == 'tasks' and len(path) in (2, 3):
        return 'the task'
    return 'the key'


def _error(message: str, node: yaml.Node | None = None) -> DefinitionError:
    line = None if node is None else int(node.start_mark.line) + 1
    return DefinitionError([DefinitionProblem(message=message, line=line)])
