# SPDX-License-Identifier: Apache-2.0
"""Patterns that templates have for the values of parameters.

A short one can take longer than anybody waits. So all but the plainest are
tried in a process that has an end, which runs this module.
"""

import json
import re
import sys
from typing import Final

from heat_plugins import errors
from heat_plugins.plans.rendering import confinement

#: Patterns that one operation tries in a process each.
TRIED: Final = 100

# One kind of character, again and again: nothing to go back and forth in.
_PLAIN: Final = re.compile(
    r'\^?(\[(\\.|[^][\\])+\]|\\[dswDSW]|[\w.-])([*+?]|\{\d*,?\d*\})?\$?'
)

_PROCESS: Final = __name__
_SECONDS: Final = 2
_MEMORY: Final = 256 * 1024 * 1024
_OUTPUT: Final = 1024


class Tries:
    """Tries the patterns of one operation.

    :param limit: of those that take a process.
    """

    def __init__(self, limit: int = TRIED) -> None:
        self._limit = limit
        self._tried = 0

    def matches(self, pattern: str, text: str) -> bool:
        """Say whether all of a text matches, as Heat has it.

        :raises errors.Invalid: that cannot be found out in time.
        """
        if _PLAIN.fullmatch(pattern):
            return matches_here(pattern, text)
        self._tried += 1
        if self._tried > self._limit:
            raise errors.Invalid(
                f'The parameters have more than {self._limit} patterns to '
                'check; set fewer parameters at a time'
            )
        _, outcome = confinement.run(
            _PROCESS,
            [pattern, text],
            seconds=_SECONDS,
            memory=_MEMORY,
            output=_OUTPUT,
        )
        if 'matches' not in outcome:
            raise errors.Invalid(
                f'Matching a value against {pattern:.200} took more than '
                f'{_SECONDS} seconds; write the pattern without nested '
                'repetitions'
            )
        return bool(outcome['matches'])


def matches_here(pattern: str, text: str) -> bool:
    """Say so, however long it takes; False for what is no pattern."""
    try:
        match = re.match(pattern, text)
    except (re.error, OverflowError, RecursionError):
        return False
    return match is not None and match.end() == len(text)


def main() -> None:
    confinement.enter()
    pattern, text = json.load(sys.stdin)
    json.dump({'matches': matches_here(pattern, text)}, sys.stdout)


if __name__ == '__main__':
    main()
