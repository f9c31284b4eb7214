# SPDX-License-Identifier: Apache-2.0
"""Cells that several commands show."""

from collections import abc
import functools
import json
from typing import TYPE_CHECKING, Any

from cliff import columns

from heat_plugins import foreign
from heat_plugins.osc import common
from heat_plugins.runs import summary

if TYPE_CHECKING:
    Column = columns.FormattableColumn[Any]
else:
    # It takes no types in the oldest cliff that does.
    Column = columns.FormattableColumn


class Said(Column):
    """A value that a function puts into words for people.

    :param plain: returns it for programs.
    """

    def __init__(
        self,
        value: Any,
        say: abc.Callable[[Any], str],
        plain: abc.Callable[[Any], Any] = common.plain,
    ) -> None:
        super().__init__(value)
        self._say = say
        self._plain = plain

    def human_readable(self) -> str:
        return self._say(self._value)

    def machine_readable(self) -> Any:
        return self._plain(self._value)


#: A duration: in seconds for programs, with units for people.
Seconds = functools.partial(Said, say=summary.spell)

#: Any value; a text as it is, and others in JSON, for people.
Value = functools.partial(
    Said, say=lambda value: '' if value is None else text(value)
)

#: A list of names.
NamesCell = functools.partial(
    Said, say=lambda names: ', '.join(map(foreign.line, names)), plain=list
)

#: A list of sentences, each on a line of its own for people.
SentencesCell = functools.partial(
    Said, say=lambda items: '\n'.join(map(text, items)), plain=list
)

#: Values by name; each on lines of its own for people.
Outputs = functools.partial(
    Said,
    say=lambda values: '\n'.join(
        f'{foreign.line(name)}: {text(value)}'
        for name, value in (values or {}).items()
        if value not in (None, '')
    ),
    plain=lambda values: None if values is None else dict(values),
)


def server(server_id: str, name: str | None) -> Said:
    """Return a server: its ID for programs, and its name for people.

    :param name: the path of its resource; None if it has none.
    """
    return Said(server_id, lambda value: name or value)


def of(
    kind: abc.Callable[[Any], Any], key: str
) -> abc.Callable[[abc.Mapping[str, Any]], Any]:
    """Return a function that makes cells of a kind; see `common.table`."""
    return lambda row: kind(row[key])


def text(value: Any) -> str:
    """Return a value as people read it, and harmless for a terminal."""
    shown = value if isinstance(value, str) else json.dumps(value)
    return foreign.block(shown.rstrip())
