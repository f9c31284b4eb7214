# SPDX-License-Identifier: Apache-2.0
"""How commands say what they take on their command line."""

import argparse
import re
import time
from typing import Any

from heat_plugins.timeline import events

_AGO = re.compile(r'([1-9][0-9]*)(min|[shdw])')
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
            'Leave out entries that ended before a time: in UTC '
            '(2026-11-20T22:00:00), or an age (30min, 12h, 7d)',
            type=since,
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


def positive(text: str) -> int:
    """Return a whole number that an option was given."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError('must be a number, at least 1')
    return int(text)


def since(given: str) -> float:
    """Return the time that an option was given, in seconds since 1970."""
    ago = _AGO.fullmatch(given)
    if ago:
        return time.time() - int(ago[1]) * _UNITS[ago[2]]
    try:
        return events.moment(given)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f'{given} must be a time, such as 2026-11-20T22:00:00 or 12h'
        ) from None
