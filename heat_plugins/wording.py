# SPDX-License-Identifier: Apache-2.0
"""Write numbers, and the failures of many, for people."""

from collections import abc
import dataclasses
import re

from heat_plugins import bounds

#: Lines that the failures of many take at most.
LINES = 20

# Names that stand for all that have failed for one reason.
_NAMED = 3

# Names that are as long may be words of a reason.
_SHORT = 2

# What differs between reasons that are otherwise the same.
_ID = re.compile(r'\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b')


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``1 target`` or ``2 targets``."""
    return f'{number} {noun}' if number == 1 else f'{number} {noun}s'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """A failure, among those of many.

    :ivar name: the name for people; the reason may contain it.
    :ivar also: other names that the reason may contain.
    """

    name: str
    reason: str
    also: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Alike:
    """Failures for one reason.

    :ivar reason: of the first failure; the others differ in an ID or a name.
    :ivar pattern: the same for each failure for this reason.
    """

    names: tuple[str, ...]
    reason: str
    pattern: str

    def line(self, noun: str = 'server') -> str:
        """Return the failures in one line, with at most three names."""
        names = bounds.listed(self.names, _NAMED)
        if len(self.names) > 1:
            names = f'{counted(len(self.names), noun)} ({names})'
        return f'{names}: {bounds.shortened(self.reason, bounds.PART)}'


def grouped(failures: abc.Iterable[Failure]) -> list[Alike]:
    """Group failures by their reason, the most frequent reason first."""
    groups: dict[str, list[Failure]] = {}
    for failure in failures:
        groups.setdefault(_pattern(failure), []).append(failure)
    return sorted(
        (_alike(pattern, members) for pattern, members in groups.items()),
        key=lambda group: -len(group.names),
    )


def lines(
    failures: abc.Iterable[Failure],
    more: str,
    *,
    noun: str = 'server',
    limit: int = LINES,
) -> list[str]:
    """Return failures, a line for each reason.

    :param more: where to find those beyond the limit.
    """
    groups = grouped(failures)
    shown = groups if len(groups) <= limit else groups[: limit - 1]
    texts = [group.line(noun) for group in shown]
    if rest := sum(len(group.names) for group in groups[len(shown) :]):
        texts.append(f'and {counted(rest, noun)} more: {more}')
    return texts


def _alike(pattern: str, members: list[Failure]) -> Alike:
    return Alike(
        names=tuple(failure.name for failure in members),
        reason=members[0].reason,
        pattern=pattern,
    )


def _is_distinct(name: str) -> bool:
    """Say whether a name differs from usual words and numbers of a reason."""
    return len(name) > _SHORT and not name.isdecimal()


def _pattern(failure: Failure) -> str:
    """Return a reason without its IDs and names."""
    text = _ID.sub('<ID>', failure.reason)
    for name in (failure.name, *failure.also):
        if name in text and _is_distinct(name):
            pattern = rf'(?<![\w.-]){re.escape(name)}(?![\w-])'
            text = re.sub(pattern, '<name>', text)
    return text
