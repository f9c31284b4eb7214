# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands take."""

import argparse
from collections import abc
import datetime
import pathlib
import re
import time
from typing import Any

from heat_plugins import bounds

_AGO = re.compile(r'([1-9][0-9]{0,8})(min|[shdw])')
_DAYS = {'today': 0, 'yesterday': 1}
_UNITS = {'s': 1, 'min': 60, 'h': 3600, 'd': 86400, 'w': 7 * 86400}


class Adder:
    """Adds arguments to a parser, or to a group of one.

    `more` is what `argparse.ArgumentParser.add_argument` takes, too.
    """

    def __init__(self, parser: Any) -> None:
        self.parser = parser

    def value(self, name: str, metavar: str, text: str, **more: Any) -> None:
        """Add a positional argument, or an option with a value."""
        self.parser.add_argument(name, metavar=metavar, help=text, **more)

    def number(self, name: str, metavar: str, text: str, **more: Any) -> None:
        """Add one whose value is a whole number above 0."""
        self.value(name, metavar, text, type=positive, **more)

    def choice(self, name: str, choices: Any, text: str, **more: Any) -> None:
        """Add an option that has one of some values."""
        self.parser.add_argument(name, choices=choices, help=text, **more)

    def several(self, name: str, metavar: str, text: str, **more: Any) -> None:
        """Add an option that may be repeated."""
        more = {'action': 'append', 'default': [], **more}
        self.value(name, metavar, text, **more)

    def flag(self, name: str, text: str, *short: str) -> None:
        """Add an option without a value."""
        self.parser.add_argument(*short, name, action='store_true', help=text)

    def either(self, *, required: bool = False) -> 'Adder':
        """Return what adds arguments that exclude each other."""
        group = self.parser.add_mutually_exclusive_group(required=required)
        return Adder(group)

    def titled(self, title: str) -> 'Adder':
        """Return what adds arguments under a title of their own."""
        return Adder(self.parser.add_argument_group(title))

    def stack(self, *, deleted: bool = False) -> None:
        """Add the stack that a command is about.

        :param deleted: whether it may be gone.
        """
        more = '; for a deleted stack, its ID' if deleted else ''
        self.value('stack', '<stack>', f'Name or ID of the stack{more}')

    def since(self) -> None:
        """Add the option that leaves out what ended before a time."""
        self.value(
            '--since',
            '<time>',
            'Leave out entries that ended before a time: a day (today, '
            'yesterday, 2026-11-20), a time (2026-11-20T22:00), in UTC '
            'without --local-time, or an age (30min, 12h, 7d)',
            type=Since,
        )

    def local_time(self) -> None:
        """Add the option that shows, and takes, times of this machine."""
        self.flag(
            '--local-time',
            'Show times in the time zone of this machine, not in UTC',
        )

    def entries(self, limit: int) -> None:
        """Add which entries of a list are wanted, and how many."""
        self.value('--action', '<action>', 'Only entries of an action')
        self.since()
        self.number(
            '--limit',
            '<number>',
            'Maximum number of entries to list (default: %(default)s)',
            default=limit,
        )


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
    """Return what reads the name of a file of some kinds."""

    def read(name: str) -> pathlib.Path:
        path = pathlib.Path(name)
        if path.suffix not in suffixes:
            raise argparse.ArgumentTypeError(
                f'{name} must end in {" or ".join(suffixes)}'
            )
        return path

    return read


def positive(text: str) -> int:
    """Return a whole number that an option was given."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError('must be a number, at least 1')
    return int(text)
