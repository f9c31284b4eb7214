# SPDX-License-Identifier: Apache-2.0
"""Showing what runs print, while they go on."""

import codecs
from collections import abc
from typing import TextIO

from heat_plugins import foreign
from heat_plugins import pool
from heat_plugins.osc import progress
from heat_plugins.runs import run as runs
from heat_plugins.runs import run_service as services
from heat_plugins.runs.follow import tailing

# The most characters of a line that has no end.
_LINE = 4096


class Output:
    """Shows what runs print.

    :param show: returns what shows the output of a run.
    :param silent: whether to say nothing of servers that report at the end
        only.
    """

    def __init__(
        self,
        service: services.Runs,
        display: progress.Display,
        show: abc.Callable[[runs.Run], 'Raw | Lines'],
        *,
        silent: bool = False,
    ) -> None:
        self._service = service
        self._display = display
        self._show = show
        self._silent = silent
        self._tails: dict[str, tuple[tailing.Tail, Raw | Lines]] = {}
        self._finished: set[str] = set()

    def add(self, run: runs.Run) -> None:
        """Show that of a run, too."""
        if run.id in self._tails:
            return
        sink = self._show(run)
        tail = self._service.tail(
            run,
            show=sink.show,
            note=lambda said: self._note(run, said),
        )
        self._tails[run.id] = tail, sink

    def _note(self, run: runs.Run, said: str) -> None:
        if not self._silent:
            self._display.say(f'Run {run.id}: {said}')

    def poll(self) -> None:
        """Show what has come since."""
        tails = [
            tail
            for run_id, (tail, _) in self._tails.items()
            if run_id not in self._finished
        ]
        pool.Pool().each(lambda tail: tail.fetch(), tails)
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
            tail.fetch()
            tail.flush()
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
    """Says output line by line.

    :param before: what stands before each line.
    """

    def __init__(self, display: progress.Display, before: str = '') -> None:
        self._display = display
        self._before = before
        self._decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self._rest = ''

    def show(self, content: bytes) -> None:
        *lines, self._rest = (
            self._rest + self._decoder.decode(content)
        ).split('\n')
        while len(self._rest) > _LINE:
            lines.append(self._rest[:_LINE])
            self._rest = self._rest[_LINE:]
        self._display.say(*(self._before + one for one in lines))

    def end(self) -> None:
        self._rest += self._decoder.decode(b'', True)
        if self._rest:
            self._display.say(self._before + self._rest)
            self._rest = ''
