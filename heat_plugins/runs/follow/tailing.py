# SPDX-License-Identifier: Apache-2.0
"""Following the output of a run until all of it is there."""

from collections import abc
import contextlib
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import retrying
from heat_plugins.runs import runs
from heat_plugins.runs.follow import logs
from heat_plugins.signals import body

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


class Tail:
    """Follows the output of one run.

    :param outputs: returns the outputs of a run that has ended.
    :param show: called with what comes next.
    :param note: called with remarks that are no part of the output.
    """

    def __init__(
        self,
        reader: logs.Reader,
        outputs: abc.Callable[[runs.Run], abc.Mapping[str, Any]],
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
        self._parts: list[logs.Part] = []

    def fetch(self, room: int) -> None:
        """Fetch what has come; a store that fails for now has its time.

        Threads may do so for several outputs at once.

        :param room: bytes after which the rest is left to the next call.
        """
        size = 0
        with contextlib.suppress(errors.Unavailable):
            for part in self._reader.read(room):
                self._parts.append(part)
                size += len(part.content)
                if size >= room:
                    return

    def drain(self) -> None:
        """Fetch and show all that has come; see `fetch`."""
        with contextlib.suppress(errors.Unavailable):
            self._read()
        self.flush()

    def flush(self) -> None:
        """Show what was fetched."""
        parts, self._parts = self._parts, []
        for part in parts:
            if part.left_out:
                told = f'\n[{part.left_out} bytes omitted]\n'
                self._show(told.encode())
            self._show(part.content)
        if not self._reader.begun and self._clock() - self._since > _SILENCE:
            self._note_silence(_SILENT)

    def finish(self, run: runs.Run) -> None:
        """Show the rest of a run that has ended.

        :raises errors.ServiceError: the store has not answered for too long.
        """
        self.flush()
        if self._reader.finished:
            return
        end = self._clock() + _REST
        outage = retrying.Outage(clock=self._clock)
        while True:
            has_more = True
            with outage.ridden_out():
                has_more = self._read()
            if has_more:
                end = self._clock() + _REST
            if self._reader.finished or self._clock() >= end:
                return
            if not self._reader.begun and run.state in runs.REPORTED:
                break
            self._sleep(_PAUSE)
        self._note_silence(_AT_THE_END)
        found = self._outputs(run)
        for name in (body.STDOUT, body.STDERR):
            if found.get(name):
                # Half a surrogate pair is no UTF-8.
                text = str(found[name])
                self._show(text.encode(errors='backslashreplace'))

    def _read(self) -> bool:
        """Show what there is more; False if there is nothing."""
        before = self._reader.offset
        for part in self._reader.read():
            self._parts.append(part)
            self.flush()
        return self._reader.offset > before

    def _note_silence(self, said: str) -> None:
        if not self._is_noted:
            self._is_noted = True
            self._note(said)
