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
    """A value that a function puts into words for people."""

    def __init__(self, value: Any, say: abc.Callable[[Any], str]) -> None:
        super().__init__(value)
        self._say = say

    def human_readable(self) -> str:
        return self._say(self._value)


#: A duration: in seconds for programs, with units for people.
Seconds = functools.partial(Said, say=summary.spell)


class ServerCell(Column):
    """A server: its ID for programs, and its name for people.

    :param name: the path of its resource; None if it has none.
    """

    def __init__(self, value: str, name: str | None) -> None:
        super().__init__(value)
        self._name = name

    def human_readable(self) -> str:
        return self._name or self._value


class Outputs(Column):
    """Values by name; each on lines of its own for people."""

    def human_readable(self) -> str:
        return '\n'.join(
            f'{foreign.line(name)}: {text(value)}'
            for name, value in (self._value or {}).items()
            if value not in (None, '')
        )

    def machine_readable(self) -> Any:
        return None if self._value is None else dict(self._value)


class Value(Column):
    """Any value; a text as it is, and others in JSON, for people."""

    def human_readable(self) -> str:
        return '' if self._value is None else text(self._value)

    def machine_readable(self) -> Any:
        return common.plain(self._value)


class NamesCell(Column):
    """A list of names."""

    def human_readable(self) -> str:
        return ', '.join(map(foreign.line, self._value))

    def machine_readable(self) -> Any:
        return list(self._value)


class SentencesCell(NamesCell):
    """A list of sentences, each on a line of its own for people."""

    def human_readable(self) -> str:
        return '\n'.join(text(item) for item in self._value)


def of(
    kind: abc.Callable[[Any], Any], key: str
) -> abc.Callable[[abc.Mapping[str, Any]], Any]:
    """Return a function that makes cells of a kind; see `common.table`."""
    return lambda row: kind(row[key])


def text(value: Any) -> str:
    """Return a value as people read it, and harmless for a terminal."""
    shown = value if isinstance(value, str) else json.dumps(value)
    return foreign.block(shown.rstrip())
