# SPDX-License-Identifier: Apache-2.0
"""Services, output formats and exit codes of all commands."""

import argparse
from collections import abc
import contextlib
import enum
import functools
import itertools
import pathlib
import sys
import time
from typing import Any, TypeVar

from cliff import columns
from osc_lib import exceptions
from osc_lib.command import command

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins import yaml_reading
from heat_plugins.clients import heat
from heat_plugins.clients import rest
from heat_plugins.clients import runs as run_client
from heat_plugins.clients import swift
from heat_plugins.objectstore import stores
from heat_plugins.osc import command_line
from heat_plugins.osc import progress
from heat_plugins.runs import summary

#: What a command shows: names of columns, and rows or a `One`.
Shown = tuple[abc.Sequence[str], abc.Iterable[Any]]

_Read = TypeVar('_Read')

#: Exit codes other than 0 (success) and 2 (wrong command line). That of any
#: error is that of what was not started.
NOT_STARTED = 1
FAILED = 3
TIMED_OUT = 4
CANCELLED = 5
STILL_RUNNING = 6
INTERRUPTED = 130

# Formats that have room for everything, and escape what a terminal would
# obey.
_STRUCTURED = ('json', 'yaml')

_CODES = {
    'complete': 0,
    'failed': FAILED,
    'timed-out': TIMED_OUT,
    'cancelled': CANCELLED,
}


# Seconds between two attempts to read what a command waits for.
_PAUSE = 2.0


def code_of(state: enum.Enum) -> int:
    """Return the exit code for the state of a run, or of a target."""
    return _CODES.get(state.value, STILL_RUNNING)


def read_first(
    display: progress.Display,
    read: abc.Callable[[], _Read],
    limit: float | None = None,
) -> _Read:
    """Read the run that a command then waits for, despite a short outage.

    :param limit: seconds for which the command waits at most; 0 if it does
        not wait.
    """
    budget = retrying.BUDGET if limit is None else min(limit, retrying.BUDGET)
    return retrying.insist(
        read,
        seconds=budget,
        wait=_PAUSE,
        most=_PAUSE,
        sleep=time.sleep,
        clock=time.monotonic,
        note=display.say,
    )


def runs(manager: Any) -> run_client.Runs:
    """Return the way to runs, with the session of a command."""
    return run_client.Runs(cloud(manager))


def store(manager: Any) -> stores.ObjectStore:
    """Return the object store, with the session of a command."""
    return swift.connect(cloud(manager))


def live_store(manager: Any) -> stores.ObjectStore:
    """Return the object store that has the live output of runs.

    :raises errors.NoObjectStore: there is none.
    """
    reached = store(manager)
    # Another failure may pass before something is read.
    with contextlib.suppress(errors.Unavailable):
        try:
            reached.url  # noqa: B018
        except errors.NoObjectStore as exc:
            raise errors.NoObjectStore(
                'Live output needs an object store; without one, --wait and '
                f'"run output" show what was printed. {exc}'
            ) from exc
    return reached


def orchestration(manager: Any) -> heat.Heat:
    """Return the way to Heat, with the session of a command."""
    return heat.Heat(cloud(manager))


def cloud(manager: Any) -> rest.Cloud:
    """Return the way to services, with the session of a command."""
    return rest.Cloud(
        manager.session, manager.interface or 'public', manager.region_name
    )


class Command(command.Command):
    """A command.

    :cvar example: what its help shows behind its name.
    :cvar shared: what it takes on its command line in front of `arguments`.
    :ivar exit_code: what the command ends with if all goes well.
    :ivar progress: shows that the command works, until it prints.
    """

    exit_code = 0
    example = ''
    shared: command_line.Arguments = ()
    arguments: command_line.Arguments = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.epilog = f'Example: {prog_name} {self.example}'
        command_line.add(parser, self.shared)
        command_line.add(parser, self.arguments)
        return parser

    def get_epilog(self) -> str:
        # For its own, cliff reads the metadata of all that is installed.
        return ''

    def run(self, parsed_args: argparse.Namespace) -> int:
        foreign.guard(self.log)
        self.progress = progress.Display(self.cmd_name or '')
        with contextlib.suppress(AttributeError):
            # What it cannot print must not end a command that did its work.
            stdout: Any = self.app.stdout
            stdout.reconfigure(errors='backslashreplace')
        try:
            with self.progress, foreign.errors():
                return super().run(parsed_args) or self.exit_code
        except errors.Error as exc:
            raise exceptions.CommandError(str(exc)) from exc

    def each(
        self,
        do: abc.Callable[[str], _Read],
        wanted: abc.Collection[str],
        pool: pools.Pool | None = None,
    ) -> list[_Read]:
        """Call a function with each name; an error of one stops no other."""

        def attempt(name: str) -> _Read | errors.Error:
            try:
                return do(name)
            except errors.Error as exc:
                return exc

        results = []
        for result in (pool or pools.Pool()).each(attempt, wanted):
            if not isinstance(result, errors.Error):
                results.append(result)
            elif len(wanted) == 1:
                raise result
            else:
                self.log.error('%s', result)
                self.exit_code = 1
        return results

    def confirm(
        self, lines: abc.Iterable[str], question: str, refusal: str
    ) -> None:
        """Ask the user at the terminal.

        :param lines: what to show before that.
        :param refusal: the message if the answer is not yes.
        :raises exceptions.CommandError: it is not, or there is no terminal.
        """
        self.progress.stop()
        if not sys.stdin.isatty():
            raise exceptions.CommandError(
                f'{question} There is no terminal for the question: give --yes'
            )
        shown = ''.join(f'{foreign.line(line)}\n' for line in lines)
        sys.stderr.write(f'{shown}{question} [y/N] ')
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ('y', 'yes'):
            raise exceptions.CommandError(refusal)


class Report(Command, command.Lister):
    """A command that shows one thing or many, in every format.

    cliff's formats for one thing leave csv out. `take_action` returns the
    columns, and rows or a `One`.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        command_line.LOCAL_TIME(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        for name, value in vars(parsed_args).items():
            if isinstance(value, command_line.Since):
                seconds = value.seconds(local=parsed_args.local_time)
                setattr(parsed_args, name, seconds)
        return super().run(parsed_args)

    def _show(
        self,
        parsed_args: argparse.Namespace,
        value: Any,
        safe: abc.Callable[[Any], str],
    ) -> Any:
        """Return a value as the format has it, and safe.

        A table is for people. Others get the values as they are, but where a
        terminal is the reader of a format that does not escape them itself.

        :param safe: makes a text safe.
        """
        is_cell = isinstance(value, columns.FormattableColumn)
        if parsed_args.formatter == 'table':
            if is_cell:
                return _Cell(value)
            value = '' if value is None else value
        elif (
            parsed_args.formatter in _STRUCTURED
            or not self.app.stdout.isatty()
        ):
            return plain(value)
        elif is_cell:
            value = value.machine_readable()
        # What is no text is written as Python's repr, which escapes.
        return safe(value) if isinstance(value, str) else value

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: abc.Sequence[str],
        data: Any,
    ) -> int:
        """Print a table, made safe for a terminal."""
        self.progress.stop()
        show = functools.partial(self._show, parsed_args)
        if isinstance(data, Many):
            column_names, data = data.arranged(parsed_args, column_names)
        column_names = [show(each, foreign.line) for each in column_names]
        # The options may name a column by its heading, or by its key.
        named = {_short(each): each for each in column_names}
        for option in (parsed_args.columns, parsed_args.sort_columns):
            option[:] = [named.get(_short(each), each) for each in option]
        rows = [data] if isinstance(data, One) else data
        if parsed_args.local_time:
            rows = [
                [
                    summary.in_zone(value)
                    if name.endswith('_at') or _short(name) in _TIMES
                    else value
                    for name, value in zip(column_names, row, strict=True)
                ]
                for row in rows
            ]
        if not isinstance(data, One):
            shown = [
                tuple(show(each, foreign.line) for each in row) for row in rows
            ]
            return super().produce_output(parsed_args, column_names, shown)
        values = [show(each, foreign.block) for row in rows for each in row]
        if not hasattr(self.formatter, 'emit_one'):
            return super().produce_output(parsed_args, column_names, [values])
        if parsed_args.formatter == 'table' and not parsed_args.columns:
            # What there is nothing to say about is for scripts only.
            filled = [value != '' for value in values]
            column_names = [*itertools.compress(column_names, filled)]
            values = [*itertools.compress(values, filled)]
        # cliff's for one thing, which takes the columns that are asked for.
        produce: Any = command.ShowOne.produce_output
        return int(produce(self, parsed_args, column_names, values))


class _Cell(str):
    """The text of a cell, sorted as the value that it shows."""

    __slots__ = ('value',)
    value: Any

    def __new__(cls, value: Any) -> '_Cell':
        # The lines in there are meant to be lines.
        cell = super().__new__(cls, foreign.block(value.human_readable()))
        cell.value = value
        return cell

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < other.value)


def plain(value: Any) -> Any:
    """Return a value that can be written as YAML: no enumeration."""
    return value.value if isinstance(value, enum.Enum) else value


class Many(list[Any]):
    """Several things, maps of all that may be shown of each.

    Programs that read JSON or YAML get all of it, others what they name with
    ``-c``, or some columns.

    :param listed: the keys of those columns.
    """

    def __init__(
        self,
        rows: abc.Iterable[abc.Mapping[str, Any]],
        listed: abc.Sequence[str],
    ) -> None:
        super().__init__(rows)
        self._listed = listed

    def arranged(
        self, parsed_args: argparse.Namespace, names: abc.Sequence[str]
    ) -> tuple[abc.Sequence[str], Any]:
        """Return columns and rows, as the options ask for."""
        table = parsed_args.formatter == 'table'
        if not parsed_args.columns and (
            parsed_args.formatter not in _STRUCTURED
        ):
            names = self._listed
        rows = [tuple(row[name] for name in names) for row in self]
        if not table:
            return names, rows
        headings = (_short(name).replace('_', ' ') for name in names)
        return [
            each.upper() if each in ('id', 'utc') else each.capitalize()
            for each in headings
        ], rows


# Columns with times, but for those that end in "_at"; see `_short`.
_TIMES = ('created', 'started', 'ended', 'estimated_end')


def _short(column: str) -> str:
    """Return a column's key without "_at", given its key or heading."""
    return column.strip().lower().replace(' ', '_').removesuffix('_at')


def table(
    rows: abc.Iterable[abc.Mapping[str, Any]],
    cells: abc.Mapping[str, str | abc.Callable[[Any], Any]],
) -> Shown:
    """Return columns and rows of things.

    :param cells: of each column, the key of its values or what makes them.
    """
    return tuple(cells), [
        tuple(
            row[cell] if isinstance(cell, str) else cell(row)
            for cell in cells.values()
        )
        for row in rows
    ]


class One(tuple[Any, ...]):
    """The values of the one thing that a command shows."""

    __slots__ = ()


def one(values: abc.Mapping[str, Any], *names: str) -> Shown:
    """Return columns and values of one thing, or those of some names."""
    names = names or tuple(values)
    return names, One(values[name] for name in names)


@contextlib.contextmanager
def access(verb: str, path: object) -> abc.Iterator[None]:
    """Turn a failure to read or write a file into an error."""
    try:
        yield
    except OSError as exc:
        raise exceptions.CommandError(
            f'Cannot {verb} {path}: {exc.strerror}'
        ) from exc


def read_text(path: str) -> str:
    """Return the text in a file; - for standard input.

    :raises exceptions.CommandError: it cannot be read, or is not a text.
    """
    try:
        if path == '-':
            return sys.stdin.read()
        return pathlib.Path(path).read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, 'strerror', None) or 'it is not UTF-8 text'
        raise exceptions.CommandError(
            f'Cannot read {path}: {reason}'
        ) from None


def read_map(path: str) -> dict[str, Any]:
    """Read values from a map in a file; - for standard input."""
    try:
        content = yaml_reading.load(read_text(path))
    except yaml_reading.UnreadableYAML as exc:
        raise exceptions.CommandError(f'{path} {exc}') from exc
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise exceptions.CommandError(f'{path} must hold a map: name: value')
    return {str(name): value for name, value in content.items()}
