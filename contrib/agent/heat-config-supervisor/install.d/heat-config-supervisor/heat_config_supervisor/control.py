# SPDX-License-Identifier: Apache-2.0
"""Asks whether a config must stop, while it runs."""

from __future__ import annotations

import logging
import threading

import requests

from heat_config_supervisor import config as configs
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

# Seconds between two requests, and to which those double that fail.
PACE, MOST = 2.0, 8.0


class Control:
    """Asks for the object that is there if a config must stop.

    :ivar requested: set when it is there.
    """

    def __init__(self, config: configs.Config) -> None:
        self._url = config.control_url
        self.requested = threading.Event()
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        if self._url:
            self.thread.start()

    def end(self) -> None:
        """Ask no longer. A request that is under way is not waited for."""
        self._ended.set()

    def _run(self) -> None:
        pause = PACE
        with requests.Session() as session:
            while not self._ended.is_set():
                status = self._status(session)
                if 200 <= status < 300:
                    LOG.info('The config was told to stop')
                    self.requested.set()
                    return
                pause = PACE if status == 404 else min(pause * 2, MOST)
                self._ended.wait(pause)

    def _status(self, session: requests.Session) -> int:
        """Return the status of the answer; 0 for no answer."""
        try:
            return sending.ask(self._url or '', session)[0]
        except requests.RequestException:
            return 0
