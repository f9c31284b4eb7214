# SPDX-License-Identifier: Apache-2.0
"""What a run prints, read until it ends; see `heat_plugins.signals.live`.

What is read is complete and in order. A part that the store does not show
yet, or shows as it was before, is waited for; one that was written over is
left out, and it is said how long that was. What a server has sent is not
trusted: what does not fit is passed over.
"""

from collections import abc
import dataclasses
import hashlib
from typing import Protocol

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import store as store_module
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

# The most parts that are held for those before them.
_HELD = live.MOST // 2

# The most bytes of the object that says how long it is.
_END_LIMIT = 20


class Source(Protocol):
    """Where the output of runs lies."""

    def log(self, run_id: str) -> list[store_module.Entry]:
        """List the parts of the output of a run, by name."""

    def fetch(self, name: str, limit: int) -> store_module.Fetched:
        """Fetch a part; see `ObjectStore.fetch`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """The next part of an output.

    :ivar left_out: how many bytes before it are not kept.
    """

    content: bytes = dataclasses.field(repr=False)
    left_out: int = 0


class Reader:
    """Reads the output of one run from its beginning.

    :ivar offset: the bytes that were read, or left out.
    :ivar begun: whether the server sends output at all.
    """

    def __init__(self, source: Source, run_id: str) -> None:
        self._source = source
        self._run_id = run_id
        self.offset = 0
        self.begun = False
        self._size: int | None = None
        # By name: the content as it was last seen, as MD5.
        self._etags: dict[str, str] = {}
        # By offset: what is not read yet.
        self._pieces: dict[int, live.Piece] = {}
        self._left_out = 0

    @property
    def finished(self) -> bool:
        """Whether all was read that there will ever be."""
        return self._size is not None and self.offset >= self._size

    def read(self) -> abc.Iterator[Part]:
        """Read what has arrived since the last call.

        :raises errors.ServiceError: the store did not answer. It can be
            called again, and continues where it was.
        """
        for entry in self._source.log(self._run_id):
            self.begun = True
            if self._is_new(entry) and self._fetch(entry):
                yield from self._ready()
        while self._skip():
            yield from self._ready()

    def _is_new(self, entry: store_module.Entry) -> bool:
        name = _last(entry)
        if name == live.END:
            return self._size is None
        return (
            live.is_slot(name)
            and len(self._pieces) < _HELD
            and (not entry.etag or self._etags.get(name) != entry.etag)
        )

    def _fetch(self, entry: store_module.Entry) -> bool:
        """Fetch an object; False if it holds no part of the output."""
        name = _last(entry)
        is_end = name == live.END
        limit = _END_LIMIT if is_end else live.LONGEST
        try:
            body = self._source.fetch(entry.name, limit).content
            # The listing may be older than what was fetched, or newer.
            self._etags[name] = hashlib.md5(
                body, usedforsecurity=False
            ).hexdigest()
            if is_end:
                self._size = live.parse_end(body)
                return False
            piece = live.parse(name, body)
        except errors.NoObject:
            return False
        except (ValueError, errors.BadSignal) as exc:
            # So it is not fetched each time that it is listed.
            self._etags[name] = entry.etag
            LOG.debug(
                'Ignoring object %s, which is not a part of an output: %s',
                entry.name,
                exc,
            )
            return False
        known = self._pieces.get(piece.offset)
        if piece.end > (known.end if known else self.offset):
            self._pieces[piece.offset] = piece
        return True

    def _ready(self) -> abc.Iterator[Part]:
        """Give what comes next, as far as it is there."""
        while piece := self._pieces.get(self._base):
            if piece.end <= self.offset:
                return
            content = piece.content[self.offset - piece.offset :]
            if len(piece.content) == live.SLOT:
                del self._pieces[piece.offset]
            self.offset = piece.end
            yield Part(content=content, left_out=self._left_out)
            self._left_out = 0

    def _skip(self) -> bool:
        """Leave out what was written over; False if nothing was."""
        base = self._base
        later = [offset for offset in self._pieces if offset > base]
        if not later:
            return False
        newest = self._pieces[max(later)]
        oldest_kept = newest.offset - (newest.ring - 1) * live.SLOT
        if base < newest.head * live.SLOT or base >= oldest_kept:
            # It has not arrived yet.
            return False
        self._pieces.pop(base, None)
        target = min(oldest_kept, *later)
        self._left_out += target - self.offset
        self.offset = target
        return True

    @property
    def _base(self) -> int:
        return self.offset - self.offset % live.SLOT


def _last(entry: store_module.Entry) -> str:
    return entry.name.rpartition('/')[2]
