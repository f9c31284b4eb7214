# SPDX-License-Identifier: Apache-2.0
"""Limits for work on texts and lists from servers, users and services.

heat-engine and Mistral's executors serve every project of a cloud, so no
input may cost more than a small multiple of its size. Everything here is
linear in its input up to a named limit, and constant beyond it:

- `cut` a text before a regular expression sees it;
- `read_json` instead of ``json.loads``;
- `gunzip` instead of ``gzip.decompress``;
- `closest` for "did you mean";
- `listed` for problems and names in a message.
"""

from collections.abc import Iterable, Sequence, Sized
import difflib
import gzip
import io
import itertools
import json
from typing import Any, Final
import zlib

#: Characters of a text that are matched to make a message from it.
TEXT: Final = 4096

#: Characters of a name in a message.
NAME: Final = 100

#: Problems or names that one message lists.
LISTED: Final = 10

#: Warnings, a sentence each, of one result.
PROBLEMS: Final = 100

#: Characters of a problem or name in such a list.
PART: Final = 1000

#: Levels of lists and maps. Code that handles a value later does so by
#: recursion, and shares Python's limit with its callers.
DEPTH: Final = 64

#: Known names among which `closest` searches.
CANDIDATES: Final = 1000

# Of a number.
_DIGITS: Final = 10

# To compare two names takes the cube of their length.
_COMPARED_LENGTH: Final = 64

_Container = dict[Any, Any] | list[Any]


class TooDeep(ValueError):
    """A value is nested too deeply."""

    def __init__(self, depth: int) -> None:
        super().__init__(f'it is nested more than {depth} levels deep')


def cut(text: str, limit: int = TEXT) -> str:
    """Return the first characters of a text, to be matched or parsed."""
    return text[:limit]


def shortened(text: str, limit: int = NAME) -> str:
    """Return a text of at most `limit` characters; a cut one ends in "…"."""
    return text if len(text) <= limit else f'{text[: limit - 1]}…'


def number(text: str) -> int | None:
    """Return the number that a text is; None for any other text.

    Python reads none of thousands of digits; no limit of ours has over ten.
    """
    digits = text.lstrip('0') or '0'
    is_read = text.isdecimal() and len(digits) <= _DIGITS
    return int(digits) if is_read else None


def listed(
    parts: Iterable[object], limit: int = LISTED, *, between: str = ', '
) -> str:
    """Join the first parts, each shortened, and say how many more there are.

    An iterator is not consumed beyond the part after `limit`, so that parts
    which are not shown cost nothing. Its message then ends in "and more".

    :returns: an empty text if there are no parts.
    """
    iterator = iter(parts)
    shown = [
        shortened(str(part), PART)
        for part in itertools.islice(iterator, limit)
    ]
    if isinstance(parts, Sized):
        if more := len(parts) - len(shown):
            shown.append(f'and {more} more')
    elif next(iterator, None) is not None:
        shown.append('and more')
    return between.join(shown)


def few(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the first parts, and one more with the number of the rest."""
    if len(parts) <= PROBLEMS:
        return tuple(parts)
    return (*parts[:PROBLEMS], f'… and {len(parts) - PROBLEMS} more')


def closest(
    name: str, known: Iterable[str], likeness: float = 0.6
) -> str | None:
    """Return the known name that is most similar to an unknown one.

    :param known: the first `CANDIDATES` names are compared.
    :param likeness: from 0 to 1; a less similar name does not count.
    :returns: None if no name is similar, or if the unknown one is very long.
    """
    if len(name) > _COMPARED_LENGTH:
        return None
    candidates = [
        candidate
        for candidate in itertools.islice(known, CANDIDATES)
        if len(candidate) <= _COMPARED_LENGTH
    ]
    matches = difflib.get_close_matches(name, candidates, 1, likeness)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name.

    :returns: a question about the closest name; empty if there is none.
    """
    closest_name = closest(name, known)
    return '' if closest_name is None else f'; did you mean "{closest_name}"?'


def read_json(text: str | bytes, *, depth: int = DEPTH) -> Any:
    """Read JSON that is not nested too deeply.

    The text itself has no limit here: the caller that fetched it set one.

    :param depth: the most levels of lists and maps.
    :raises TooDeep: it is nested too deeply.
    :raises ValueError: it is not JSON, or holds a number of more digits than
        Python reads.
    """
    try:
        value = json.loads(text)
    except RecursionError as exc:
        raise TooDeep(depth) from exc
    check_depth(value, depth)
    return value


def check_depth(value: object, depth: int = DEPTH) -> None:
    """Refuse a value that is nested too deeply.

    :param value: as JSON has them: dicts, lists and scalars, without loops.
    :raises TooDeep: it has more than `depth` levels of lists and maps.
    """
    level = _inner([[value]])
    for _ in range(depth):
        if not level:
            return
        level = _inner(level)
    if level:
        raise TooDeep(depth)


def gunzip(packed: bytes, limit: int) -> bytes:
    """Unpack gzip up to a limit; a thousandth of its size can be enough.

    :raises ValueError: it is not gzip, or holds more than that.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            content = file.read(limit + 1)
    except (OSError, EOFError, zlib.error) as exc:
        raise ValueError(f'it is not gzip: {exc}') from exc
    if len(content) > limit:
        raise ValueError(f'it unpacks to more than {limit} bytes')
    return content


def _inner(containers: Iterable[_Container]) -> list[_Container]:
    """Return the lists and maps that some lists and maps hold."""
    parts = itertools.chain.from_iterable(
        each.values() if isinstance(each, dict) else each
        for each in containers
    )
    return [part for part in parts if isinstance(part, (dict, list))]
