# SPDX-License-Identifier: Apache-2.0
"""Reader and writer of YAML, which accept all that Heat accepts.

Executors and engines serve every project of a cloud, so reading must cost no
more than a small multiple of the text. The parser's events are counted before
anything is built; then the nodes, with what aliases and merge keys (``<<``)
stand for; only then values are made of them.

Heat reads with PyYAML's C loader, and what that refuses with the pure one,
which takes, for example, ``{get_attr:[a, b]}``. So does this reader.
"""

from collections import abc
import contextlib
import re
from typing import Any, Final

import yaml

#: Characters of a text.
LARGEST: Final = 16 * 1024 * 1024

#: Values of a text: keys, items, lists and maps, each alias written out.
VALUES: Final = 200_000

#: Characters of all values, each alias written out.
CHARACTERS: Final = 16 * 1024 * 1024

#: Levels of lists and maps.
DEPTH: Final = 100

#: Characters of a number.
NUMBER: Final = 1000

#: Numbers beyond 2^61 in a text: Python's maps slow down for such keys.
GREAT_NUMBERS: Final = 2000

#: Characters of a text that the pure loader may try: it is slow.
LARGEST_PURE: Final = 128 * 1024

# The most that the YAML library takes.
_LONGEST_LINE: Final = 2**31 - 1

# The parser compares each of them with all others.
_DIRECTIVES: Final = 100

_GREAT: Final = 2**61 - 1


class UnreadableYAML(ValueError):
    """A text is not YAML, or is more than is read.

    The message continues a sentence that begins with the file's name, and
    quotes nothing of the text.

    :ivar line: of the place, from 1; None where no place is known.
    """

    def __init__(
        self, what: str, mark: yaml.Mark | None = None, why: str = ''
    ) -> None:
        self.line = None if mark is None else int(mark.line) + 1
        place = ''
        if mark is not None:
            place = f' at line {self.line}, column {mark.column + 1}'
        super().__init__(what + place + (f': {why}' if why else ''))


class _Numbers:
    """Makes numbers at a cost that is bounded."""

    great_numbers = 0

    def number(self, node: yaml.Node, build: abc.Callable[..., Any]) -> Any:
        """Make a number.

        :raises UnreadableYAML: it is none, or too long.
        """
        try:
            if len(node.value) <= NUMBER:
                value = build(self, node)
                if isinstance(value, int) and abs(value) >= _GREAT:
                    self.great_numbers += 1
                if self.great_numbers <= GREAT_NUMBERS:
                    return value
        except (ValueError, OverflowError, LookupError, TypeError) as exc:
            raise UnreadableYAML(
                'holds an unreadable number', node.start_mark
            ) from exc
        if self.great_numbers > GREAT_NUMBERS:
            raise UnreadableYAML(
                f'holds more than {GREAT_NUMBERS} numbers beyond 2^61',
                node.start_mark,
                'put them in quotes',
            )
        raise UnreadableYAML(
            f'holds a number of more than {NUMBER} characters',
            node.start_mark,
            'put it in quotes',
        )


class PureLoader(_Numbers, yaml.SafeLoader):  # type: ignore[misc]
    """`Loader` by PyYAML's own parser."""


class Loader(_Numbers, yaml.CSafeLoader):  # type: ignore[misc]
    """Makes values of YAML; timestamps stay text, as Heat has them.

    :cvar pure: reads what this refuses; None for nothing.
    """

    pure: type[PureLoader] | None = PureLoader


for _loader in (Loader, PureLoader):
    _loader.add_constructor(
        'tag:yaml.org,2002:timestamp',
        lambda loader, node: loader.construct_scalar(node),
    )
    _loader.add_constructor(
        'tag:yaml.org,2002:int',
        lambda loader, node: loader.number(
            node, yaml.constructor.SafeConstructor.construct_yaml_int
        ),
    )
    _loader.add_constructor(
        'tag:yaml.org,2002:float',
        lambda loader, node: loader.number(
            node, yaml.constructor.SafeConstructor.construct_yaml_float
        ),
    )


def load(text: str, loader: type[Loader] = Loader) -> Any:
    """Return the value of a text; None if it is empty.

    :param loader: `Loader`, or a subclass of it for other tags and values.
    :raises UnreadableYAML: it is not YAML, or exceeds a limit of this module.
    """
    if len(text) > LARGEST:
        raise UnreadableYAML(f'has more than {LARGEST} characters')
    if text.count('%TAG') > _DIRECTIVES:
        raise UnreadableYAML(f'has more than {_DIRECTIVES} %TAG directives')
    try:
        return _read_by(text, loader)
    except yaml.YAMLError as exc:
        if loader.pure is not None and len(text) <= LARGEST_PURE:
            with contextlib.suppress(yaml.YAMLError):
                return _read_by(text, loader.pure)
        mark = getattr(exc, 'problem_mark', None)
        problem = getattr(exc, 'problem', None) or 'a control character'
        if isinstance(
            exc,
            yaml.composer.ComposerError | yaml.constructor.ConstructorError,
        ):
            # It quotes tags and the names of aliases, which may be a password
            # that lacks its quotes.
            problem = re.split(r'\s+b?[\'"]', problem, maxsplit=1)[0]
        context = getattr(exc, 'context', None)
        message = f'{context}, {problem}' if context else problem
        raise UnreadableYAML('is not YAML', mark, message) from exc


class _Dumper(yaml.CSafeDumper):  # type: ignore[misc]
    """Writes long texts as blocks."""


_Dumper.add_representer(
    str,
    lambda dumper, data: dumper.represent_scalar(
        'tag:yaml.org,2002:str', data, '|' if '\n' in data else None
    ),
)


def dump(value: Any, *, compact: bool = False) -> str:
    """Write YAML, in the given order; a value that occurs twice has an alias.

    :param compact: whether to leave out layout.
    """
    return str(
        yaml.dump(
            value,
            Dumper=yaml.CSafeDumper if compact else _Dumper,
            default_flow_style=compact,
            sort_keys=False,
            allow_unicode=True,
            width=_LONGEST_LINE if compact else None,
        )
    )


def _read_by(text: str, loader: type[Loader] | type[PureLoader]) -> Any:
    """Return the value of a text by one of the two parsers."""
    reader = None
    try:
        values = depth = 0
        for event in yaml.parse(text, loader):
            if isinstance(event, yaml.NodeEvent):
                values += 1
                if values > VALUES:
                    raise UnreadableYAML(
                        f'holds more than {VALUES} values', event.start_mark
                    )
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > DEPTH:
                    raise UnreadableYAML(
                        f'is nested more than {DEPTH} levels deep',
                        event.start_mark,
                    )
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
        reader = loader(text)
        node = reader.get_single_node()
        if node is not None and ('*' in text or '<<' in text):
            _written_out(node, {})
        return None if node is None else reader.construct_document(node)
    except yaml.YAMLError:
        raise
    except UnicodeEncodeError as exc:
        raise UnreadableYAML('holds an incomplete character') from exc
    except RecursionError as exc:
        raise UnreadableYAML('is nested too deeply') from exc
    # What PyYAML makes of "!!bool x" and its like.
    except (AttributeError, LookupError, TypeError, OverflowError) as exc:
        raise UnreadableYAML('holds a value that does not fit its tag') from (
            exc
        )
    finally:
        if reader is not None:
            reader.dispose()


def _written_out(
    node: yaml.Node, known: dict[int, tuple[int, int] | None]
) -> tuple[int, int]:
    """Count the values and characters of a node, each alias written out.

    What an alias stands for begins before it. So each node is counted once,
    and no deeper than the text is nested.

    :param known: the counts by node; None while it is being counted.
    :raises UnreadableYAML: they are too many, or without end.
    """
    if isinstance(node, yaml.ScalarNode):
        return 1, len(node.value)
    if id(node) not in known:
        known[id(node)] = None
        parts = node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        counts = [_written_out(part, known) for part in parts]
        values = 1 + sum(number for number, _ in counts)
        characters = sum(number for _, number in counts)
        if values > VALUES or characters > CHARACTERS:
            raise UnreadableYAML(
                f'has aliases that stand for more than {VALUES} values or '
                f'{CHARACTERS} characters',
                node.start_mark,
            )
        known[id(node)] = values, characters
    counted = known[id(node)]
    if counted is None:
        raise UnreadableYAML(
            'has an alias for a value that contains the alias', node.start_mark
        )
    return counted
