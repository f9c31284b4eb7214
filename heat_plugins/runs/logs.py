# SPDX-License-Identifier: Apache-2.0
"""The live output of a run until it ends; see `heat_plugins.signals.live`.

What is read is complete and in order. A part that the store does not show
yet, or shows as it was before, is waited for; one that was written over is
left out, and it is said how long that was. What a server has sent is not
trusted: what does not fit is passed over.
"""

from collections import abc
import contextlib
import dataclasses
import hashlib
import itertools
import posixpath
import threading
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.objectstore import stores
from heat_plugins.runs import run_records
from heat_plugins.signals import body
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

# The most parts that are known and wait for those before them.
_KNOWN = live.MOST // 2

# The most bytes of the object that says how long it is.
_END_LIMIT = 20

# Notes about a run that has ended, or still runs, and whose server has sent
# nothing of its output.
_AT_THE_END = (
    'This server sends output only at the end: it has no '
    'heat-config-supervisor, or its hook does not support live output'
)
_SILENT = (
    'The server has sent no output. It has not started the run, or it has no '
    'heat-config-supervisor and sends output only at the end'
)

# Seconds after which a server that is silent is likely to be one:
# agents ask for their work every 30 s.
_SILENCE = 45.0

# Seconds for what is still to come of a run that has ended: a server that is
# told to stop sends the rest after that.
_REST, _PAUSE = 15.0, 0.5


# Seconds for which a listing of what servers print holds, and after which a
# run whose output no reader has asked for is left out of it.
_FRESH, _FORGOTTEN = 0.9, 60.0

# Objects that such a listing has at most.
_MOST = 100_000


class RunLogs:
    """The listed output of all runs below one prefix.

    One listing tells of all runs that a reader follows, up to a number of
    objects, as a server may PUT junk. Runs after these are listed alone.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        container: str,
        prefix: str,
        monotonic: abc.Callable[[], float],
    ) -> None:
        self._store = store
        self._container = container
        self._prefix = prefix
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._fresh_until = 0.0
        # By folder: what it has, as far as the listing tells of it; and when
        # it was asked for last.
        self._entries: dict[str, list[stores.ListedObject]] = {}
        self._asked: dict[str, float] = {}

    def log(self, folder: str) -> list[stores.ListedObject]:
        """List the parts of the output of a run, by name.

        :param folder: their prefix.
        """
        with self._lock:
            now = self._monotonic()
            self._asked[folder] = now
            if now >= self._fresh_until:
                self._refresh(now)
            entries = self._entries.get(folder)
        if entries is None:
            listed = self._iterate(folder)
            entries = list(itertools.islice(listed, live.MOST))
        return entries

    def fetch(self, name: str, limit: int) -> stores.Fetched:
        """Fetch a part; see `stores.ObjectStore.fetch`."""
        return self._store.fetch(self._container, name, limit)

    def _iterate(
        self, prefix: str, after: str = ''
    ) -> abc.Iterator[stores.ListedObject]:
        """List the parts of a log; none if there is no container."""
        with contextlib.suppress(errors.NoObject):
            yield from self._store.iterate(self._container, prefix, after)

    def _refresh(self, now: float) -> None:
        """List the folders of all runs that were asked for lately."""
        self._asked = {
            folder: at
            for folder, at in self._asked.items()
            if now - at < _FORGOTTEN
        }
        folders = sorted(self._asked)
        first, last = folders[0], folders[-1]
        prefix = first if first == last else self._prefix
        wanted = itertools.takewhile(
            lambda entry: entry.name < last or entry.name.startswith(last),
            self._iterate(prefix, first),
        )
        listed = list(itertools.islice(wanted, _MOST))
        self._entries = {folder: [] for folder in folders}
        for entry in listed:
            name = entry.name.removeprefix(self._prefix).partition('/')[0]
            folder = f'{self._prefix}{name}/'
            if folder in self._entries:
                self._entries[folder].append(entry)
        if len(listed) == _MOST:
            self._entries = {
                folder: entries
                for folder, entries in self._entries.items()
                if folder < f'{self._prefix}{name}/'
            }
        self._fresh_until = self._monotonic() + _FRESH


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

    def __init__(self, source: RunLogs, folder: str) -> None:
        self._source = source
        self._folder = folder
        self.offset = 0
        self.begun = False
        self._size: int | None = None
        # By name: the content as it was last seen, as MD5.
        self._etags: dict[str, str] = {}
        # By offset: what came before its turn, without its content.
        self._later: dict[int, live.Piece] = {}
        self._left_out = 0

    @property
    def finished(self) -> bool:
        """Whether the output was read to its end."""
        return self._size is not None and self.offset >= self._size

    def read(self) -> abc.Iterator[Part]:
        """Read the parts that have arrived since the last call.

        A caller may leave the rest for its next call. One part is in memory
        at a time: what came before its turn is fetched again.

        :raises errors.ServiceError: the store did not answer. It can be
            called again, and continues where it was.
        """
        # By name: in folders below its own a server can PUT the same again.
        entries = {
            posixpath.basename(entry.name): entry
            for entry in self._source.log(self._folder)
        }
        self._etags = {
            name: etag for name, etag in self._etags.items() if name in entries
        }
        yield from self._ready()
        for name, entry in entries.items():
            self.begun = True
            is_wanted = self._size is None
            if name != live.END:
                is_wanted = live.is_slot(name) and len(self._later) < _KNOWN
            if is_wanted and not (
                entry.etag and self._etags.get(name) == entry.etag
            ):
                yield from self._ready(self._fetch(entry.name, entry.etag))
        while self._skip():
            yield from self._ready()

    def _fetch(self, path: str, etag: str = '') -> live.Piece | None:
        """Fetch an object; None if it holds no part of the output.

        :param etag: as it is listed.
        """
        name = posixpath.basename(path)
        # If this fails, the next call fetches it like any other.
        self._etags.pop(name, None)
        try:
            if name == live.END:
                body = self._source.fetch(path, _END_LIMIT).content
                self._size = live.parse_end(body)
                return None
            body = self._source.fetch(path, live.LONGEST).content
            # The listing may be older than what was fetched, or newer.
            self._etags[name] = hashlib.md5(
                body, usedforsecurity=False
            ).hexdigest()
            return dataclasses.replace(live.parse(name, body), name=path)
        except errors.NoObject:
            return None
        except (ValueError, errors.BadContent) as exc:
            # So it is not fetched each time that it is listed.
            self._etags[name] = etag
            LOG.debug(
                'Ignoring object %s, which is not a part of an output: %s',
                path,
                exc,
            )
            return None

    def _ready(self, piece: live.Piece | None = None) -> abc.Iterator[Part]:
        """Yield the parts that are next, as far as they have arrived.

        :param piece: what was just fetched.
        """
        while True:
            if piece is None:
                later = self._later.pop(self._base, None)
                if later is None:
                    return
                piece = self._fetch(later.name)
            elif piece.offset > self.offset:
                self._later[piece.offset] = dataclasses.replace(
                    piece, content=b''
                )
                return
            else:
                content = piece.content[self.offset - piece.offset :]
                end, piece = piece.end, None
                if end > self.offset:
                    part = Part(content=content, left_out=self._left_out)
                    self.offset, self._left_out = end, 0
                    yield part

    def _skip(self) -> bool:
        """Skip parts that were overwritten; return whether there were any."""
        base = self._base
        later = [offset for offset in self._later if offset > base]
        if not later:
            return False
        newest = self._later[max(later)]
        oldest_kept = newest.offset - (newest.ring - 1) * live.SLOT
        if base < newest.head * live.SLOT or base >= oldest_kept:
            # It has not arrived yet.
            return False
        target = min(oldest_kept, *later)
        self._left_out += target - self.offset
        self.offset = target
        return True

    @property
    def _base(self) -> int:
        return self.offset - self.offset % live.SLOT


class Tail:
    """Follows the output of one run.

    :param outputs: returns the outputs of the run once it has ended.
    :param show: called with what comes next.
    :param note: called with remarks that are no part of the output.
    """

    def __init__(
        self,
        reader: Reader,
        outputs: abc.Callable[[], abc.Mapping[str, Any]],
        *,
        show: abc.Callable[[bytes], None],
        note: abc.Callable[[str], None],
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._reader = reader
        self._outputs = outputs
        self._show = show
        self._note = note
        self._clock = clock
        self._sleep = sleep
        self._since = clock()
        self._is_noted = False
        self._parts: list[Part] = []

    def fetch(self, room: int) -> None:
        """Fetch new parts; if the store is unavailable, the next call does.

        Threads may do so for several outputs at once.

        :param room: bytes after which the rest is left to the next call.
        """
        with contextlib.suppress(errors.Unavailable):
            for part in self._reader.read():
                self._parts.append(part)
                if sum(len(each.content) for each in self._parts) >= room:
                    return

    def drain(self) -> None:
        """Fetch and show all parts that have arrived; see `fetch`."""
        with contextlib.suppress(errors.Unavailable):
            self._read()
        self.flush()

    def flush(self) -> None:
        """Show the parts that were fetched."""
        parts, self._parts = self._parts, []
        for part in parts:
            if part.left_out:
                omission = f'\n[{part.left_out} bytes omitted]\n'
                self._show(omission.encode())
            self._show(part.content)
        if not self._reader.begun and self._clock() - self._since > _SILENCE:
            self._note_silence(_SILENT)

    def finish(self, state: str) -> None:
        """Show the rest of a run that has ended in a state.

        :raises errors.ServiceError: the store has not answered for too long.
        """
        self.flush()
        if self._reader.finished:
            return
        end = self._clock() + _REST
        outage = retrying.OutageBudget(clock=self._clock)
        while True:
            has_more = True
            with outage.ridden_out():
                has_more = self._read()
            if has_more:
                end = self._clock() + _REST
            if self._reader.finished or self._clock() >= end:
                return
            if not self._reader.begun and state in run_records.REPORTED:
                break
            self._sleep(_PAUSE)
        self._note_silence(_AT_THE_END)
        outputs = self._outputs()
        for name in (body.STDOUT, body.STDERR):
            if outputs.get(name):
                # Half a surrogate pair is no UTF-8.
                text = str(outputs[name])
                self._show(text.encode(errors='backslashreplace'))

    def _read(self) -> bool:
        """Read and show new parts; return whether there were any."""
        before = self._reader.offset
        for part in self._reader.read():
            self._parts.append(part)
            self.flush()
        return self._reader.offset > before

    def _note_silence(self, note: str) -> None:
        """Tell the user once why no output comes."""
        if not self._is_noted:
            self._is_noted = True
            self._note(note)
