# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands take."""

import argparse
from collections import abc
import datetime
import functools
import pathlib
import re
import time
from typing import Any, Final, TypeAlias

from heat_plugins import bounds

_AGO = re.compile(r'([1-9][0-9]{0,8})(min|[shdw])')
_DAYS = {'today': 0, 'yesterday': 1}
_UNITS = {'s': 1, 'min': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}


#: Adds arguments to a parser, or to a group of one.
Argument: TypeAlias = abc.Callable[[Any], object]
Arguments: TypeAlias = tuple[Argument, ...]


def value(
    name: str, metavar: str, text: str, *short: str, **more: Any
) -> Argument:
    """Return a positional argument, or an option with a value.

    :param more: what `argparse.ArgumentParser.add_argument` takes, too.
    """
    more = {'metavar': metavar, 'help': text, **more}
    return lambda parser: parser.add_argument(*short, name, **more)


def whole(text: str, least: int = 1) -> int:
    """Return a whole number that an option was given."""
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f'must be a number, at least {least}')
    return int(text)


#: A `value` that is a whole number above 0.
number = functools.partial(value, type=whole)


class Once(argparse.Action):
    """Refuses an option that is given twice, where the last would win."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Take the value of an option, but not twice."""
        if getattr(namespace, self.dest) is not None:
            parser.error(f'{option_string} can be given once')
        setattr(namespace, self.dest, values)


def choice(name: str, choices: Any, text: str, **more: Any) -> Argument:
    """Return an option that has one of some values."""
    return lambda parser: parser.add_argument(
        name, choices=choices, help=text, **more
    )


def several(name: str, metavar: str, text: str, **more: Any) -> Argument:
    """Return an option that may be repeated."""
    more = {'action': 'append', 'default': [], **more}
    return value(name, metavar, text, **more)


def flag(name: str, text: str, *short: str, **more: Any) -> Argument:
    """Return an option without a value."""
    more = {'action': 'store_true', 'help': text, **more}
    return lambda parser: parser.add_argument(*short, name, **more)


def either(*arguments: Argument, required: bool = False) -> Argument:
    """Return arguments that exclude each other."""
    return lambda parser: add(
        parser.add_mutually_exclusive_group(required=required), arguments
    )


def titled(title: str, *arguments: Argument) -> Argument:
    """Return arguments under a title of their own."""
    return lambda parser: add(parser.add_argument_group(title), arguments)


def add(parser: Any, arguments: abc.Iterable[Argument]) -> None:
    """Add arguments to a parser, or to a group of one."""
    for argument in arguments:
        argument(parser)


class Input:
    """An input from the command line; its value may be a secret.

    With ``--debug`` the client logs what it has parsed.
    """

    def __init__(self, text: str) -> None:
        self.name, separator, self.value = text.partition('=')
        if not separator or not self.name:
            # Whatever it is: not to be quoted.
            raise argparse.ArgumentTypeError('expected <name>=<value>')

    def __repr__(self) -> str:
        return f'{self.name}=***'


class Since:
    """A time from the command line; the time zone may decide which it is."""

    def __init__(self, given: str) -> None:
        self._given = given
        try:
            self.seconds()
        except (ValueError, OverflowError):
            raise argparse.ArgumentTypeError(
                f'{bounds.shortened(given)} is none of: today, yesterday, a '
                'date (2026-11-20), a time (2026-11-20T22:00), an age (30min, '
                '2h, 7d, 1w)'
            ) from None

    def __repr__(self) -> str:
        return self._given

    def seconds(self, *, local: bool = False) -> float:
        """Return it in seconds since the epoch.

        :param local: whether one without a zone is of this machine's.
        :raises ValueError: it is no time.
        :raises OverflowError: it is too far away.
        """
        if ago := _AGO.fullmatch(self._given):
            return time.time() - int(ago[1]) * _UNITS[ago[2]]
        zone = None if local else datetime.UTC
        if self._given in _DAYS:
            today = datetime.datetime.fromtimestamp(time.time(), zone).date()
            day = today - datetime.timedelta(days=_DAYS[self._given])
            moment = datetime.datetime.combine(day, datetime.time())
        else:
            moment = datetime.datetime.fromisoformat(self._given)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return moment.timestamp()


def file_of(*suffixes: str) -> abc.Callable[[str], pathlib.Path]:
    """Return a function that reads the name of a file of some kinds."""

    def read(name: str) -> pathlib.Path:
        """Return the path of a file with one of the endings."""
        path = pathlib.Path(name)
        if path.suffix not in suffixes:
            raise argparse.ArgumentTypeError(
                f'{name} must end in {" or ".join(suffixes)}'
            )
        return path

    return read


#: The stack that a command is about.
STACK: Final = value('stack', '<stack>', 'Name or ID of the stack')

#: Leaves out what ended before a time.
SINCE: Final = value(
    '--since',
    '<time>',
    'Leave out entries that ended before a time: a day (today, yesterday, '
    '2026-11-20), a time (2026-11-20T22:00), in UTC without --local-time, or '
    'an age (30min, 12h, 7d)',
    type=Since,
)

#: Shows, and takes, times of this machine.
LOCAL_TIME: Final = flag(
    '--local-time', 'Show times in the time zone of this machine, not in UTC'
)
