# SPDX-License-Identifier: Apache-2.0
"""The output of a config while it runs: from its hook to the store."""

from __future__ import annotations

import logging
import os
import pathlib
import re
import threading

from heat_config_supervisor import config as configs
from heat_config_supervisor import hidden
from heat_config_supervisor import logs

LOG = logging.getLogger(__name__)

LAUNCH = pathlib.Path(__file__).with_name('launch.py')
_BYTES = 64 * 1024

# Seconds for the last of it, which is in a pipe when the hook has ended.
_REST = 10.0

# The first line of a program in Python.
_PYTHON = re.compile(rb'#! *([^\n]*python[0-9.]*[^\n]*)')


class Output:
    """Masks, keeps and sends the output of a config; or does nothing.

    It does so if the config says where to, and its hook is one in Python:
    others keep the output to themselves.

    :ivar command: what runs the hook.
    :ivar inherited: the file descriptors that it needs.
    """

    def __init__(self, config: configs.Config, program: str) -> None:
        self.command = [program]
        self.inherited: tuple[int, ...] = ()
        self._sender: logs.Sender | None = None
        python = _interpreter(program)
        if not config.log_url or not python:
            return
        try:
            self._log = logs.Log(config.id, config.log_limit)
        except OSError:
            LOG.exception('Cannot send the output while the config runs')
            return
        self._sender = logs.Sender(self._log, config.log_url)
        self._stream = hidden.Stream(config.mask)
        self._is_at_start = True
        self._read, write = os.pipe()
        self.inherited = (write,)
        self.command = [*python, str(LAUNCH), str(write), program]
        self.thread = threading.Thread(target=self._copy, daemon=True)

    def begin(self) -> None:
        """Begin, when the hook has been started."""
        if self._sender:
            for number in self.inherited:
                os.close(number)
            self.thread.start()
            self._sender.begin()

    def end(self) -> None:
        """Take the last of it, when the hook has ended."""
        if self._sender:
            self.thread.join(_REST)
            self._sender.end()

    def note(self, line: str) -> None:
        """Add a line of our own to the output of the config."""
        if self._sender:
            start = '' if self._is_at_start else '\n'
            self._append(f'{start}{line}\n'.encode())

    def _copy(self) -> None:
        keeps = True
        while content := os.read(self._read, _BYTES):
            keeps = keeps and self._append(self._stream.feed(content))
        if keeps:
            self._append(self._stream.close())
        os.close(self._read)

    def _append(self, content: bytes) -> bool:
        if content:
            self._is_at_start = content.endswith(b'\n')
        try:
            self._log.append(content)
        except OSError:
            LOG.exception('Cannot store more of the output')
            return False
        return True


def _interpreter(program: str) -> list[str] | None:
    """Return the Python that runs a program; None if it is no such."""
    try:
        with pathlib.Path(program).open('rb') as stream:
            line = stream.readline(200)
    except OSError:
        return None
    match = _PYTHON.match(line)
    return os.fsdecode(match[1]).split() if match else None
