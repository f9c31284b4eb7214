# SPDX-License-Identifier: Apache-2.0
"""Showing what runs print, while they go on."""

import codecs
from collections import abc
import itertools
from typing import TextIO

from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins.osc import progress
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.follow import logs
from heat_plugins.signals import live

# Bytes of outputs that all readers together have in memory, twice: parts that
# wait for earlier ones, and parts to show. Each may have one part.
_ROOM = 32 * 1024 * 1024

# The most characters of what stands before each line.
_NAME = 200

# Lines that are printed at once.
_LINES = 1000


class Output:
    """Shows what runs print.

    :param show: returns what shows the output of a run.
    :param silent: whether to say nothing of servers that report at the end
        only.
    """

    def __init__(
        self,
        service: run_service.Runs,
        display: progress.Display,
        show: abc.Callable[[runs.Run], 'Raw | Lines'],
        *,
        silent: bool = False,
    ) -> None:
        self._service = service
        self._display = display
        self._show = show
        self._silent = silent
        self._tails: dict[str, tuple[logs.Tail, Raw | Lines]] = {}
        self._finished: set[str] = set()

    def add(self, run: runs.Run) -> None:
        """Show that of a run, too."""
        if run.id in self._tails:
            return
        sink = self._show(run)
        tail = self._service.tail(
            run,
            show=sink.show,
            note=lambda line: self._note(run, line),
        )
        self._tails[run.id] = tail, sink

    def _note(self, run: runs.Run, line: str) -> None:
        if not self._silent:
            self._display.say(f'Run {run.id}: {line}')

    def poll(self) -> None:
        """Show what has come since."""
        tails = [
            tail
            for run_id, (tail, _) in self._tails.items()
            if run_id not in self._finished
        ]
        room = max(live.SLOT, _ROOM // max(1, len(tails)))
        pools.Pool().each(lambda tail: tail.fetch(room), tails)
        for tail in tails:
            tail.flush()

    def finish(self, run: runs.Run) -> None:
        """Show the rest of that of a run that has ended."""
        if run.id in self._tails and run.id not in self._finished:
            tail, sink = self._tails[run.id]
            tail.finish(run)
            sink.end()
            # Not before: the caller may retry what has failed.
            self._finished.add(run.id)

    def leave(self, run: runs.Run) -> None:
        """Show what has arrived of a run's output, and then no more."""
        if run.id in self._tails and run.id not in self._finished:
            tail, sink = self._tails[run.id]
            tail.drain()
            sink.end()
            self._finished.add(run.id)


class Raw:
    """Writes output as it is; what a terminal would obey is escaped there."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')

    def show(self, content: bytes) -> None:
        if self._stream.isatty():
            self._stream.write(foreign.block(self._decoder.decode(content)))
        else:
            self._stream.buffer.write(content)
        self._stream.flush()

    def end(self) -> None:
        if self._stream.isatty():
            self._stream.write(foreign.block(self._decoder.decode(b'', True)))
            self._stream.flush()


class Lines:
    """Says output line by line; it wraps those that are too long.

    :param name: what stands before each line, with a colon.
    """

    def __init__(self, display: progress.Display, name: str = '') -> None:
        self._display = display
        self._before = f'{foreign.line(name, _NAME)}: ' if name else ''
        self._width = foreign.LINE - len(self._before)
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self._rest = ''

    def show(self, content: bytes) -> None:
        *lines, rest = (self._rest + self._decoder.decode(content)).split('\n')
        # Not all of it: its end may be the next that comes.
        length = max(0, len(rest) - 1) // self._width * self._width
        self._rest = rest[length:]
        self._say([*lines, rest[:length]] if length else lines)

    def end(self) -> None:
        self._rest += self._decoder.decode(b'', True)
        if self._rest:
            self._say([self._rest])
            self._rest = ''

    def _say(self, lines: abc.Iterable[str]) -> None:
        shown = (
            self._before + piece
            for line in lines
            for part in self._pieces(line)
            # Escapes make it longer.
            for piece in self._pieces(foreign.line(part, None))
        )
        while some := list(itertools.islice(shown, _LINES)):
            self._display.say(*some)

    def _pieces(self, text: str) -> list[str]:
        """Divide a text into pieces that fit into a line."""
        starts = range(0, max(1, len(text)), self._width)
        return [text[start : start + self._width] for start in starts]
