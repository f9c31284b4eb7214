# SPDX-License-Identifier: Apache-2.0
"""What became of the last signals, a bounded number of bounded texts.

Each is kept under a key of its own: signals are taken several at a time,
and in different engines, and would overwrite each other's list.
"""

from collections.abc import Iterable, Mapping
import json
import secrets
import time
from typing import Any, Final

from heat_plugins import bounds

#: Number of signals that are remembered.
SIGNALS: Final = 10

#: Characters of JSON that are kept of an error.
ERROR: Final = 15000

#: Ignored keys of a body that are kept, and characters of JSON of each.
IGNORED: Final = 50

_PREFIX: Final = 'signal.'


def key() -> str:
    """Return a key; later ones sort after it."""
    return f'{_PREFIX}{time.time_ns():020d}.{secrets.token_hex(2)}'


def write(entry: Mapping[str, Any]) -> str:
    """Return the text for an entry."""
    kept = dict(entry)
    if isinstance(error := kept.get('error'), str):
        kept['error'] = _kept(error, ERROR)
    ignored = kept.get('ignored') or []
    kept['ignored'] = [_kept(one, IGNORED) for one in ignored[:IGNORED]]
    return json.dumps(kept)


def read(data: Mapping[str, str]) -> list[Any]:
    """Return the entries among other things, the newest first."""
    return [json.loads(data[one]) for one in _newest(data)[:SIGNALS]]


def surplus(data: Iterable[str]) -> list[str]:
    """Return the keys of the entries to forget."""
    return _newest(data)[SIGNALS:]


def _kept(text: str, size: int) -> str:
    """Return what of a text takes no more than that as JSON.

    There a character may take as many as twelve.
    """
    short, length = bounds.shortened(text, size), size
    while (taken := len(json.dumps(short)) - 2) > size and length > 1:
        length = min(length - 1, length * size // taken)
        short = bounds.shortened(text, length)
    return short


def _newest(data: Iterable[str]) -> list[str]:
    return sorted(one for one in data if one.startswith(_PREFIX))[::-1]
