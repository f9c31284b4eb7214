# SPDX-License-Identifier: Apache-2.0
"""Warn while a config runs that its outputs are too large for a result."""

from __future__ import annotations

from collections.abc import Callable
import contextlib
import logging
import threading

from heat_config_supervisor import config as configs
from heat_config_supervisor import places
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

# Seconds between two looks at the files that the outputs are read from.
PACE = 2.0


class Watch:
    """Watches the files that a config writes its outputs to.

    :param note: called once with a line for the reader of the live output.
    """

    def __init__(
        self, config: configs.Config, note: Callable[[str], None]
    ) -> None:
        self._config = config
        self._note = note
        self._is_noted = False
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        if self._config.outputs:
            self.thread.start()

    def end(self) -> None:
        self._ended.set()
        if self.thread.is_alive():
            self.thread.join()
        self._look()

    def _run(self) -> None:
        while not self._ended.wait(PACE):
            self._look()

    def _look(self) -> None:
        size = sum(self._sizes())
        if self._is_noted or size <= sending.LIMIT:
            return
        self._is_noted = True
        line = sending.too_large(size)
        LOG.warning('Config %s: %s', self._config.id, line)
        self._note(line)

    def _sizes(self) -> list[int]:
        sizes = []
        for folder in places.outputs():
            for name in self._config.outputs:
                with contextlib.suppress(OSError, ValueError):
                    path = folder / f'{self._config.id}.{name}'
                    sizes.append(path.stat().st_size)
        return sizes
