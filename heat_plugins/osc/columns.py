# SPDX-License-Identifier: Apache-2.0
"""Columns and cells of the commands that show runs."""

from collections import abc
import json
from typing import TYPE_CHECKING, Any

from cliff import columns

from heat_plugins import foreign
from heat_plugins.osc import common
from heat_plugins.runs import runs
from heat_plugins.runs import summary

if TYPE_CHECKING:
    Column = columns.FormattableColumn[Any]
else:
    # It takes no types in the oldest cliff that does.
    Column = columns.FormattableColumn

# What a list has of a run; JSON and YAML have all.
_LISTED = (
    'id',
    'resource',
    'server',
    'action',
    'state',
    'started_at',
    'duration',
    'reason',
)


class Seconds(Column):
    """A duration: in seconds for programs, with units for people."""

    def human_readable(self) -> str:
        return summary.spell(self._value)


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


class Lines(NamesCell):
    """A list of sentences, each on a line of its own for people."""

    def human_readable(self) -> str:
        return '\n'.join(text(item) for item in self._value)


#: Cells of what is shown of runs, operations and targets, by the keys.
KINDS: abc.Mapping[str, abc.Callable[[Any], Any]] = {
    'duration': Seconds,
    'timeout': Seconds,
    'inputs': NamesCell,
    'stacks': NamesCell,
    'outputs': Outputs,
    'cut': Outputs,
    'late_result': Outputs,
}


def cells(
    shown: abc.Mapping[str, Any],
    kinds: abc.Mapping[str, abc.Callable[[Any], Any]] = KINDS,
) -> dict[str, Any]:
    """Return values by their keys, as cells where there is a kind of those."""
    return {
        key: kinds[key](value) if key in kinds else value
        for key, value in shown.items()
    }


def with_server(shown: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return cells of a row of a table, which has names of servers."""
    server = ServerCell(shown['server'], shown['server_name'])
    return {**cells(shown), 'server': server}


def of(
    kind: abc.Callable[[Any], Any], key: str
) -> abc.Callable[[abc.Mapping[str, Any]], Any]:
    """Return what makes a cell of a thing's value; see `common.table`."""
    return lambda row: kind(row[key])


def text(value: Any) -> str:
    """Return a value as people read it, and harmless for a terminal."""
    shown = value if isinstance(value, str) else json.dumps(value)
    return foreign.block(shown.rstrip())


def many(
    listed: abc.Iterable[runs.Run],
    *,
    single: bool = False,
    stacks: bool = False,
) -> common.Shown:
    """Return columns and rows of runs.

    :param single: whether a table shows one alone with all there is of it.
    :param stacks: whether a table names the stack of each, and who started it.
    """
    listed = list(listed)
    rows = [with_server(summary.of(run)) for run in listed]
    alone = _one(listed[0]) if single and len(listed) == 1 else None
    shown = ('stack', 'started_by', *_LISTED) if stacks else _LISTED
    return summary.KEYS, common.Many(rows, shown, alone)


def one(run: runs.Run) -> common.Shown:
    """Return columns and values of one run, with all that may be shown."""
    return summary.KEYS, _one(run)


def _one(run: runs.Run) -> common.One:
    return common.One(cells(summary.of(run)).values())
