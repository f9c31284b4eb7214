# SPDX-License-Identifier: Apache-2.0
"""Reports that a config has started, to an engine that wants to know."""

from __future__ import annotations

import logging
import threading

from heat_config_supervisor import config as configs
from heat_config_supervisor import sending

LOG = logging.getLogger(__name__)

#: Seconds before each further attempt.
PAUSES = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Report:
    """The report of one config, sent next to its result."""

    def __init__(self, config: configs.Config) -> None:
        self._config = config
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._send, daemon=True)

    def begin(self) -> None:
        if self._config.progress_url or self._config.takes_reports:
            self.thread.start()

    def end(self) -> None:
        """Give up, for the result says more."""
        self._ended.set()
        if self.thread.is_alive():
            self.thread.join()

    def _send(self) -> None:
        answer = self._attempt()
        for pause in PAUSES:
            if answer.fate is not sending.Fate.LATER:
                break
            if self._ended.wait(pause):
                return
            answer = self._attempt()
        if answer.fate is sending.Fate.ACCEPTED:
            LOG.info('Reported the start of config %s', self._config.id)
        else:
            LOG.warning(
                'Cannot report the start of config %s: %s',
                self._config.id,
                answer.reason,
            )

    def _attempt(self) -> sending.Answer:
        url = self._config.progress_url
        if not url:
            return sending.signal(self._config, {'deploy_progress': {}})
        # What the config itself has reported meanwhile says more.
        answer = sending.send('PUT', url, b'{}', {'If-None-Match': '*'})
        if answer.reason == 'HTTP status 412':
            return sending.Answer(sending.Fate.ACCEPTED, answer.reason)
        return answer
